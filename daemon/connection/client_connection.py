"""What a session of any dialect needs of the connection that it belongs to, and what its client may do to the daemon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..host import Host
    from ..operations.context import ClientInfo, ContextBackend
    from ..operations.identity import Identity
    from ..operations.spec import OperationSpec
    from ..rpc.envelope import Call
    from .handshake import ServerInfo


class DaemonControl(Protocol):
    """What a client may do to the daemon that it speaks to."""

    def begin_shutdown(self) -> None: ...
    def exit(self, *, failed: bool = False) -> None:
        """End soon, with status 1 where it `failed`."""
        ...

    def watch_client(self, pid: int) -> None:
        """End when this process has ended."""
        ...


class ClientConnection(Protocol):
    """The connection, as a session sees it."""

    @property
    def host(self) -> Host: ...

    @property
    def context_backend(self) -> ContextBackend:
        """The way to the client: notifications and requests."""
        ...

    @property
    def server_info(self) -> ServerInfo: ...

    @property
    def initializers(self) -> Sequence[OperationSpec]:
        """What the services run when the client says hello, in the order of declaration."""
        ...

    def take_again(self, call: Call) -> None:
        """Hand in a call that the dialect has held back, while it was busy, and go on reading."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Send a notification that belongs to no request."""
        ...

    def set_client_info(self, client: ClientInfo) -> None:
        """Keep what the client says of itself."""
        ...

    def methods(self, identity: Identity | None) -> Iterable[OperationSpec]:
        """Everything that this caller may call."""
        ...
