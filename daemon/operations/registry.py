"""Operations by name. Built once at start; a lookup costs the same however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import final

import msgspec

from .service import DeclarationError, Service
from .spec import OperationSpec


class Late(msgspec.Struct, frozen=True):
    """Operations that are made when one of them is first looked for: their names, and what makes them all."""

    names: frozenset[str]
    load: Callable[[], Iterable[OperationSpec]]


@final
class Registry:
    """Every operation that the daemon hosts. Raises `DeclarationError`, one line for all that is wrong."""

    __slots__ = ("_by_name", "_late")

    def __init__(self, services: Iterable[Service], late: Late | None = None) -> None:
        self._by_name: dict[str, OperationSpec] = {}
        self._late = late
        reserved = frozenset[str]() if late is None else late.names
        duplicates: dict[str, None] = {}
        used: dict[str, None] = {}
        for service in services:
            used.update(dict.fromkeys(sorted(service.uses)))
            for spec in service.operations:
                if spec.name in self._by_name or spec.name in reserved:
                    duplicates[spec.name] = None
                self._by_name[spec.name] = spec
        unknown = [name for name in used if name not in self._by_name]
        faults = [
            f"{what}: {', '.join(names)}"
            for what, names in (("declared more than once", duplicates), ("used but not declared", unknown))
            if names
        ]
        if faults:
            raise DeclarationError("; ".join(faults))

    @property
    def names(self) -> frozenset[str]:
        """The names of all operations, those included that have not been made yet."""
        late = frozenset[str]() if self._late is None else self._late.names
        return late | self._by_name.keys()

    def get(self, name: str) -> OperationSpec | None:
        """The operation of this exact name, internal ones too."""
        if self._late is not None and name in self._late.names:
            self.load()
        return self._by_name.get(name)

    def find(self, method: str) -> OperationSpec | None:
        """The operation that a caller on the wire may name so; a leading slash is accepted and dropped."""
        spec = self._by_name.get(method)
        if spec is None:
            spec = self.get(method.removeprefix("/"))
        return spec if spec is None or spec.visibility == "external" else None

    def __iter__(self) -> Iterator[OperationSpec]:
        """In the order in which they were declared."""
        self.load()
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name) + (0 if self._late is None else len(self._late.names))

    def load(self) -> None:
        """Make the late operations now, if that has not happened."""
        late, self._late = self._late, None
        if late is not None:
            self._by_name.update((spec.name, spec) for spec in late.load())
