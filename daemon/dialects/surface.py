"""What a session of any dialect needs of the connection that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..services import builtins

if TYPE_CHECKING:
    from ..host import Host
    from ..operations.context import ContextHost


class Surface(builtins.Surface, Protocol):
    """The connection, as a session sees it."""

    @property
    def host(self) -> Host: ...

    @property
    def context_host(self) -> ContextHost:
        """The way to the client: notifications and requests."""
        ...
