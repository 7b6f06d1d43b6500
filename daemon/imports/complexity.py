"""How much work a schema can make of a value: validators try each alternative, so few bytes can keep one busy for ever.

Knows two ways: alternatives of alternatives that all say something of one value, and types that refer to themselves by several
alternatives, where each level of a value multiplies the work. Checks no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..schemas.phrases import schema_kinds
from .model import JsonSchema, Schema

MOST_ALTERNATIVES: Final = 20_000
"""Schemas that may be tried for one value."""

DEEPEST_AMBIGUOUS: Final = 16
"""Levels of a value that are checked where each may double the work: objects and arrays inside each other."""

_DEFINITION: Final = "#/$defs/"
_BRANCHES: Final = ("anyOf", "oneOf")
_LISTS: Final = ("allOf", *_BRANCHES)
_SINGLE: Final = ("not", "if", "then", "else")


def too_many_alternatives(document: JsonSchema) -> bool:
    """Whether there is a value for which more than `MOST_ALTERNATIVES` schemas are tried."""
    counts: dict[str, int] = {}
    return any(_tried(part, document, counts, 0) > MOST_ALTERNATIVES for part in _all(document))


def is_ambiguous(document: JsonSchema) -> bool:
    """Whether a type refers to itself by two alternatives that take values of one JSON type."""
    definitions: Mapping[str, Schema] = document.get("$defs", {})
    reached = _reachable(definitions)
    for name, schema in definitions.items():
        if name not in reached[name]:
            continue
        for branches in _alternatives(schema, document, frozenset({name}), 0):
            again = [each for each in branches if name in _leads_to(each, reached)]
            kinds = [schema_kinds(each, document) for each in again]
            if any(one & other for at, one in enumerate(kinds) for other in kinds[at + 1 :]):
                return True
    return False


def depth_of(value: Any) -> int:  # Any: JSON
    """How many objects and arrays stand inside each other."""
    deepest, pending = 0, [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if isinstance(part, dict | list):
            deepest = max(deepest, depth + 1)
            pending += ((each, depth + 1) for each in (part.values() if isinstance(part, dict) else part))
    return deepest


def _all(document: JsonSchema) -> Iterator[Any]:
    pending: list[Any] = [document]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _tried(schema: Any, document: JsonSchema, counts: dict[str, int], depth: int) -> int:
    """How many schemas are tried for one value, at most a little more than `MOST_ALTERNATIVES`."""
    if not isinstance(schema, Mapping) or depth > MOST_ALTERNATIVES:
        return 1
    total = 1
    for part in _in_place(schema):
        total += _tried(part, document, counts, depth + 1)
        if total > MOST_ALTERNATIVES:
            return total
    name = _name_of(schema)
    if name is not None:
        if name not in counts:
            counts[name] = 1  # a type that is itself what it refers to
            counts[name] = _tried(document.get("$defs", {}).get(name), document, counts, depth + 1)
        total += counts[name]
    return total


def _in_place(schema: Mapping[str, Any]) -> Iterator[Any]:
    for keyword in _LISTS:
        if isinstance(parts := schema.get(keyword), list):
            yield from parts
    for keyword in _SINGLE:
        if keyword in schema:
            yield schema[keyword]


def _alternatives(schema: Any, document: JsonSchema, seen: frozenset[str], depth: int) -> Iterator[list[Any]]:
    """The lists of alternatives that say something of a value of this schema itself."""
    if not isinstance(schema, Mapping) or depth > DEEPEST_AMBIGUOUS:
        return
    for keyword in _BRANCHES:
        if isinstance(parts := schema.get(keyword), list):
            yield parts
    for part in _in_place(schema):
        yield from _alternatives(part, document, seen, depth + 1)
    name = _name_of(schema)
    if name is not None and name not in seen:
        yield from _alternatives(document.get("$defs", {}).get(name), document, seen | {name}, depth + 1)


def _name_of(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITION):
        return reference.removeprefix(_DEFINITION).replace("~1", "/").replace("~0", "~")
    return None


def _reachable(definitions: Mapping[str, Schema]) -> dict[str, frozenset[str]]:
    direct = {name: frozenset(_names_in(schema)) for name, schema in definitions.items()}
    found: dict[str, frozenset[str]] = {}
    for name in definitions:
        seen: set[str] = set()
        pending = list(direct[name])
        while pending:
            each = pending.pop()
            if each not in seen and each in direct:
                seen.add(each)
                pending += direct[each]
        found[name] = frozenset(seen)
    return found


def _names_in(schema: Any) -> Iterator[str]:
    return (name for part in _all(schema) if (name := _name_of(part)) is not None)


def _leads_to(schema: Any, reached: Mapping[str, frozenset[str]]) -> frozenset[str]:
    names = frozenset(_names_in(schema))
    return names.union(*(reached.get(name, frozenset()) for name in names))
