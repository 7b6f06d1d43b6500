"""Recordings that a test writes, and servers that answer their replay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import msgspec
from msgspec import Raw

from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from discreet.recording.format import EndEntry, Entry, MessageEntry, Recording, Sender, StartEntry
from discreet.recording.replay import ReplayReport, build_script, compare, replay
from support.waits import DEADLINE_SECONDS

SHORT_SECONDS = 0.05
"""How long a replay waits for messages that never come."""


class Server:
    """A server that the test controls."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.seen: list[dict[str, Any]] = []
        self._parser = parser_for("content-length")

    async def read(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while (event := self._parser.next_event()) is NEED_DATA:
            if not (data := await self.transport.receive()):
                return None
            self._parser.receive_data(data)
        assert isinstance(event, Frame)
        message: dict[str, Any] = msgspec.json.decode(event.body)
        self.seen.append(message)
        return message

    async def write(self, *messages: object) -> None:
        for message in messages:
            body = message if isinstance(message, bytes) else msgspec.json.encode(message)
            await self.transport.send(encode_frame(body, "content-length"))


Behaviour: TypeAlias = Callable[[Server], Awaitable[None]]


def recording(
    *said: tuple[Sender, Any] | Entry, scrubbed: dict[int, dict[str, int]] | None = None, cut: bool = False
) -> Recording:
    entries: list[Entry] = []
    for place, item in enumerate(said):
        if isinstance(item, tuple):
            marks = (scrubbed or {}).get(place, {})
            item = MessageEntry(
                ms=float(place), sender=item[0], message=Raw(msgspec.json.encode(item[1])), scrubbed=marks
            )
        entries.append(item)
    if not cut and not isinstance(entries[-1], EndEntry):
        entries.append(EndEntry(ms=float(len(entries)), status=None))
    return Recording(StartEntry(ms=0.0, version=1, framing="content-length", command=()), tuple(entries))


def call(call_id: Any, method: str, **params: Any) -> tuple[Sender, Any]:
    return "client", {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}


def result(call_id: Any, value: Any) -> tuple[Sender, Any]:
    return "server", reply(call_id, value)


def reply(call_id: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": value}


def event(call_id: Any, seq: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "stream/event", "params": {"id": call_id, "seq": seq, "value": value}}


async def replayed(
    session: Recording, behave: Behaviour, *, timeout: float = DEADLINE_SECONDS, **options: Any
) -> tuple[ReplayReport, Server]:
    """Play a session to a server that behaves like that and then ends its side."""
    recorded = build_script(session)
    ours, theirs = memory_pair()
    server = Server(theirs)

    async def serve() -> None:
        await behave(server)
        theirs.send_eof()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            result = await replay(recorded, ours, timeout=timeout)
            ours.close()
    return compare(recorded, result, **options), server


async def echo(server: Server) -> None:
    """Answers every request with its params."""
    while message := await server.read():
        if "id" in message and "method" in message:
            await server.write(reply(message["id"], message.get("params")))
