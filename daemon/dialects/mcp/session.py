"""A client's session in MCP, of either era: its methods, and what of them stays after a reload."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from msgspec.structs import replace

from ...operations.service import Service
from ...rpc.dialect import Dialect
from ..client_connection import ClientConnection
from .asking.calls import add_asking
from .handshake import add_handshake
from .prompts import add_prompts
from .resources import add_resources, add_subscriptions
from .state import McpState
from .tool_methods import add_tools

FORWARDS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})


@final
class McpSession:
    """Raises `DeclarationError` for operations that MCP can't offer. `saved` is what `save` gave to a program before."""

    def __init__(self, connection: ClientConnection, saved: bytes = b"") -> None:
        self._saved = saved
        self._state = McpState(connection)
        self.dialect: Dialect = self._state.dialect
        self.documents: Final = None

    def services(self) -> Iterable[Service]:
        service = Service("")
        add_handshake(service, self._state)
        add_asking(service, self._state)
        add_tools(service, self._state)
        add_resources(service, self._state)
        add_prompts(service, self._state)
        add_subscriptions(service, self._state)
        service.operations = [
            replace(spec, mode="forward") if spec.name in FORWARDS else spec for spec in service.operations
        ]
        if self._saved:
            self._state.restore(self._saved)
        return [service]

    def save(self) -> bytes:
        return self._state.save()
