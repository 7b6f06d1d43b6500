"""A daemon in memory, and the other end of its wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from discreet import Service
from discreet.agents import Agent
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.hosting import opened_store
from discreet.daemon.operations.access import Access
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Fault, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.logged_events import LoggedEvents, logged_events
from support.waits import DEADLINE_SECONDS


class Wire:
    """The client's end: frames out, messages in, in the order in which they came."""

    def __init__(self, transport: MemoryTransport, daemon: Daemon) -> None:
        self.transport = transport
        self.daemon = daemon
        self.status: int | None = None
        self.ended = anyio.Event()
        self._parser = parser_for("content-length", FrameLimits(max_body=1 << 30))
        self._calls = 0

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        """All of it in one write; bytes go as the body of a frame, whatever they are."""
        bodies = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
        await self.transport.send(b"".join(encode_frame(body, "content-length") for body in bodies))

    def request(self, method: str, params: Any = None, **members: Any) -> dict[str, Any]:
        self._calls += 1
        message = {"jsonrpc": "2.0", "id": self._calls, "method": method, **members}
        return message if params is None else {**message, "params": params}

    async def call(self, method: str, params: Any = None, **members: Any) -> dict[str, Any]:
        """Send one request and take the next message."""
        await self.send(self.request(method, params, **members))
        return await self.receive()

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(DEADLINE_SECONDS):
            while (event := self._parser.next_event()) is NEED_DATA:
                data = await self.transport.receive()
                if not data:
                    raise EOFError("the daemon has closed the stream")
                self._parser.receive_data(data)
        assert not isinstance(event, Fault), event
        assert isinstance(event, Frame), event
        message: dict[str, Any] = json.loads(event.body)
        return message

    async def receive_all(self, count: int) -> list[dict[str, Any]]:
        return [await self.receive() for _ in range(count)]

    async def nothing_more(self) -> None:
        """Prove that nothing else was sent: the answer comes next to a request that waits for its turn."""
        assert (await self.call("listMethods"))["id"] == self._calls

    async def end(self) -> int:
        """End the input and wait for the daemon; its exit status."""
        self.transport.send_eof()
        with anyio.fail_after(DEADLINE_SECONDS):
            await self.ended.wait()
        assert self.status is not None
        return self.status


Serving = Callable[..., AbstractAsyncContextManager[Wire]]


@asynccontextmanager
async def _serving(
    *services: Service,
    access: Access | None = None,
    credentials: Mapping[str, str] | None = None,
    agent: Agent | None = None,
    **settings: Any,
) -> AsyncIterator[Wire]:
    ours, theirs = memory_pair()
    host = Host(services, Settings(**settings), version="1.2.3", access=access, credentials=credentials, agent=agent)
    daemon = Daemon(host, ours)
    wire = Wire(theirs, daemon)

    async def run() -> None:
        daemon.begin()
        wire.status = await daemon.run()
        ours.close()
        wire.ended.set()

    with opened_store(host):  # as `serve` does: what others write is heard of from the first request on
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            yield wire
            theirs.close()
            tasks.cancel_scope.cancel()


@pytest.fixture
def serving() -> Serving:
    """`async with serving(service, …, setting=…) as wire:` runs a daemon over a pair in memory."""
    return _serving


@pytest.fixture
def logged() -> Iterator[LoggedEvents]:
    """`logged()` is what the daemon has logged, from info on, since the last call."""
    with logged_events("info") as events:
        yield events


@pytest.fixture
def wire_class() -> type[Wire]:
    """For tests that run daemons of their own."""
    return Wire
