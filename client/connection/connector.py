"""Opens connections, and gives the peer the one to use.

`FixedConnector` always gives the same connection; `policies.restart` has the connector that replaces a dead server.
`OwnLoop` keeps other event loops off either of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, final

from anyio.lowlevel import current_token

from ...framing.events import Framing
from ...framing.transports.interface import ByteTransport
from ..errors import ConnectionLoss
from ..messages import OutgoingRequest
from ..task_group import background_tasks
from .connection import Connection
from .handlers import Handlers
from .pending import PendingRequest, PendingStream


class ClientConnection(Protocol):
    """What carries the requests of a peer. `Connection` does it over a byte transport, `client.http` by HTTP."""

    @property
    def checks_subscriptions(self) -> bool:
        """Whether a subscription first goes through `services/subscribe`."""
        ...

    @property
    def usable(self) -> bool:
        """Whether requests can be sent, as far as is known."""
        ...

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        """Send a request that somebody will wait for. `request` takes the answer.

        Raises `ConnectionFailed`; then nothing was sent. Raises `ValueError` for what this connection can't carry.
        """
        ...

    def forget(self, request: PendingRequest) -> bool:
        """Stop waiting for a request, and have the server cancel it if it has not answered. Never waits.

        Returns whether the request may have left this process.
        """
        ...

    async def send(self, body: bytes) -> None:
        """Send a message that has no answer. Raises `ConnectionFailed`."""
        ...

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a message. Raises `ConnectionFailed`."""
        ...

    def resume_reading(self) -> None:
        """A consumer took an event: there is room for more."""
        ...

    def tell_taken(self, stream: PendingStream) -> None:
        """Tell the server which events the consumer has taken, which it has opened a window for. Never waits."""
        ...


class Connector(Protocol):
    """Gives the connection that a call should use now."""

    @property
    def closed(self) -> bool:
        """No later call can succeed."""
        ...

    async def connection(self) -> ClientConnection:
        """A connection that was usable a moment ago. Raises `ConnectionFailed`; then nothing was sent."""
        ...


@final
class FixedConnector:
    """Always gives the same connection, even after its end: then using it raises `ConnectionFailed`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @property
    def closed(self) -> bool:
        return not self._connection.usable

    async def connection(self) -> ClientConnection:
        return self._connection


@final
class OwnLoop:
    """A connector for the event loop that it is made in: in another one, whoever waits would never be woken."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._loop = current_token().native_token

    @property
    def closed(self) -> bool:
        return self._connector.closed

    async def connection(self) -> ClientConnection:
        """As `Connector` says. Raises `RuntimeError` in another event loop, unless the connection is closed anyway."""
        self.require()
        return await self._connector.connection()

    def require(self) -> None:
        """Raise `RuntimeError` in another event loop, unless the connection is closed anyway."""
        if current_token().native_token is not self._loop and not self.closed:
            raise RuntimeError(
                "this peer belongs to another event loop: use it there, or connect with discreet.client.blocking,"
                " whose peer any thread may use"
            )


@asynccontextmanager
async def open_connection(
    transport: ByteTransport, handlers: Handlers, *, framing: Framing, explain: Callable[[], Awaitable[ConnectionLoss]]
) -> AsyncGenerator[Connection]:
    """A connection over a transport, for as long as the block runs. Leaving flushes it, in bounded time."""
    connection: Connection | None = None
    try:
        async with background_tasks() as tasks:
            connection = Connection(transport, tasks, handlers=handlers, framing=framing, explain=explain)
            yield connection
    finally:
        if connection is not None:
            await connection.close()
