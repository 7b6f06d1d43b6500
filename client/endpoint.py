"""This side of the wire: the handlers, call defaults and request ids that outlast a single connection.

Opens connections through the dialect's handshake and makes peers. Starts no process.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import final

import msgspec

from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from .connection.connection import Connection
from .connection.connector import ClientConnection, Connector, FixedConnector, open_connection
from .connection.handlers import Handlers
from .dialects import Dialect
from .errors import ClientError, ConnectionFailed, ConnectionLoss, DeclaredErrors
from .peer import CallDefaults, Peer
from .policies.operation_kinds import Kinds
from .policies.retry import RetryPolicy
from .validation import check_errors, check_framing, check_instance, check_strings, check_timeout


@final
class Endpoint:
    """Shared by every connection of one `connect` or `attach`. Raises `TypeError` and `ValueError` for wrong arguments.

    All its peers count request ids on from each other, because some protocols forbid using an id twice.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        framing: Framing | None,
        timeout: float | None,
        errors: DeclaredErrors,
        retry: RetryPolicy | None,
        service_params: Mapping[str, str] | None = None,
    ) -> None:
        check_instance("dialect", dialect, Dialect)
        check_framing(framing)
        check_framing(dialect.framing, "dialect.framing")
        check_timeout(timeout)
        check_errors(errors)
        check_instance("retry", retry, RetryPolicy, optional=True)
        check_strings("service_params", service_params)
        self._dialect = dialect
        self._framing: Framing = framing or dialect.framing
        self._handlers = Handlers(dialect)
        self._defaults = CallDefaults(timeout, tuple(errors), retry, dict(service_params or {}))
        self._ids = count(1)

    @asynccontextmanager
    async def open(
        self, transport: ByteTransport, explain: Callable[[], Awaitable[ConnectionLoss]]
    ) -> AsyncGenerator[Connection]:
        """A connection that is through the handshake. Raises `ConnectionFailed` when the handshake fails."""
        async with open_connection(transport, self._handlers, framing=self._framing, explain=explain) as connection:
            await self._shake_hands(connection)
            yield connection

    def peer(self, connector: Connector, *, kinds: Kinds | None = None) -> Peer:
        """A peer whose calls take their connection from `connector`. Without `kinds` it asks the server what is a query."""
        return Peer(connector, self._handlers, self._defaults, ids=self._ids, kinds=kinds)

    def fixed_peer(self, connection: ClientConnection, *, kinds: Kinds | None = None) -> Peer:
        """A peer over this connection only."""
        return self.peer(FixedConnector(connection), kinds=kinds)

    async def _shake_hands(self, connection: Connection) -> None:
        if self._dialect.handshake is None:
            return
        no_retries = msgspec.structs.replace(self._defaults, retry=None)
        peer = Peer(FixedConnector(connection), self._handlers, no_retries, ids=self._ids)
        try:
            await self._dialect.handshake(peer)
        except ConnectionFailed:
            raise
        except ClientError as exc:
            raise ConnectionFailed(ConnectionLoss(f"the handshake failed: {exc}")) from exc
