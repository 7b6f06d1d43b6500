"""The Language Server Protocol, as a plug-in of the daemon: `Plugin` in `daemon/connection/session` says what the module has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from ...daemon.connection.session import ClientConnection, DaemonControl
    from ...daemon.host import Host
    from ...daemon.operations.request import Request
    from .session import LspSession


FRAMING: Final = "content-length"
HAS_SHUTDOWN: Final = True
HAS_AGENT_METHODS: Final = False


def open_session(connection: ClientConnection, control: DaemonControl, saved: bytes) -> LspSession:
    from .session import LspSession  # late: checks do without

    return LspSession(connection, control, saved)


def begins_with(first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
    version = bytes(params.get("protocolVersion", b""))[:1]  # of MCP it is a string, of ACP a number
    return first.method == "initialize" and version != b'"' and not version.isdigit()


def check(host: Host) -> None:
    from .capabilities import announcement  # late: only who declares operations for editors is checked

    announcement(host.catalogue.operations)
