"""Where a peer finds its connection: one that lasts as long as its transport here, one that is renewed in `restart`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, final

from ...framing.events import Framing
from ...framing.transports.interface import ByteTransport
from ..errors import Loss
from ..task_group import background_tasks
from .connection import Connection
from .handlers import Handlers


class Connector(Protocol):
    """Gives out the connection of the moment."""

    @property
    def over(self) -> bool:
        """No later call can succeed."""
        ...

    async def connection(self) -> Connection:
        """A connection that was usable a moment ago. Raises `ConnectionFailed`; then nothing was sent."""
        ...


@final
class FixedConnector:
    """The one connection there is, whatever became of it: using it tells."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def over(self) -> bool:
        return not self._connection.usable

    async def connection(self) -> Connection:
        return self._connection


@asynccontextmanager
async def opened(
    transport: ByteTransport, served: Handlers, *, framing: Framing, explain: Callable[[], Awaitable[Loss]]
) -> AsyncGenerator[Connection]:
    """A connection over a transport, for as long as the block runs; leaving flushes it, in bounded time."""
    connection: Connection | None = None
    try:
        async with background_tasks() as tasks:
            connection = Connection(transport, tasks, served=served, framing=framing, explain=explain)
            yield connection
    finally:
        if connection is not None:
            await connection.close()
