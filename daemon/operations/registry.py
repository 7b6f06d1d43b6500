"""Operations by name, for lookup. Built once at start; a lookup costs the same however many there are. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import final

import msgspec

from .service import DeclarationError, Service
from .spec import OperationSpec


class LazyOperations(msgspec.Struct, frozen=True):
    """Operations that are made when one of them is first looked up: their names, and the function that makes them."""

    names: frozenset[str]
    load: Callable[[], Iterable[OperationSpec]]


@final
class Registry:
    """Every operation that the daemon hosts. `lazy` are those that stand behind the services' and are made when needed.

    Raises `DeclarationError` where names are declared twice or used but not declared: one line for all of them.
    """

    __slots__ = ("_lazy", "_own", "_services", "by_name")

    def __init__(self, services: Iterable[Service], *lazy: LazyOperations) -> None:
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
        return spec if spec is None or spec.visibility == "external" else None

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
        self._lazy = {name: operations for name, operations in self._lazy.items() if operations is not lazy}
        self.by_name.update((spec.name, spec) for spec in lazy.load())
