"""Passes the bytes of a session between client and server, and shows them to an observer.

Never interprets the bytes, never holds more than one read of each direction, never waits for the observer.
"""

from __future__ import annotations

import math
import select
import sys
from collections.abc import Callable
from typing import Final, Protocol

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


class ClientStreams(msgspec.Struct, frozen=True):
    """The streams to the client: `incoming` is its output, `outgoing` its input. `hung_up` says whether it stopped reading."""

    incoming: ByteTransport
    outgoing: ByteTransport
    hung_up: Callable[[], bool]


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
    silent_since = anyio.current_time()  # never while the server's output waits for the client to read it

    def observe_server(stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        nonlocal silent_since
        silent_since = math.inf if data else anyio.current_time()
        observe(stream, data, rested=rested)

    def delivered() -> None:
        nonlocal silent_since
        silent_since = anyio.current_time()

    async def end_silent_server() -> None:
        began = anyio.current_time()
        while (left := max(began, silent_since) + bounds.eof - anyio.current_time()) > 0:  # noqa: ASYNC110 - a clock
            await anyio.sleep(min(left, bounds.eof))
        await terminate(server, bounds)

    async def cancel_on_hang_up() -> None:
        while not client.hung_up():  # noqa: ASYNC110 - no event reports a reader that goes away
            await anyio.sleep(HANG_UP_POLL_SECONDS)
        tasks.cancel_scope.cancel()

    async def forward_client() -> None:
        if not await forward("client", client.incoming, server, observe):
            client.incoming.close()  # the server reads no more, and the client should see that
            await cancel_on_hang_up()
        server.send_eof()
        async with anyio.create_task_group() as ending:
            ending.start_soon(end_silent_server)
            ending.start_soon(cancel_on_hang_up)

    async with background_tasks() as tasks:
        tasks.start_soon(forward_client)
        if await forward("server", server, client.outgoing, observe_server, delivered):
            client.outgoing.send_eof()
            await server.wait()


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
