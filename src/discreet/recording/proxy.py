"""Passes the bytes of a session between client and server, and shows them to an observer.

Never interprets the bytes, never holds more than one read of each direction, never waits for the observer.
"""

from __future__ import annotations

import math
import select
import sys
from collections.abc import Callable
from typing import Final, Protocol, final

import anyio
import msgspec

from ..client.process import LINGER_SECONDS, EndBounds, ServerProcess
from ..client.task_group import background_tasks
from ..framing.channel import SILENCE_SECONDS
from ..framing.transports.interface import ByteTransport, PeerGone, do_nothing
from .format import StreamName

HANG_UP_POLL_SECONDS: Final = 0.25
"""The interval of the check whether a client that ended its input still reads."""


class Observer(Protocol):
    """Gets a copy of everything that passes."""

    def __call__(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        """Some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before them."""
        ...


@final
class ClientStreams:
    """The streams to the client: `incoming` is its output, `outgoing` its input. `hung_up` says whether it stopped reading."""

    def __init__(self, incoming: ByteTransport, outgoing: ByteTransport, *, hung_up: Callable[[], bool]) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.hung_up = hung_up


async def relay(
    client: ClientStreams,
    server: ServerProcess,
    observe: Observer,
    *,
    bounds: EndBounds = EndBounds(),  # noqa: B008 - frozen
) -> None:
    """Pass bytes until the server has ended or the client has hung up. After a hang-up the caller ends the server.

    The end of one side's stream, and a reader that goes away, reach the other side as such. A client that no longer reads
    has hung up. There is no time limit until the client ends its input. From then on a server that writes nothing for
    `bounds.eof` is terminated; what it still writes is passed on.
    """
    async with background_tasks() as tasks:
        silence = _SilenceTimeout(server, bounds)
        tasks.start_soon(_forward_client, client, server, observe, silence, tasks.cancel_scope)
        if await forward("server", server, client.outgoing, silence.observer(observe), silence.delivered):
            client.outgoing.send_eof()
            await server.wait()


@final
class _SilenceTimeout:
    """Terminates a server that has been silent for too long.

    The server does not count as silent while its output waits for the client to read it.
    """

    def __init__(self, server: ServerProcess, bounds: EndBounds) -> None:
        self._server = server
        self._bounds = bounds
        self._silent_since = anyio.current_time()

    def observer(self, observe: Observer) -> Observer:
        """`observe`, and besides a note that the server has written."""

        def observe_server(stream: StreamName, data: bytes, *, rested: bool = False) -> None:
            self._silent_since = math.inf if data else anyio.current_time()
            observe(stream, data, rested=rested)

        return observe_server

    def delivered(self) -> None:
        """The client has read everything that was observed."""
        self._silent_since = anyio.current_time()

    async def run(self) -> None:
        """Wait until the server has been silent for `bounds.eof`, counted from now at the earliest, then terminate it."""
        began = anyio.current_time()
        while (left := max(began, self._silent_since) + self._bounds.eof - anyio.current_time()) > 0:  # noqa: ASYNC110 - a clock
            await anyio.sleep(min(left, self._bounds.eof))
        await terminate(self._server, self._bounds)


async def terminate(server: ServerProcess, bounds: EndBounds) -> None:
    """Send SIGTERM, and SIGKILL after `bounds.terminate`."""
    await server.end(msgspec.structs.replace(bounds, eof=0.0))


async def forward(
    stream: StreamName,
    source: ByteTransport,
    sink: ByteTransport,
    observe: Observer,
    delivered: Callable[[], None] = do_nothing,
) -> bool:
    """Copy until the source ends, which returns True, or the sink's reader is gone, which returns False.

    Reads no faster than the sink takes it. `delivered` is called whenever the sink has taken what was last read.
    """
    try:
        while True:
            began = anyio.current_time()
            data = await source.receive()
            observe(stream, data, rested=anyio.current_time() - began >= SILENCE_SECONDS["long"])
            if not data:
                return True
            await sink.send(data)
            delivered()
    except PeerGone:
        return False


async def forward_stderr(source: ByteTransport, sink: ByteTransport, server: ServerProcess, observe: Observer) -> None:
    """Pass on the server's stderr until it ends. `LINGER_SECONDS` after the server's exit it counts as ended."""
    async with background_tasks() as tasks:
        tasks.start_soon(_cancel_after_exit, server, tasks.cancel_scope)
        if not await forward("stderr", source, sink, observe):
            while data := await source.receive():  # nobody reads this process's stderr, but the server must not block
                observe("stderr", data)


async def _forward_client(
    client: ClientStreams,
    server: ServerProcess,
    observe: Observer,
    silence: _SilenceTimeout,
    session: anyio.CancelScope,
) -> None:
    if not await forward("client", client.incoming, server, observe):
        client.incoming.close()  # the server reads no more, and the client should see that
        await _cancel_on_hang_up(client, session)
    server.send_eof()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(silence.run)
        tasks.start_soon(_cancel_on_hang_up, client, session)


async def _cancel_on_hang_up(client: ClientStreams, session: anyio.CancelScope) -> None:
    while not client.hung_up():  # noqa: ASYNC110 - no event reports a reader that goes away
        await anyio.sleep(HANG_UP_POLL_SECONDS)
    session.cancel()


async def _cancel_after_exit(server: ServerProcess, scope: anyio.CancelScope) -> None:
    await server.wait()
    await anyio.sleep(LINGER_SECONDS)
    scope.cancel()


def reader_is_gone(fd: int) -> bool:
    """Whether the reader of a pipe, a socket or a terminal is gone for good. False if the system can't say."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(fd, select.POLLOUT)  # macOS watches nothing where nothing is asked for
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
