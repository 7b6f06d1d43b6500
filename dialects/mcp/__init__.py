"""The Model Context Protocol, as a plug-in of the daemon: `Plugin` in `daemon/connection/session` says what the module has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from ...daemon.connection.session import ClientConnection, DaemonControl
    from ...daemon.host import Host
    from ...daemon.operations.request import Request
    from .session import McpSession


FRAMING: Final = "newline"
HAS_SHUTDOWN: Final = False
HAS_AGENT_METHODS: Final = False


def open_session(connection: ClientConnection, control: DaemonControl, saved: bytes) -> McpSession:
    from .session import McpSession  # late: checks do without

    return McpSession(connection, saved)


def begins_with(first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
    from ...daemon.connection.session import members_of  # late: few connections have to find out

    if any(name.startswith("io.modelcontextprotocol/") for name in members_of(params.get("_meta"))):
        return True
    return first.method == "initialize" and bytes(params.get("protocolVersion", b""))[:1] == b'"'


def check(host: Host) -> None:
    from .state import Offered  # late, as above

    Offered(host)
