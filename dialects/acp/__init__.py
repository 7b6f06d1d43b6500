"""The Agent Client Protocol, as a plug-in of the daemon: `Plugin` in `daemon/connection/session` says what the module has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from ...daemon.connection.session import ClientConnection, DaemonControl
    from ...daemon.host import Host
    from ...daemon.operations.request import Request
    from .session import AcpSession


FRAMING: Final = "newline"
HAS_SHUTDOWN: Final = False
HAS_AGENT_METHODS: Final = True


def open_session(connection: ClientConnection, control: DaemonControl, saved: bytes) -> AcpSession:
    from .session import AcpSession  # late: checks do without

    return AcpSession(connection, saved)


def begins_with(first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
    return first.method == "initialize" and bytes(params.get("protocolVersion", b""))[:1].isdigit()


def check(host: Host) -> None:
    from .session import check_declarations  # late: only who declares operations for editors is checked

    check_declarations(host)
