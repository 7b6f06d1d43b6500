"""Operations by name, for lookup. Built once at start; a lookup costs the same however many there are. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from .identity import Identity
from .service import INITIALIZE, SHUTDOWN, DeclarationError, Service
from .spec import OperationSpec

# The operations, capabilities and credentials of the hosted services, and who may see which. Calls nothing.


MAX_NAMES: Final = 3
"""How many services the name of a server lists."""


class ServerInfo(msgspec.Struct, frozen=True):
    """The facts that clients are told of the server."""

    name: str
    version: str


def server_of(services: Sequence[Service], version: str) -> ServerInfo:
    """The names and the version of the services, and those of the daemon where they have none.

    Several services have their names together, and the version of the first that says one.
    """
    names = list(dict.fromkeys(service.namespace for service in services if service.namespace))
    shown = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
    return ServerInfo(shown or "discreet", next((each.version for each in services if each.version), version))


@final
class Catalogue:
    """The declarations of all services. `credentials` holds the values of the credentials that are configured, by name."""

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
        """The capabilities that the services add to the answer to `initialize`."""
        return {name: value for service in self.services for name, value in service.capabilities.items()}

    @property
    def initializers(self) -> list[OperationSpec]:
        """The functions that run when a client says hello, in the order of declaration."""
        return [spec for spec in self.operations if spec.name.rpartition("/")[2] == INITIALIZE]

    @property
    def shutdowns(self) -> list[OperationSpec]:
        """The functions that run when a client asks for the end, in the order of declaration."""
        return [spec for spec in self.operations if spec.name.rpartition("/")[2] == SHUTDOWN]

    def credentials_of(self, namespace: str) -> Mapping[str, str]:
        """The configured credentials that the services of this namespace declare."""
        declared = frozenset[str]().union(*(s.credentials for s in self.services if s.namespace == namespace))
        return Credentials({name: self._credentials[name] for name in self._credentials if name in declared})


class Credentials(dict[str, str]):
    """Values by name. A name that is not declared is a `KeyError` that says so."""

    def __missing__(self, name: str) -> str:
        raise KeyError(f"the service does not declare the credential {name}; it declares {', '.join(self) or 'none'}")


class LazyOperations(msgspec.Struct, frozen=True):
    """Operations that are made when one of them is first looked up: their names, and the function that makes them."""

    names: frozenset[str]
    load: Callable[[], Iterable[OperationSpec]]


@final
class Registry:
    """Every operation that the daemon hosts. `lazy` are those that stand behind the services' and are made when needed.
    `otherwise` is what every method means that names none of them.

    Raises `DeclarationError` where names are declared twice or used but not declared: one line for all of them.
    """

    __slots__ = ("_lazy", "_otherwise", "_own", "_services", "by_name")

    def __init__(
        self, services: Iterable[Service], *lazy: LazyOperations, otherwise: OperationSpec | None = None
    ) -> None:
        self._otherwise = otherwise
        self._services = list(services)
        self.by_name: dict[str, OperationSpec] = {}
        """The operations that have been made, internal ones included."""
        self._lazy = {name: operations for operations in lazy for name in operations.names}
        self._own = reserved = frozenset(self._lazy)
        duplicates: dict[str, None] = {}
        taken: dict[str, None] = {}
        used: dict[str, None] = {}
        for service in self._services:
            used.update(dict.fromkeys(sorted(service.uses)))
            for spec in service.operations:
                place = f" ({spec.source})" if spec.source else ""
                if spec.name in reserved:
                    taken[f"{spec.name}{place}"] = None
                elif spec.name in self.by_name:
                    places = [each.source for each in (self.by_name[spec.name], spec) if each.source]
                    duplicates[f"{spec.name} ({', '.join(places)})" if places else spec.name] = None
                self.by_name[spec.name] = spec
        unknown = [name for name in used if name not in self.by_name]
        faults = [
            f"{fault}: {', '.join(names)}"
            for fault, names in (
                ("operations declared more than once", duplicates),
                ("operations with names of the daemon's own methods", taken),
                ("operations in uses=[…] that no service declares", unknown),
            )
            if names
        ]
        if faults:
            raise DeclarationError("; ".join(faults))

    def refresh(self) -> list[str]:
        """Take up what the services declare now. Of operations with one name the first stands; the names of all others."""
        by_name = {name: spec for name, spec in self.by_name.items() if name in self._own}
        refused: list[str] = []
        for spec in (spec for service in self._services for spec in service.operations):
            if spec.name in self._own or spec.name in by_name:
                refused.append(spec.name)
            else:
                by_name[spec.name] = spec
        self.by_name = by_name
        return refused

    @property
    def names(self) -> frozenset[str]:
        """The names of all operations, those included that have not been made yet."""
        return frozenset(self._lazy) | self.by_name.keys()

    def get(self, name: str) -> OperationSpec | None:
        """The operation of this exact name, internal ones included; None if there is none."""
        if name in self._lazy:
            self._load(self._lazy[name])
        return self.by_name.get(name)

    def find(self, method: str) -> OperationSpec | None:
        """The external operation that a request's `method` names; None if there is none. One leading slash is ignored."""
        spec = self.by_name.get(method)
        if spec is None:
            spec = self.get(method.removeprefix("/"))
        return spec if spec is not None and spec.visibility == "external" else self._otherwise

    def __iter__(self) -> Iterator[OperationSpec]:
        """All operations, in the order of declaration."""
        self.load()
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name) + len(self._lazy)

    def load(self) -> None:
        """Make the lazy operations now. A second call does nothing."""
        while self._lazy:
            self._load(next(iter(self._lazy.values())))

    def _load(self, lazy: LazyOperations) -> None:
        before = self._lazy
        self._lazy = {name: operations for name, operations in before.items() if operations is not lazy}
        try:
            made = [*lazy.load()]
        except BaseException:  # such as a module that can't be read while no descriptors are left: later it can
            self._lazy = before
            raise
        self.by_name.update((spec.name, spec) for spec in made)
