"""Operations by name. Built once at start; a lookup costs the same however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from .service import DeclarationError, Service
from .spec import OperationSpec


@final
class Registry:
    """Every operation that the daemon hosts. Raises `DeclarationError`, one line for all duplicates."""

    __slots__ = ("_by_name",)

    def __init__(self, services: Iterable[Service]) -> None:
        self._by_name: dict[str, OperationSpec] = {}
        duplicates: dict[str, None] = {}
        for service in services:
            for spec in service.operations:
                if self._by_name.setdefault(spec.name, spec) is not spec:
                    duplicates[spec.name] = None
        if duplicates:
            raise DeclarationError(f"declared more than once: {', '.join(duplicates)}")

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
