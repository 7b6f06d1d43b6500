"""What the hosted services offer, and to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

from .access import Identity
from .service import Service
from .spec import OperationSpec


@final
class Catalogue:
    """The services' operations, announcements and credentials. `credentials` are the values of capabilities by name."""

    def __init__(self, services: Sequence[Service], credentials: Mapping[str, str]) -> None:
        self.services: Final = services
        self._credentials = credentials

    def to(self, identity: Identity | None) -> Iterator[OperationSpec]:
        """The external operations that this caller may call, in the order of declaration."""
        return (
            spec
            for service in self.services
            for spec in service.operations
            if spec.visibility == "external" and spec.access.allows(identity)
        )

    def find(self, name: str, identity: Identity | None) -> OperationSpec | None:
        """The one of this name, if this caller may call it."""
        return next((spec for spec in self.to(identity) if spec.name == name), None)

    def announced(self) -> dict[str, Any]:  # JSON
        """What the services add to the capabilities that `initialize` answers with."""
        return {name: value for service in self.services for name, value in service.announces.items()}

    def credentials_of(self, namespace: str) -> Mapping[str, str]:
        """The credentials that the services of a namespace have declared."""
        granted = frozenset[str]().union(*(s.capabilities for s in self.services if s.namespace == namespace))
        return {name: value for name, value in self._credentials.items() if name in granted}
