"""A conversation with a server that is a child process: one line for each message. Ends the child in bounded time."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, final

import anyio
import msgspec
from msgspec import Struct

from ....client.errors import ConnectionFailed, ConnectionLoss
from ....client.process import EndBounds, ServerProcess, spawn
from ....client.task_group import background_tasks
from ....daemon.settings.option import PREFIX
from ....framing.transports.interface import PeerGone
from ..model import Command
from .conversation import MAX_REPLY_BYTES, Agreed, Conversation, Request
from .server_messages import ServerMessages

# Divides what a server writes into lines of bounded length. Never reads, never waits, never logs.


HEAD_BYTES: Final = 256
"""What is kept of the beginning of a line that is too long: enough for the id of the answer that it would be."""


class Oversize(Struct, frozen=True):
    """A line that was too long, by its beginning. The rest of it was dropped."""

    head: bytes


Line: TypeAlias = bytes | Oversize


@final
class LineSplitter:
    """Takes chunks, gives lines without their ends. Blank lines are left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk, and the one that just became too long."""
        found: list[Line] = []
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece, found)
            self._end(found)
        self._add(rest, found)
        return found

    def _add(self, piece: bytes, found: list[Line]) -> None:
        if self._dropping:
            return
        if len(self._begun) + len(piece) > self._limit:
            found.append(Oversize(bytes(self._begun[:HEAD_BYTES] + piece[:HEAD_BYTES])[:HEAD_BYTES]))
            self._begun.clear()
            self._dropping = True
        else:
            self._begun += piece

    def _end(self, found: list[Line]) -> None:
        line = bytes(self._begun).strip(b" \t\r")
        self._begun.clear()
        if not self._dropping and line:
            found.append(line)
        self._dropping = False


MAX_UNSENT_BYTES: Final = 16 * 1024 * 1024
"""What may wait for a server that does not read. A single message may be larger."""

NEWLINE: Final = b"\n"

_ANSWERED: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_encode: Final = msgspec.json.Encoder().encode


@asynccontextmanager
async def open_process(
    command: Command, agreed: Agreed, server: ServerMessages, *, bounds: EndBounds
) -> AsyncGenerator[Conversation]:
    """Run the command for as long as the block runs. Raises `ConnectionFailed` where it can't be run."""
    async with (
        spawn(
            command.words, cwd=command.cwd, env=_environment(command), stderr=server.take_line, bounds=bounds
        ) as process,
        background_tasks() as tasks,
    ):
        conversation = Conversation(agreed, server)
        link = ProcessLink(process, conversation)
        conversation.begin(link)
        tasks.start_soon(link.read)
        tasks.start_soon(link.write)
        try:
            yield conversation
        finally:
            conversation.end(ConnectionLoss("the connection was closed by this side"))
            link.notify()


def _environment(command: Command) -> dict[str, str]:
    """This process's own without its settings, which are not the server's and may hold secrets; and the command's."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {**own, **command.env}


@final
class ProcessLink:
    """Implements `Link` over the pipes of a child."""

    def __init__(self, process: ServerProcess, conversation: Conversation) -> None:
        self._process = process
        self._conversation = conversation
        self._unsent: deque[bytes] = deque()
        self._bytes = 0
        self._to_write = anyio.Event()
        self._written = anyio.Event()

    async def exchange(self, request: Request) -> None:
        await self.send(request.body)
        await request.answered.wait()

    async def send(self, body: bytes) -> None:
        while self._full(body) and self._conversation.usable:
            await self._written.wait()
        if self._conversation.loss is not None:
            raise ConnectionFailed(self._conversation.loss, sent=False)
        self._add(body)

    def post(self, body: bytes) -> None:
        if not self._conversation.usable:
            return
        if self._full(body):
            self._conversation.server.note_dropped()
        else:
            self._add(body)

    def give_up(self, request: Request) -> None:
        params = {"requestId": request.id, "reason": "the caller no longer waits"}
        self.post(_encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))

    async def listen(self) -> None:
        """All that the server says comes by one way."""

    def _full(self, body: bytes) -> bool:
        return bool(self._unsent) and self._bytes + len(body) > MAX_UNSENT_BYTES

    def _add(self, body: bytes) -> None:
        self._unsent.append(body)
        self._bytes += len(body)
        self._to_write.set()

    async def write(self) -> None:
        """Write what is to be sent, until cancelled or the server reads no more."""
        try:
            while True:
                await self._to_write.wait()
                self._to_write = anyio.Event()
                while self._unsent:
                    await self._process.send(self._unsent[0] + NEWLINE)
                    self._bytes -= len(self._unsent.popleft())
                    self.notify()
        except PeerGone:
            with anyio.move_on_after(
                DRAIN_SECONDS
            ):  # what it has answered before is still read, and so is why it ended
                await self._conversation.wait_lost()
            self._conversation.end(ConnectionLoss("the server stopped reading"))
            self.notify()

    async def read(self) -> None:
        """Read messages until the server's output ends."""
        splitter = LineSplitter(MAX_REPLY_BYTES)
        while chunk := await self._process.receive():
            for line in splitter.feed(chunk):
                if isinstance(line, Oversize):
                    self._refuse(line)
                else:
                    self._conversation.receive(line)
        self._conversation.end(await self._process.explain())
        self.notify()

    def _refuse(self, line: Oversize) -> None:
        """Whose answer it was stands at its beginning, with most servers."""
        found = _ANSWERED.match(line.head)
        self._conversation.fail(
            None if found is None else int(found[1]), f"the server's message is larger than {MAX_REPLY_BYTES} bytes"
        )

    def notify(self) -> None:
        """Have those look again who wait for room."""
        self._written.set()
        self._written = anyio.Event()


DRAIN_SECONDS: Final = 5.0
"""How long is read on from a server that stopped reading."""
