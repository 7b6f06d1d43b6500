"""Gives a `Peer` over any byte transport. Starts no process and never closes the transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from ..async_block import async_block
from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from .dialects import PLAIN, Dialect
from .endpoint import Endpoint
from .errors import ConnectionLoss, DeclaredErrors
from .peer import DEFAULT_TIMEOUT, Peer
from .policies.retry import RetryPolicy
from .validation import check_callback


async def _ended_by_server() -> ConnectionLoss:
    return ConnectionLoss("the server ended the connection")


@async_block
async def attach(
    transport: ByteTransport,
    *,
    framing: Framing | None = None,
    dialect: Dialect = PLAIN,
    timeout: float | None = DEFAULT_TIMEOUT,
    errors: DeclaredErrors = (),
    retry: RetryPolicy | None = None,
    service_params: Mapping[str, str] | None = None,
    explain: Callable[[], Awaitable[ConnectionLoss]] = _ended_by_server,
) -> AsyncGenerator[Peer]:
    """A `Peer` over a transport, for as long as the block runs. The caller closes the transport.

    `dialect` is the protocol on top of JSON-RPC that the server speaks: `PLAIN`, `LSP`, `MCP`, `ACP` or one of your own.
    `framing` overrides the dialect's framing. `timeout` is the default of `Peer.call`, in seconds. Every call decodes the
    details of `errors`, and sends `service_params` beside its own. `retry` says when a failed call is made again. `explain`
    is called once, after the input ended, and returns the reason.

    Leaving the block gives the server up to a second to take what was already sent. Calls of other tasks that still wait
    then raise `ConnectionFailed`.

    Raises `ConnectionFailed` when the dialect's handshake fails, and `TypeError` or `ValueError` for wrong arguments.
    """
    if not callable(getattr(transport, "receive_nowait", None)):
        raise TypeError(f"transport must be a byte transport, not {transport!r}; for a command there is `connect`")
    check_callback("explain", explain)
    endpoint = Endpoint(
        dialect, framing=framing, timeout=timeout, errors=errors, retry=retry, service_params=service_params
    )
    async with endpoint.open(transport, explain) as connection:
        yield endpoint.fixed_peer(connection)
