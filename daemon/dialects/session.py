"""A client's session in the dialect that it speaks: how its messages are written, and which methods it finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, assert_never, final

import msgspec

from ...errors.codes import DialectName
from ...errors.type_building import decoder_for
from ..rpc.dialect import PLAIN, Dialect
from ..services import builtins
from ..services.builtins import Life
from .surface import Surface

if TYPE_CHECKING:
    from ..documents.store import Documents
    from ..operations.service import Service
    from ..rpc.envelope import Call

__all__ = ["PlainSession", "Session", "Surface", "dialect_of", "open_session"]


class Session(Protocol):
    """One per connection, made when it is known what the client speaks."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def documents(self) -> Documents:
        """The documents that the client has open. Empty where the dialect has none."""
        ...

    def services(self) -> Iterable[Service]:
        """The methods of this connection alone, beside those of the hosted services. Raises `DeclarationError`."""
        ...

    def state(self) -> bytes:
        """What the next program needs to go on with the session, after a reload."""
        ...


@final
class PlainSession:
    """JSON-RPC with the built-in methods of section 7 of docs/protocol.md."""

    def __init__(self, surface: Surface, life: Life) -> None:
        self._surface = surface
        self._life = life
        self.dialect: Dialect = PLAIN

    @property
    def documents(self) -> Documents:
        from ..documents.store import Documents  # late: nobody asks for it here

        return Documents()

    def services(self) -> Iterable[Service]:
        return [builtins.builtins(self._surface, self._life)]

    def state(self) -> bytes:
        return b""


def open_session(name: DialectName, surface: Surface, life: Life, state: bytes = b"") -> Session:
    """Begin a session in this dialect, or go on with one that a program before this one left. Raises `DeclarationError`."""
    match name:
        case "plain":
            return PlainSession(surface, life)
        case "lsp":
            from .lsp.session import LspSession  # late: each dialect loads when it is spoken

            return LspSession(surface, life, state)
        case "mcp":
            from .mcp.session import McpSession

            return McpSession(surface, life, state)
        case "acp":
            from .acp.session import AcpSession

            return AcpSession(surface, life, state)
        case _:
            assert_never(name)


class _FirstParams(msgspec.Struct):
    protocol_version: Any = msgspec.field(name="protocolVersion", default=None)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_MCP_META = "io.modelcontextprotocol/"


def dialect_of(first: Call) -> DialectName:
    """What the client speaks that begins with this message."""
    try:
        params = decoder_for(_FirstParams)(first.params or b"{}")
    except msgspec.DecodeError:
        params = _FirstParams()
    if any(name.startswith(_MCP_META) for name in params.meta or ()):
        return "mcp"
    if first.method != "initialize":
        return "plain"
    match params.protocol_version:
        case int():
            return "acp"
        case str():
            return "mcp"
        case _:
            return "lsp"
