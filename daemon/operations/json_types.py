"""Finds types that JSON can't represent, before a request meets them. Looks at types, never at values."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec import inspect as types  # msgspec has loaded it already

from ...errors.type_building import type_info


def require_json_type(annotation: Any, what: str) -> None:  # Any: whatever a handler is annotated with
    """Raises `TypeError` that names the first type in `annotation`, nested ones included, that JSON can't represent.

    `what` begins the message: what the annotation is for.
    """
    found = _find_foreign(type_info(annotation), set())
    if found is not None:
        raise TypeError(
            f"{what}: JSON can't represent the type {found.__name__}; use types that msgspec encodes, such as a Struct"
        )


def _find_foreign(node: object, seen: set[int]) -> type | None:
    if isinstance(node, types.CustomType) and node.cls is not object:
        return node.cls
    if id(node) in seen:  # recursive types
        return None
    seen.add(id(node))
    if isinstance(node, types.Type | types.Field):
        parts = [getattr(node, name) for name in _fields(node)]
    else:
        parts = list(node) if isinstance(node, tuple) else []
    return next((found for part in parts if (found := _find_foreign(part, seen)) is not None), None)


def _fields(node: Struct) -> tuple[str, ...]:
    return () if isinstance(node, types.LiteralType) else node.__struct_fields__
