"""Pools connections to a few servers: opened through the guard, kept while they may be used again, bounded. Sends nothing."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...lazy import anyio
from .connection import HttpConnection, OutboundError
from .network import AddressRefusedError, Destination, Network, Origin, SystemNetwork, connect_checked, secure

if TYPE_CHECKING:
    from anyio.abc import SocketStream

MAX_CONNECTIONS: Final = 128
"""Connections in use."""

MAX_IDLE: Final = 16

IDLE_SECONDS: Final = 4.0
"""How long an unused connection is kept: less than the 5 s of uvicorn's default, after which the server would close it just
when a request goes out."""


class PoolTimeouts(msgspec.Struct, frozen=True):
    """Seconds: for a connection to be made, and as many again for TLS; for one to become free."""

    connect: float = 10.0
    free: float = 10.0


@final
class ConnectionPool:
    """Used on one event loop. With `allow_private`, private and loopback addresses are connected to. Servers are trusted by
    `ssl_context`, without one as the network says."""

    def __init__(
        self,
        *,
        allow_private: bool,
        network: Network | None = None,
        timeouts: PoolTimeouts = PoolTimeouts(),  # noqa: B008 - immutable
        max_connections: int = MAX_CONNECTIONS,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._network = network or SystemNetwork()
        self._allow_private = allow_private
        self._timeouts = timeouts
        self._free = anyio.Semaphore(max_connections)
        self._idle: list[tuple[Origin, HttpConnection]] = []
        self._ssl_context = ssl_context
        self._opening = anyio.Lock()

    @asynccontextmanager
    async def connection(self, to: Destination) -> AsyncGenerator[HttpConnection]:
        """A connection for one request. It is kept at the end if its response was read to the end. Raises `OutboundError`."""
        await self._wait_for_room()
        try:
            connection = await self._take(to.origin) or await self._connect(to)
            try:
                yield connection
            finally:
                await self._give_back(to.origin, connection)
        finally:
            self._free.release()

    async def aclose(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            await self._idle.pop()[1].aclose()

    async def _wait_for_room(self) -> None:
        try:
            self._free.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self._timeouts.free) as waiting:
                await self._free.acquire()
            if waiting.cancelled_caught:
                raise OutboundError("connections") from None

    async def _take(self, origin: Origin) -> HttpConnection | None:
        """The idle connection to the server that was used last."""
        await self._close_expired()
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index][0] == origin:
                return self._idle.pop(index)[1]
        return None

    async def _give_back(self, origin: Origin, connection: HttpConnection) -> None:
        if not connection.is_reusable():
            await connection.aclose()
            return
        connection.idle_until = anyio.current_time() + IDLE_SECONDS
        self._idle.append((origin, connection))
        if len(self._idle) > MAX_IDLE:
            await self._idle.pop(0)[1].aclose()

    async def _close_expired(self) -> None:
        now = anyio.current_time()
        closing = [each for each in self._idle if each[1].idle_until <= now or each[1].is_broken()]
        self._idle = [each for each in self._idle if each not in closing]
        for _, connection in closing:
            await connection.aclose()

    async def _connect(self, to: Destination) -> HttpConnection:
        context = await self._trust() if to.scheme == "https" else None
        timeout = self._timeouts.connect
        try:
            if to.socket:
                with anyio.fail_after(timeout):
                    return HttpConnection(await anyio.connect_unix(to.socket))
            stream: SocketStream = await connect_checked(
                self._network, to.host, to.port, timeout=timeout, allow_private=self._allow_private
            )
            secured = stream if context is None else await secure(stream, to.host, context, timeout=timeout)
            return HttpConnection(secured)
        except AddressRefusedError as exc:
            raise OutboundError("address") from exc
        except TimeoutError as exc:
            raise OutboundError("connect-timeout") from exc
        except ssl.SSLError as exc:
            raise OutboundError("tls") from exc
        except socket.gaierror as exc:
            raise OutboundError("unresolved") from exc
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as exc:
            raise OutboundError("connect") from exc

    async def _trust(self) -> ssl.SSLContext:
        async with self._opening:
            if self._ssl_context is None:
                context = await anyio.to_thread.run_sync(self._network.ssl_context)  # reads hundreds of certificates
                context.set_alpn_protocols(["http/1.1"])
                self._ssl_context = context
            return self._ssl_context
