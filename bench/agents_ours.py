"""discreet as a contestant: its process, spoken to over pipes; and the same daemon in this process, over pipes in memory."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents_requests import Frames, Requests, frame, is_event, result

HERE = Path(__file__).parent


class Spoken:
    """What both have in common: requests in frames, at most `window` of them unanswered."""

    requests: Requests

    async def write(self, data: bytes) -> None: ...

    async def read(self) -> bytes: ...

    async def ask(self, requests: list[bytes], window: int) -> list[bytes]:
        frames, replies = Frames(), []
        asked = 0
        while len(replies) < len(requests):
            upto = min(len(requests), len(replies) + window)
            if asked < upto:
                await self.write(b"".join(map(frame, requests[asked:upto])))
                asked = upto
            replies += frames.feed(await self.read())
        return replies

    async def ready(self) -> None:
        """Return when it answers, without anything of agents. There is no such method, and that is an answer."""
        await self.ask([self.requests.request("ready", {})], 1)

    async def stream(self, request: bytes) -> int:
        """The number of its events. Raises `ValueError` where it ends with an error."""
        frames, events = Frames(), 0
        await self.write(frame(request))
        while True:
            for body in frames.feed(await self.read()):
                if not is_event(body):
                    result(body)
                    return events
                events += 1


class Process(Spoken):
    """`discreet serve`, and a reader that does nothing but count."""

    def __init__(self, version: str, store: str) -> None:
        self.requests = Requests(version)
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./agents_app.py:agent", "--store", store]
        self.spawned = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE, bufsize=0)
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self._in, self._out = self.child.stdin.fileno(), self.child.stdout.fileno()
        self.pid = self.child.pid

    async def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._in, data) :]

    async def read(self) -> bytes:
        data = os.read(self._out, 1 << 20)
        if not data:
            raise ValueError("the daemon has ended")
        return data

    def cpu(self) -> float:
        return time.clock_gettime(((~self.pid) << 3) | 2)  # Linux: the CPU clock of another process

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(10)


class Memory(Spoken):
    """The daemon in this event loop. What the asking costs is counted too."""

    def __init__(self, version: str, transport: Any) -> None:
        self.requests = Requests(version)
        self._transport = transport
        self.pid = os.getpid()

    async def write(self, data: bytes) -> None:
        await self._transport.send(data)

    async def read(self) -> bytes:
        data: bytes = await self._transport.receive()
        return data

    def cpu(self) -> float:
        return time.process_time()


@asynccontextmanager
async def spawned(version: str, store: str) -> AsyncGenerator[Process]:
    contestant = Process(version, store)
    try:
        yield contestant
    finally:
        contestant.close()


@asynccontextmanager
async def in_process(version: str, store: str) -> AsyncGenerator[Memory]:
    from agents_app import agent

    from discreet.testing.memory import memory_daemon, settings_of

    async with memory_daemon([agent], settings_of({"store": store}), provider=None, credentials=None) as transport:
        yield Memory(version, transport)
        await asyncio.sleep(0)
