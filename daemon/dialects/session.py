"""A client's session in the dialect that it speaks: how its messages are written, and which methods it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, assert_never, final

import msgspec

from ...errors.codes import DialectName
from ...errors.type_building import decoder_for
from ..operations.service import DeclarationError, Service
from ..rpc.dialect import PLAIN, Dialect
from ..services import builtins
from ..services.builtins import Life
from .surface import Surface

if TYPE_CHECKING:
    from ..documents.store import Documents
    from ..rpc.envelope import Call


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


def check_declarations(surface: Surface) -> None:
    """Raises `DeclarationError` where the services can't be served in every dialect. Opens no session: that costs more."""
    from .acp.errors import check_declarations as check_acp  # late: each dialect loads when it is spoken
    from .lsp.capabilities import announcement
    from .mcp.state import McpState

    specs = surface.host.catalogue.operations
    checks: dict[DialectName, Callable[[], object]] = {
        "lsp": lambda: announcement(specs),
        "mcp": lambda: McpState(surface),
        "acp": lambda: check_acp(specs),
    }
    for name, check in checks.items():
        try:
            check()
        except DeclarationError as exc:
            raise DeclarationError(f"{exc} (dialect auto speaks {name}, too; choose one with --dialect)") from None


_MCP_META = "io.modelcontextprotocol/"


def dialect_of(first: Call) -> DialectName:
    """What the client speaks that begins with this message."""
    params = _members(first.params)
    if any(name.startswith(_MCP_META) for name in _members(params.get("_meta"))):
        return "mcp"
    if first.method != "initialize":
        return "plain"
    match bytes(params.get("protocolVersion", b""))[:1]:
        case b'"':
            return "mcp"
        case digit if digit.isdigit():
            return "acp"
        case _:
            return "lsp"


def _members(text: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    try:
        return decoder_for(dict[str, msgspec.Raw])(text or b"{}")
    except msgspec.DecodeError:
        return {}
