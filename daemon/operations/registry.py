"""Operations by name. Built once at start; a lookup costs the same however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from .service import DeclarationError, Service
from .spec import OperationSpec


@final
class Registry:
    """Every operation that the daemon hosts. Raises `DeclarationError`, one line for all that is wrong."""

    __slots__ = ("_by_name",)

    def __init__(self, services: Iterable[Service]) -> None:
        self._by_name: dict[str, OperationSpec] = {}
        duplicates: dict[str, None] = {}
        used: dict[str, None] = {}
        for service in services:
            used.update(dict.fromkeys(sorted(service.uses)))
            for spec in service.operations:
                if spec.name in self._by_name:
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

    def get(self, name: str) -> OperationSpec | None:
        """The operation of this exact name, internal ones too."""
        return self._by_name.get(name)

    def find(self, method: str) -> OperationSpec | None:
        """The operation that a caller on the wire may name so; a leading slash is accepted and dropped."""
        spec = self._by_name.get(method)
        if spec is None and method.startswith("/"):
            spec = self._by_name.get(method[1:])
        return spec if spec is None or spec.visibility == "external" else None

    def __iter__(self) -> Iterator[OperationSpec]:
        """In the order in which they were declared."""
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)
