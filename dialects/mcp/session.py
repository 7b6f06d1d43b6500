"""A client's session in MCP, of either generation: its methods, and what of them stays after a reload."""

from __future__ import annotations

from typing import Final, NoReturn, final

from msgspec.structs import replace

from ...daemon.connection.notices import ClientConnection
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import service_like
from .asking.calls import add_asking
from .handshake import add_handshake
from .prompts import add_prompts
from .resources import add_resources, add_subscriptions
from .state import McpState, Offered
from .tool_methods import add_tools

FORWARDS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})


@final
class McpSession:
    """Raises `DeclarationError` for operations that MCP can't offer. `saved` is what `save` gave to a program before. `offered`
    is what other sessions offer too.
    """

    def __init__(self, connection: ClientConnection, saved: bytes = b"", offered: Offered | None = None) -> None:
        self._saved = saved
        self._offered = offered or Offered(connection.host)
        self._state = McpState(connection, self._offered)
        self.dialect: Final = self._state.dialect
        self.documents: Final = None

    def registry(self) -> Registry:
        known = self._offered.methods
        service = service_like(known)
        add_handshake(service, self._state)
        add_asking(service, self._state)
        add_tools(service, self._state)
        add_resources(service, self._state)
        add_prompts(service, self._state)
        add_subscriptions(service, self._state)
        service.operations = [
            replace(spec, mode="forward") if spec.name in FORWARDS else spec for spec in service.operations
        ]
        if not known:
            known |= {spec.name: replace(spec, invoke=_no_handler) for spec in service.operations}
        if self._saved:
            self._state.restore(self._saved)
        return Registry([service])

    def save(self) -> bytes:
        return self._state.save()

    def bind(self, subject: str) -> None:
        """From now on states of calls hold for this caller alone (2026-07-28, basic/patterns/mrtr)."""
        self._state.seal = self._offered.seal.of(subject)


def _no_handler(ctx: object, arguments: object) -> NoReturn:
    raise AssertionError("each session has handlers of its own")
