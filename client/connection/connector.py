"""Opens connections, and gives the peer the one to use.

`FixedConnector` always gives the same connection; `policies.restart` has the connector that replaces a dead server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, final

from ...framing.events import Framing
from ...framing.transports.interface import ByteTransport
from ..errors import ConnectionLoss
from ..task_group import background_tasks
from .connection import Connection
from .handlers import Handlers


class Connector(Protocol):
    """Gives the connection that a call should use now."""

    @property
    def closed(self) -> bool:
        """No later call can succeed."""
        ...

    async def connection(self) -> Connection:
        """A connection that was usable a moment ago. Raises `ConnectionFailed`; then nothing was sent."""
        ...


@final
class FixedConnector:
    """Always gives the same connection, even after its end: then using it raises `ConnectionFailed`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def closed(self) -> bool:
        return not self._connection.usable

    async def connection(self) -> Connection:
        return self._connection


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
