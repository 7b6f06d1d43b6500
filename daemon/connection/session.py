"""A client's session in the dialect that it speaks: how its messages are written, and which methods it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, assert_never

import msgspec

from ...errors.codes import DialectName
from ...errors.type_building import decoder_for
from ..logs import log
from ..operations.service import DeclarationError, Service
from ..rpc.dialect import Dialect
from .client_connection import ClientConnection, DaemonControl

if TYPE_CHECKING:
    from ...dialects.lsp.documents.store import Documents
    from ...dialects.mcp.state import Offered
    from ..host import Host
    from ..operations.spec import OperationSpec
    from ..rpc.envelope import Call


class Session(Protocol):
    """One per connection, made when it is known what the client speaks."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def documents(self) -> Documents | None:
        """The documents that the client has open; None where the dialect has none."""
        ...

    def services(self) -> Iterable[Service]:
        """The methods of this connection alone, beside those of the hosted services. Raises `DeclarationError`."""
        ...

    def save(self) -> bytes:
        """What the next program needs to go on with the session, after a reload."""
        ...


def open_session(
    name: DialectName, connection: ClientConnection, control: DaemonControl, saved: bytes = b""
) -> Session:
    """Begin a session in this dialect, or go on with one that a program before this one left. Raises `DeclarationError`."""
    unheard = connection.host.catalogue.shutdowns if name in ("mcp", "acp") else ()
    if unheard:
        hint = f"clients of {name} send no shutdown; what must happen at the end belongs into Service(lifespan=…)"
        log.warning("shutdown.unheard", services=[spec.namespace for spec in unheard], hint=hint)
    try:
        return _open(name, connection, control, saved)
    except DeclarationError as exc:
        raise with_place(exc, connection.host.catalogue.operations) from exc


def _open(name: DialectName, connection: ClientConnection, control: DaemonControl, saved: bytes) -> Session:
    match name:
        case "plain":
            from .plain import PlainSession  # late: each dialect loads when it is spoken

            return PlainSession(connection, control)
        case "lsp":
            from ...dialects.lsp.session import LspSession

            return LspSession(connection, control, saved)
        case "mcp":
            from ...dialects.mcp.session import McpSession

            return McpSession(connection, saved)
        case "acp":
            from ...dialects.acp.session import AcpSession

            return AcpSession(connection, saved)
        case _:
            assert_never(name)


def check_declarations(connection: ClientConnection) -> None:
    """Raises `DeclarationError` where the services can't be served in every dialect. Opens no session: that costs more."""
    from ...dialects.acp.errors import check_declarations as check_acp  # late: each dialect loads when it is spoken
    from ...dialects.lsp.capabilities import announcement
    from ...dialects.mcp.state import Offered

    specs = connection.host.catalogue.operations
    checks: dict[DialectName, Callable[[], object]] = {
        "lsp": lambda: announcement(specs),
        "mcp": lambda: Offered(connection.host),
        "acp": lambda: check_acp(specs),
    }
    for name, check in checks.items():
        try:
            check()
        except DeclarationError as exc:
            placed = with_place(exc, specs)
            raise DeclarationError(f"{placed} (dialect auto speaks {name}, too; choose one with --dialect)") from None


def offered_by(host: Host) -> Offered:
    """What clients of MCP are offered. Raises `DeclarationError`."""
    from ...dialects.mcp.state import Offered  # late: each dialect loads when it is spoken

    try:
        return Offered(host)
    except DeclarationError as exc:
        raise with_place(exc, host.catalogue.operations) from exc


def with_place(exc: DeclarationError, specs: Iterable[OperationSpec]) -> DeclarationError:
    """The same error with the places of the operations that it begins with."""
    named = re.match(r"operations? (\S+?)(?::| and (\S+) )", str(exc))
    wanted = named.groups() if named else ()
    places = [spec.source for spec in specs if spec.name in wanted and spec.source]
    return DeclarationError(f"{exc} ({', '.join(places)})") if places else exc


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
