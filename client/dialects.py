"""Describes protocols on top of JSON-RPC as far as a client must know them. Holds values and sends nothing.

A server of such a protocol answers nothing before its handshake, so each process that is started needs one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..framing.events import Framing
from ..version import __version__
from .messages import encode_notification

Handshake: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Called with a `Peer` of the connection, before anything else uses it, or after. Its result is ignored."""

TracePlace: TypeAlias = Literal["service_params", "meta"]
"""`serviceParams` beside the params (headers by HTTP), or `_meta` in them."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol on top of JSON-RPC: its framing, its handshake, and how it cancels and traces requests.

    `cancel` is the method of the notification that cancels a request; `cancel_member` is the member of its params that holds
    the request's id. `progress` is the method of the notification about a request's progress; `progress_member` is the member
    of its params that holds the token. A request asks for progress in `workDoneToken` with `work_done_token`, else in
    `_meta.progressToken`.

    With `a2a`, errors −32001 to −32009 of A2A's methods are A2A's; other protocols use these numbers for errors of their own.
    `trace` is the place of a request that names its span; None for none. `farewell` is sent before the connection ends; it has
    `FAREWELL_SECONDS`, and its failures are ignored. Use `msgspec.structs.replace` for a handshake of your own.
    """

    framing: Framing = "content-length"
    handshake: Handshake | None = None
    farewell: Handshake | None = None
    cancel: str = "$/cancelRequest"
    cancel_member: str = "id"
    progress: str = "$/progress"
    progress_member: str = "token"
    work_done_token: bool = False
    a2a: bool = False
    trace: TracePlace | None = None

    def cancellation(self, request_id: int) -> bytes:
        """Encode the notification that cancels a request."""
        return encode_notification(self.cancel, {self.cancel_member: request_id})


def initialize_handshake(params: Mapping[str, object], *, then: str | None = None) -> Handshake:
    """Make a handshake that sends the request `initialize`, waits for the answer, and sends the notification `then`."""

    async def shake_hands(peer: Any) -> None:  # a `Peer`, which is made of this module's classes
        await peer.call("initialize", params)
        if then is not None:
            await peer.notify(then, {})

    return shake_hands


FAREWELL_SECONDS: Final = 2.0
"""How long a server may take to answer the farewell. The connection ends then anyway."""


async def shut_down(peer: Any) -> None:  # a `Peer`
    """End a language server (LSP 3.17, sections Shutdown Request and Exit Notification)."""
    await peer.call("shutdown")
    await peer.notify("exit")


CLIENT_INFO: Final = {"name": "discreet", "version": __version__}

PLAIN: Final = Dialect(a2a=True, trace="service_params")
"""JSON-RPC as the daemon speaks it: no handshake, and LSP's `$/cancelRequest`."""

LSP: Final = Dialect(
    handshake=initialize_handshake(
        {"processId": None, "clientInfo": CLIENT_INFO, "rootUri": None, "capabilities": {}}, then="initialized"
    ),
    farewell=shut_down,
    work_done_token=True,
)
"""Language Server Protocol 3.17."""

MCP: Final = Dialect(
    framing="newline",
    handshake=initialize_handshake(
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT_INFO},
        then="notifications/initialized",
    ),
    cancel="notifications/cancelled",
    cancel_member="requestId",
    progress="notifications/progress",
    progress_member="progressToken",
    trace="meta",
)
"""Model Context Protocol, stdio transport. A server that answers with another revision is accepted."""

ACP: Final = Dialect(
    framing="newline",
    handshake=initialize_handshake({"protocolVersion": 1, "clientCapabilities": {}}),
    cancel="$/cancel_request",
    cancel_member="requestId",
    trace="meta",
)
"""Agent Client Protocol 1. It ends a turn of a session with its own notification, `session/cancel`."""

DIALECTS: Final = {"plain": PLAIN, "lsp": LSP, "mcp": MCP, "acp": ACP}
"""The dialects by their names on the command line."""
