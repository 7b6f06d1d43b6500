"""Passes a session through, byte for byte, in both directions, and lets somebody listen.

Never looks at the bytes, never holds more than one read of each direction, never waits for the listener.
"""

from __future__ import annotations

import math
import select
import sys
from collections.abc import Callable
from typing import Final, Protocol, final

import anyio
import msgspec

from ..client.process.process import LINGER_SECONDS, EndBounds, ServerProcess
from ..client.task_group import background_tasks
from ..framing.channel import SILENCE_SECONDS
from ..framing.transports.descriptors import do_nothing
from ..framing.transports.interface import ByteTransport, PeerGone
from .recorder import Stream

GONE_SECONDS: Final = 0.25
"""How often it is looked whether a client that ended its input still reads."""


class Listener(Protocol):
    def __call__(self, stream: Stream, data: bytes, *, rested: bool = False) -> None:
        """Some bytes of one stream; none at its end. `rested`: it was silent for `SILENCE_SECONDS` before them."""
        ...


@final
class ClientEnds:
    """This process's own streams: what the client writes, what it reads, and whether it still does."""

    def __init__(self, incoming: ByteTransport, outgoing: ByteTransport, *, hung_up: Callable[[], bool]) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.hung_up = hung_up


async def relay(
    client: ClientEnds,
    server: ServerProcess,
    listen: Listener,
    *,
    bounds: EndBounds = EndBounds(),  # noqa: B008 - frozen
) -> None:
    """Pass bytes until the server has ended, or the client has gone; then the server is the caller's to end.

    Each side sees what the other does: the end of a stream as its end, a reader that went away as one. A client that no
    longer reads counts as gone. There is no time limit until the client has ended its input; from then on, a server that
    says nothing for `bounds.eof` is ended, and what it still says passes.
    """
    async with background_tasks() as tasks:
        ending = _Ending(server, bounds)
        tasks.start_soon(_upstream, client, server, listen, ending, tasks.cancel_scope)
        if await forward("server", server, client.outgoing, ending.hearing(listen), ending.passed):
            client.outgoing.send_eof()
            await server.wait()


@final
class _Ending:
    """How long the server has been silent, and its end when that was too long.

    It is not silent while what it said waits for the client.
    """

    def __init__(self, server: ServerProcess, bounds: EndBounds) -> None:
        self._server = server
        self._bounds = bounds
        self._silent_since = anyio.current_time()

    def hearing(self, listen: Listener) -> Listener:
        def hear(stream: Stream, data: bytes, *, rested: bool = False) -> None:
            self._silent_since = math.inf if data else anyio.current_time()
            listen(stream, data, rested=rested)

        return hear

    def passed(self) -> None:
        self._silent_since = anyio.current_time()

    async def when_silent(self) -> None:
        """Wait until the server has been silent for long from now on, then end it."""
        asked_at = anyio.current_time()
        while (left := max(asked_at, self._silent_since) + self._bounds.eof - anyio.current_time()) > 0:  # noqa: ASYNC110 - a clock
            await anyio.sleep(min(left, self._bounds.eof))
        await end_now(self._server, self._bounds)


async def end_now(server: ServerProcess, bounds: EndBounds) -> None:
    """SIGTERM, then SIGKILL."""
    await server.end(msgspec.structs.replace(bounds, eof=0.0))


async def forward(
    stream: Stream,
    source: ByteTransport,
    sink: ByteTransport,
    listen: Listener,
    passed: Callable[[], None] = do_nothing,
) -> bool:
    """Copy until the source ends: True. False when the sink takes no more. The sink's pace is the source's.

    `passed` is called when the sink has taken what was last heard.
    """
    try:
        while True:
            began = anyio.current_time()
            data = await source.receive()
            listen(stream, data, rested=anyio.current_time() - began >= SILENCE_SECONDS)
            if not data:
                return True
            await sink.send(data)
            passed()
    except PeerGone:
        return False


async def forward_stderr(source: ByteTransport, sink: ByteTransport, server: ServerProcess, listen: Listener) -> None:
    """Pass the server's stderr through until it ends, or the server has and whoever else holds it is silent."""
    async with background_tasks() as tasks:
        tasks.start_soon(_silence_after, server, tasks.cancel_scope)
        if not await forward("stderr", source, sink, listen):
            while data := await source.receive():  # nobody reads it here: the server must not stand still for that
                listen("stderr", data)


async def _upstream(
    client: ClientEnds, server: ServerProcess, listen: Listener, ending: _Ending, session: anyio.CancelScope
) -> None:
    if not await forward("client", client.incoming, server, listen):
        client.incoming.close()  # the server reads no more: neither does this side
        await _watch_client(client, session)
    server.send_eof()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ending.when_silent)
        tasks.start_soon(_watch_client, client, session)


async def _watch_client(client: ClientEnds, session: anyio.CancelScope) -> None:
    while not client.hung_up():  # noqa: ASYNC110 - no event tells of a reader that goes away
        await anyio.sleep(GONE_SECONDS)
    session.cancel()


async def _silence_after(server: ServerProcess, scope: anyio.CancelScope) -> None:
    await server.wait()
    await anyio.sleep(LINGER_SECONDS)
    scope.cancel()


def nobody_reads(fd: int) -> bool:
    """Whether the reader of a pipe, a socket or a terminal is gone for good; False where the system can't say."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
