"""What protocols on top of JSON-RPC add to it, as far as the connection must know. Holds values; sends nothing by itself.

A server of such a protocol answers nothing before its handshake, so that each process that is started needs one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from .. import __version__
from ..framing.events import Framing
from .messages import encode_request

if TYPE_CHECKING:
    from .peer import Peer

Handshake: TypeAlias = "Callable[[Peer], Awaitable[Any]]"
"""Called with a peer of the new connection, before anybody else uses it. What it returns is of no account."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol frames its messages, begins a connection, and cancels a request.

    `cancel` is the notification that asks the other side to drop a request, `cancel_member` the one of its params that holds
    the request's id. `a2a` says that errors −32001 to −32009 are those of A2A; other protocols use these numbers for errors of
    their own. With `msgspec.structs.replace` a dialect gets a handshake of your own.
    """

    framing: Framing = "content-length"
    handshake: Handshake | None = None
    cancel: str = "$/cancelRequest"
    cancel_member: str = "id"
    a2a: bool = False

    def cancellation(self, call_id: int) -> bytes:
        """The notification that asks the server to drop a request."""
        return encode_request(None, self.cancel, {self.cancel_member: call_id})


def initialize(params: Mapping[str, object], *, then: str | None = None) -> Handshake:
    """The handshake that begins with the request `initialize`, and ends with the notification `then` behind its answer."""

    async def shake(peer: Peer) -> None:
        await peer.call("initialize", params)
        if then is not None:
            await peer.notify(then, {})

    return shake


_CLIENT_INFO: Final = {"name": "discreet", "version": __version__}

PLAIN: Final = Dialect(a2a=True)
"""JSON-RPC as the daemon speaks it: no handshake, and LSP's `$/cancelRequest`."""

LSP: Final = Dialect(
    handshake=initialize(
        {"processId": None, "clientInfo": _CLIENT_INFO, "rootUri": None, "capabilities": {}}, then="initialized"
    )
)
"""Language Server Protocol 3.17."""

MCP: Final = Dialect(
    framing="newline",
    handshake=initialize(
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT_INFO},
        then="notifications/initialized",
    ),
    cancel="notifications/cancelled",
    cancel_member="requestId",
)
"""Model Context Protocol, stdio transport. A server of another revision answers with its own, and is taken as it is."""

ACP: Final = Dialect(framing="newline", handshake=initialize({"protocolVersion": 1, "clientCapabilities": {}}))
"""Agent Client Protocol 1, which ends a turn of a session with a notification of its own, `session/cancel`."""

DIALECTS: Final = {"plain": PLAIN, "lsp": LSP, "mcp": MCP, "acp": ACP}
"""By the names that the command line gives them."""
