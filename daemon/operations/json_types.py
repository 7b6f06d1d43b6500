"""Finds the types that JSON can neither hold nor fill, before a request meets them. Looks at types, never at values."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec import inspect as types  # msgspec has loaded it already


def refuse_foreign(annotation: Any) -> None:  # Any: whatever a handler is annotated with
    """Raises `TypeError` that names the first such type in `annotation` or in what it is made of."""
    found = _foreign(types.type_info(annotation), set())
    if found is not None:
        raise TypeError(f"JSON can't hold a value of type {found.__name__}")


def _foreign(node: object, seen: set[int]) -> type | None:
    if isinstance(node, types.CustomType) and node.cls is not object:
        return node.cls
    if id(node) in seen:  # types may hold themselves
        return None
    seen.add(id(node))
    if isinstance(node, types.Type | types.Field):
        parts = [getattr(node, name) for name in _fields(node)]
    else:
        parts = list(node) if isinstance(node, tuple) else []
    return next((found for part in parts if (found := _foreign(part, seen)) is not None), None)


def _fields(node: Struct) -> tuple[str, ...]:
    return () if isinstance(node, types.LiteralType) else node.__struct_fields__
