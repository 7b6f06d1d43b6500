"""A peer over any byte transport, once the dialect's handshake is through. Starts no process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from .connection.connection import Connection
from .connection.connector import FixedConnector, opened
from .connection.handlers import Handlers
from .dialects import PLAIN, Dialect
from .errors import ClientError, ConnectionFailed, DeclaredErrors, Loss
from .peer import DEFAULT_TIMEOUT, Defaults, Peer
from .policies.retry import RetryPolicy
from .validation import check_framing, check_timeout


async def _just_ended() -> Loss:
    return Loss("the server ended the connection")


@asynccontextmanager
async def attach(
    transport: ByteTransport,
    *,
    framing: Framing | None = None,
    dialect: Dialect = PLAIN,
    timeout: float | None = DEFAULT_TIMEOUT,
    errors: DeclaredErrors = (),
    retry: RetryPolicy | None = None,
    explain: Callable[[], Awaitable[Loss]] = _just_ended,
) -> AsyncGenerator[Peer]:
    """A `Peer` over a transport, for as long as the block runs. The transport stays the caller's to close.

    `dialect` is what the server speaks on top of JSON-RPC (`PLAIN`, `LSP`, `MCP`, `ACP` or one of your own), `framing` how it
    tells messages apart where that is not the dialect's way. `timeout` is what `Peer.call` uses when it is given none, in
    seconds; `errors` are known to every call; `retry` says when a call that failed is made again. `explain` is asked, once,
    why the input ended. Leaving gives the server a bounded time to take what was sent, and ends what other tasks still
    wait for with `ConnectionFailed`.

    Raises `ConnectionFailed` when the dialect's handshake fails, `ValueError` for wrong arguments.
    """
    check_framing(framing)
    check_timeout(timeout)
    served = Handlers(dialect)
    defaults = Defaults(timeout, tuple(errors), retry)
    ids = count(1)
    async with opened(transport, served, framing=framing or dialect.framing, explain=explain) as connection:
        await shake_hands(connection, served, defaults, ids)
        yield Peer(FixedConnector(connection), served, defaults, ids=ids)


async def shake_hands(connection: Connection, served: Handlers, defaults: Defaults, ids: Iterator[int]) -> None:
    """Run the dialect's handshake, if it has one. `ids` are those of all requests, as some protocols want none used twice.

    Raises `ConnectionFailed`, whatever became of it: there is nothing to be had from this server.
    """
    if served.dialect.handshake is None:
        return
    alone = msgspec.structs.replace(defaults, retry=None)
    try:
        await served.dialect.handshake(Peer(FixedConnector(connection), served, alone, ids=ids))
    except ConnectionFailed:
        raise
    except ClientError as exc:
        raise ConnectionFailed(Loss(f"the handshake failed: {exc}")) from exc
