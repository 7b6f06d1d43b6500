"""A client's session in MCP, of either era: its methods, and what of them stays after a reload."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from msgspec.structs import replace

from ....errors.exceptions import OperationError
from ...documents.store import Documents
from ...operations.service import DeclarationError, Service
from ...rpc.dialect import Dialect
from ...services.builtins import Life
from ..surface import Surface
from .asking.calls import add_asking
from .era import RESERVED_NUMBERS
from .handshake import add_handshake
from .prompts import add_prompts
from .resources import add_resources, add_subscriptions
from .state import McpState
from .tool_methods import add_tools

FORWARDS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})


@final
class McpSession:
    """Raises `DeclarationError` for operations that MCP can't offer. `saved` is what `state` gave to a program before."""

    def __init__(self, surface: Surface, life: Life, saved: bytes = b"") -> None:
        self._saved = saved
        self._state = McpState(surface)
        self.dialect: Dialect = self._state.dialect
        self.documents: Final = Documents()  # MCP has none
        _check_numbers(self._state)

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

    def state(self) -> bytes:
        return self._state.save()


def _check_numbers(state: McpState) -> None:
    """Numbers that the protocol keeps for itself can't be an author's own."""
    errors: dict[type[OperationError], str] = {
        error: spec.name
        for service in state.host.catalogue.services
        for spec in service.operations
        for error in spec.errors
    }
    for error, name in errors.items():
        if error.definition.number in RESERVED_NUMBERS:
            raise DeclarationError(
                f"operation {name}: {error.__name__} has number={error.definition.number}, but MCP keeps"
                f" {RESERVED_NUMBERS[0]} to {RESERVED_NUMBERS[-1]} for itself; choose another one"
            )
