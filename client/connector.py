"""What gives a peer the connection to use, and what a connection is to it.

`FixedConnector` always gives the same one; `restart` has the connector that replaces a dead server. `OwnLoop` keeps other
event loops off either of them.
"""

from __future__ import annotations

from typing import Protocol, final

from anyio.lowlevel import current_token

from .messages import OutgoingRequest
from .pending import PendingRequest


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
