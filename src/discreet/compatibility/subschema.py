"""Decides whether one JSON Schema is a subschema of another: whether the other accepts every value that the first accepts.

Knows the keywords that `json_schema` writes. Conservative: any other keyword, and patterns and formats that differ, are
reported as incompatible. Never sees a value except those of `enum`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from ..schemas.json_schema import JsonSchema
from ..schemas.keywords import ANNOTATIONS, NUMERIC, accepts, dereference, intersect, json_types, to_json

Direction: TypeAlias = Literal["sent", "received"]
"""How callers rely on the old schema: by the values that they send, or by those that they receive."""

_LEAST: Final = {"minLength": "string", "minItems": "array", "minProperties": "object"}
_MOST: Final = {"maxLength": "string", "maxItems": "array", "maxProperties": "object"}
_SAME: Final = {"pattern": "string", "format": "string", "contentEncoding": "string"}
_STRUCTURAL: Final = frozenset(
    {"type", "enum", "anyOf", "items", "prefixItems", "properties", "required", "additionalProperties", "propertyNames"}
)
_KNOWN: Final = ANNOTATIONS | _LEAST.keys() | _MOST.keys() | _SAME.keys() | NUMERIC | _STRUCTURAL

_FEW: Final[dict[str, tuple[Any, ...]]] = {"null": (None,), "boolean": (False, True)}
_SIDES: Final = (("min", -1), ("max", 1))
_MOST_LISTED: Final = 256
"""Integers of a range that are compared one by one with a closed list."""
_NOT_ACCEPTED: Final = {"sent": "is refused", "received": "may be received"}


_Schema: TypeAlias = Any
"""A schema of any form: an object or a boolean."""


class Incompatibility(msgspec.Struct, frozen=True):
    """A place where the new schema breaks the old one. `path` leads from the root: `.name`, `[]`, `[0]`, `.*`."""

    path: str
    what: str


def incompatibilities(old: JsonSchema, new: JsonSchema, direction: Direction) -> list[Incompatibility]:
    """List the places at which the new schema breaks callers who rely on the old one; empty if none does.

    For values that are sent, `new` must accept all that `old` accepts; for values that are received, the reverse.
    Members and items that are not declared, and that no schema is given for, are never received, and ignored when sent.
    """
    comparison = _Comparison(old, new, direction) if direction == "sent" else _Comparison(new, old, direction)
    return list(comparison.run())


@final
class _Comparison:
    """One comparison of two documents: `outer` must accept every value that `inner` accepts."""

    def __init__(self, inner: JsonSchema, outer: JsonSchema, direction: Direction) -> None:
        self._documents = (inner, outer)
        self._direction = direction
        self._comparing: set[str] = set()  # pairs that are being compared: recursive types lead back to them
        self._recursions = 0  # how often one of those was reached again
        self._compatible: set[str] = set()  # pairs found compatible: shared types are compared once

    def run(self) -> Iterator[Incompatibility]:
        return self._compare(*self._documents, "")

    def _compare(self, inner: _Schema, outer: _Schema, path: str) -> Iterator[Incompatibility]:
        key = msgspec.json.encode((inner, outer), order="deterministic").decode()
        if key in self._compatible:
            return
        if key in self._comparing:
            self._recursions += 1
            return
        self._comparing.add(key)
        met = self._recursions
        found = list(
            self._compare_resolved(dereference(inner, self._documents[0]), dereference(outer, self._documents[1]), path)
        )
        self._comparing.discard(key)
        if not found and met == self._recursions:  # else the result depends on pairs that are still being compared
            self._compatible.add(key)
        yield from found

    def _compare_resolved(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        if inner.get("enum") == []:
            return
        if outer.get("enum") == []:
            yield Incompatibility(path, _NOT_ACCEPTED[self._direction])
        elif "anyOf" in inner:
            for branch in _expand_any_of(inner):
                yield from self._compare(branch, outer, path)
        elif "anyOf" in outer:
            yield from self._within_any(inner, outer, path)
        elif "enum" in inner:
            yield from self._values(inner["enum"], outer, path)
        else:
            yield from self._compare_types(inner, outer, path)

    def _within_any(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        """One alternative of the outer schema must accept each value or type of the inner one."""
        options = list(_expand_any_of(outer))
        for case in _cases(inner):
            found = [list(self._compare(case, option, path)) for option in options]
            if [] not in found:
                yield from self._closest(case, options, found)

    def _closest(
        self, case: JsonSchema, options: list[JsonSchema], found: list[list[Incompatibility]]
    ) -> list[Incompatibility]:
        """The report on the alternative that was probably meant: the one of the same title, or with the fewest entries."""
        names = [dereference(option, self._documents[1]).get("title") for option in options]
        order = [(name != case.get("title"), len(its)) for name, its in zip(names, found, strict=True)]
        return found[order.index(min(order))]

    def _values(self, values: Iterable[Any], outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        if not outer.keys() <= _KNOWN:
            yield from self._unknown({}, outer, path)
        for value in values:
            if not accepts(outer, value):
                yield Incompatibility(path, f"{to_json(value)} {_NOT_ACCEPTED[self._direction]}")

    def _compare_types(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        kinds = json_types(inner)
        if inner.get("items") is False:  # then there are no more items than `prefixItems` lists
            inner = inner | {"maxItems": min(len(inner.get("prefixItems", [])), inner.get("maxItems", math.inf))}
        if "enum" in outer:
            found = [_listed(inner, kind) for kind in sorted(kinds)]
            closed = [value for values in found for value in values or () if accepts(inner, value)]
            if None in found:
                yield Incompatibility(
                    path, f"another value than {to_json(outer['enum'])} {_NOT_ACCEPTED[self._direction]}"
                )
            else:
                yield from self._values(closed, outer, path)
            return
        for kind in sorted(kinds - json_types(outer)):
            yield Incompatibility(path, f"{kind} {_NOT_ACCEPTED[self._direction]}")
        shared = kinds & json_types(outer)
        yield from self._limits(inner, outer, shared, path)
        yield from self._unknown(inner, outer, path)
        if "array" in shared:
            yield from self._array(inner, outer, path)
        if "object" in shared:
            yield from self._object(inner, outer, path)

    # -- single keywords ------------------------------------------------------------------------------

    def _limits(
        self, inner: JsonSchema, outer: JsonSchema, kinds: frozenset[str], path: str
    ) -> Iterator[Incompatibility]:
        rules: list[tuple[dict[str, str], Callable[[Any, Any], bool]]] = [
            (_LEAST, lambda ours, limit: (ours or 0) >= limit),
            (_MOST, lambda ours, limit: ours is not None and ours <= limit),
            (_SAME, lambda ours, limit: ours == limit),
        ]
        for keywords, holds in rules:
            for keyword, kind in keywords.items():
                if kind in kinds and keyword in outer and not holds(inner.get(keyword), outer[keyword]):
                    yield self._differs(keyword, inner, outer, path)
        if kinds & {"integer", "number"}:
            yield from self._numbers(inner, outer, path)

    def _numbers(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        for keyword, strict, sign in (("minimum", "exclusiveMinimum", -1), ("maximum", "exclusiveMaximum", 1)):
            ours, theirs = _tightest_bound(inner, keyword, strict, sign), _tightest_bound(outer, keyword, strict, sign)
            if theirs is not None and (ours is None or ours > theirs):
                yield self._differs(keyword if keyword in outer else strict, inner, outer, path)
        step = outer.get("multipleOf")
        ours_step = inner.get("multipleOf", 1 if inner.get("type") == "integer" else None)
        if step is not None and (ours_step is None or not _is_multiple(ours_step, step)):
            yield self._differs("multipleOf", inner, outer, path)

    def _unknown(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        for keyword in sorted(outer.keys() - _KNOWN):
            if inner.get(keyword, NotImplemented) != outer[keyword] or "$ref" in to_json(outer[keyword]):
                yield Incompatibility(path, f"{keyword} can't be compared")

    def _differs(self, keyword: str, inner: JsonSchema, outer: JsonSchema, path: str) -> Incompatibility:
        old, new = (inner, outer) if self._direction == "sent" else (outer, inner)
        before, after = (to_json(schema[keyword]) if keyword in schema else "none" for schema in (old, new))
        if before == after:  # the other keyword of a pair made the difference
            return Incompatibility(path, f"{keyword} {before} applies differently")
        return Incompatibility(path, f"{keyword} was {before}, is {after}")

    # -- arrays and objects ------------------------------------------------------------------------------------

    def _array(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        ours, theirs = inner.get("prefixItems", []), outer.get("prefixItems", [])
        most = inner.get("maxItems")
        for index in range(max(len(ours), len(theirs))):
            item = ours[index] if index < len(ours) else inner.get("items")
            if (most is not None and index >= most) or item is False:
                return
            place = theirs[index] if index < len(theirs) else outer.get("items")
            yield from self._member(item, place, f"{path}[{index}]")
        if most is None or most > max(len(ours), len(theirs)):
            yield from self._undeclared(inner.get("items"), outer.get("items"), f"{path}[]")

    def _object(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Incompatibility]:
        ours, theirs = inner.get("properties", {}), outer.get("properties", {})
        for name in outer.get("required", ()):
            if name not in inner.get("required", ()):
                yield Incompatibility(
                    f"{path}.{name}", "is required" if self._direction == "sent" else "may be missing"
                )
        for name, schema in ours.items():
            yield from self._member(schema, theirs.get(name, outer.get("additionalProperties")), f"{path}.{name}")
        further = inner.get("additionalProperties")
        for name, schema in theirs.items():
            if name not in ours and further not in (None, False):
                yield from self._compare(further, schema, f"{path}.{name}")
        yield from self._undeclared(further, outer.get("additionalProperties"), f"{path}.*")
        if "propertyNames" in outer and (ours or further is not False):
            yield from self._names(inner, outer["propertyNames"], f"{path}.*")

    def _names(self, inner: JsonSchema, names: _Schema, path: str) -> Iterator[Incompatibility]:
        text = {"type": "string"}
        declared = {"enum": list(inner.get("properties", {}))}
        yield from self._compare(declared, intersect(text, names), path)
        if inner.get("additionalProperties") not in (None, False):
            yield from self._compare(intersect(text, inner.get("propertyNames", True)), intersect(text, names), path)

    def _member(self, inner: _Schema, outer: _Schema, path: str) -> Iterator[Incompatibility]:
        """A member or item against its schema on the other side; None where it is not declared there."""
        if outer is None:
            if self._direction == "sent" and inner is not None:
                yield Incompatibility(path, "is ignored")
        elif inner is not None:
            yield from self._compare(inner, outer, path)

    def _undeclared(self, inner: _Schema, outer: _Schema, path: str) -> Iterator[Incompatibility]:
        if inner is False:
            return
        if inner is not None:
            yield from self._member(inner, outer, path)
        elif self._direction == "sent" and outer is False:
            yield Incompatibility(path, "was ignored, is refused")
        elif self._direction == "sent" and outer is not None:
            yield from self._compare(True, outer, path)


def _expand_any_of(schema: JsonSchema) -> Iterator[JsonSchema]:
    """The alternatives of an `anyOf`, each together with the keywords beside it."""
    rest = {word: value for word, value in schema.items() if word not in ANNOTATIONS | {"anyOf"}}
    for branch in schema["anyOf"]:
        yield {"allOf": [rest, branch]} if rest else branch


def _cases(schema: JsonSchema) -> Iterator[JsonSchema]:
    """The schema split into one schema per value of its `enum`, or per type."""
    if "enum" in schema:
        yield from ({"enum": [value]} for value in schema["enum"])
        return
    for kind in sorted(json_types(schema) - ({"integer"} if "number" in json_types(schema) else set())):
        yield schema | {"type": kind}


def _tightest_bound(schema: JsonSchema, keyword: str, strict: str, sign: int) -> tuple[float, int] | None:
    """The tighter of the two bounds on one side; None without one. It compares greater the more the schema accepts.

    Of integers it is the last one that is accepted, so that `> 0` and `>= 1` are equal.
    """
    stated = [(sign * schema[name], weight) for name, weight in ((keyword, 1), (strict, 0)) if name in schema]
    if not stated or "number" in json_types(schema):
        return min(stated, default=None)
    step = schema.get("multipleOf", 1)
    last = min(math.floor(limit) if weight else math.ceil(limit) - 1 for limit, weight in stated)
    return (last // step * step if isinstance(step, int) else last), 1


def _listed(schema: JsonSchema, kind: str) -> tuple[Any, ...] | None:
    """All values of a type that the schema accepts; None where they are too many to list."""
    if kind in _FEW:
        return _FEW[kind]
    low, high = (_tightest_bound(schema, f"{side}imum", f"exclusive{side.title()}imum", sign) for side, sign in _SIDES)
    if kind != "integer" or "number" in json_types(schema) or low is None or high is None:
        return None
    first, last = int(-low[0]), int(high[0])  # whole already, for integers
    return tuple(range(first, last + 1)) if last - first < _MOST_LISTED else None


def _is_multiple(step: float, of: float) -> bool:
    """Whether every multiple of `step` is one of `of`, as the numbers are written in decimals."""
    from fractions import Fraction  # late: few schemas are compared so

    return (Fraction(repr(step)) / Fraction(repr(of))).denominator == 1
