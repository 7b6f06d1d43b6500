"""The operations, capabilities and credentials of the hosted services, and who may see which. Calls nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, final

from .identity import Identity
from .service import INITIALIZE, SHUTDOWN, Service
from .spec import OperationSpec

OF_EDITORS: Final = ("textDocument/", "notebookDocument/")
"""What only methods of LSP begin with."""


MAX_NAMES: Final = 3
"""How many services the name of a server lists."""


def server_of(services: Sequence[Service], version: str) -> tuple[str, str]:
    """What clients are told as the server's name and version: those of the services, and of the daemon where they have none.

    Several services have their names together, and the version of the first that says one.
    """
    names = list(dict.fromkeys(service.namespace for service in services if service.namespace))
    shown = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
    return shown or "discreet", next((service.version for service in services if service.version), version)


@final
class Catalogue:
    """What the services declare. `credentials` holds the values of the credentials that are configured, by name."""

    def __init__(self, services: Sequence[Service], credentials: Mapping[str, str]) -> None:
        self.services: Final = services
        self._credentials = credentials

    @property
    def changes(self) -> bool:
        """Whether the operations of a service may be replaced while it is served."""
        return any(service.changes is not None for service in self.services)

    @property
    def operations(self) -> list[OperationSpec]:
        """Everything that the services declare, in the order of declaration."""
        return [spec for service in self.services for spec in service.operations]

    def visible_to(self, identity: Identity | None) -> Iterator[OperationSpec]:
        """The external operations that this caller may call, in the order of declaration."""
        return (spec for spec in self.operations if spec.visibility == "external" and spec.access.allows(identity))

    def find(self, name: str, identity: Identity | None) -> OperationSpec | None:
        """The operation of this name, if this caller may call it."""
        return next((spec for spec in self.visible_to(identity) if spec.name == name), None)

    def announced_capabilities(self) -> dict[str, Any]:  # JSON
        """What the services add to the capabilities that `initialize` answers with."""
        return {name: value for service in self.services for name, value in service.capabilities.items()}

    @property
    def initializers(self) -> list[OperationSpec]:
        """What the services run when a client says hello, in the order of declaration."""
        return [spec for spec in self.operations if spec.name.rpartition("/")[2] == INITIALIZE]

    @property
    def shutdowns(self) -> list[OperationSpec]:
        """What the services run when a client asks for the end, in the order of declaration."""
        return [spec for spec in self.operations if spec.name.rpartition("/")[2] == SHUTDOWN]

    def only_in(self) -> dict[Literal["lsp", "mcp"], list[str]]:
        """The operations that only clients of one dialect can find, by that dialect."""
        found: dict[Literal["lsp", "mcp"], list[str]] = {}
        for spec in self.operations:
            if spec.command or spec.name.startswith(OF_EDITORS):
                found.setdefault("lsp", []).append(spec.name)
            elif spec.offer is not None:
                found.setdefault("mcp", []).append(spec.name)
        return found

    def credentials_of(self, namespace: str) -> Mapping[str, str]:
        """The configured credentials that the services of this namespace declare."""
        declared = frozenset[str]().union(*(s.credentials for s in self.services if s.namespace == namespace))
        return Credentials({name: self._credentials[name] for name in self._credentials if name in declared})


class Credentials(dict[str, str]):
    """Values by name. A name that is not declared is a `KeyError` that says so."""

    def __missing__(self, name: str) -> str:
        raise KeyError(f"the service does not declare the credential {name}; it declares {', '.join(self) or 'none'}")
