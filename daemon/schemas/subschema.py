"""Whether everything that one JSON Schema takes is taken by another.

Knows the keywords that `json_schema` writes. Conservative: of any other keyword, and of patterns and formats that
differ, it says that it can't tell. Never sees a value but those of `enum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from .json_schema import JsonSchema
from .keywords import ANNOTATIONS, NUMERIC, both, bound, branches, parts, resolve, shown, takes, types_of

Flow: TypeAlias = Literal["sent", "received"]
"""Who relies on the old schema: callers by what they send, or by what they receive."""

_CLOSED: Final[dict[str, tuple[Any, ...]]] = {"null": (None,), "boolean": (False, True)}

_LEAST: Final = {"minLength": "string", "minItems": "array", "minProperties": "object"}
_MOST: Final = {"maxLength": "string", "maxItems": "array", "maxProperties": "object"}
_SAME: Final = {"pattern": "string", "format": "string", "contentEncoding": "string"}
_STRUCTURAL: Final = frozenset(
    {"type", "enum", "anyOf", "items", "prefixItems", "properties", "required", "additionalProperties", "propertyNames"}
)
_KNOWN: Final = ANNOTATIONS | _LEAST.keys() | _MOST.keys() | _SAME.keys() | NUMERIC | _STRUCTURAL

_REFUSED: Final = {"sent": "is refused", "received": "may come"}


class Gap(msgspec.Struct, frozen=True):
    """A place where the promise of the old schema is not kept, from the root: `.name`, `[]`, `[0]`, `.*`."""

    path: str
    what: str


def gaps(old: JsonSchema, new: JsonSchema, flow: Flow) -> list[Gap]:
    """Where the new schema breaks what relied on the old one; empty where it can't.

    For what is sent, all that `old` takes must be taken by `new`; for what is received, the reverse. What an object or
    array does not declare and no schema is given for is never received, and is ignored when sent.
    """
    comparison = _Comparison(old, new, flow) if flow == "sent" else _Comparison(new, old, flow)
    return list(comparison.run())


@final
class _Comparison:
    """One run over two documents. `inner` is what may come, `outer` what it has to fit."""

    def __init__(self, inner: JsonSchema, outer: JsonSchema, flow: Flow) -> None:
        self._documents = (inner, outer)
        self._flow = flow
        self._open: set[str] = set()  # pairs under comparison: recursive types meet themselves again
        self._met = 0  # how often they did
        self._kept: set[str] = set()  # pairs without a gap: types are shared, and would be compared again and again

    def run(self) -> Iterator[Gap]:
        return self._gaps(*self._documents, "")

    def _gaps(self, inner: Any, outer: Any, path: str) -> Iterator[Gap]:  # Any: a schema may be a boolean
        key = msgspec.json.encode((inner, outer), order="deterministic").decode()
        if key in self._kept:
            return
        if key in self._open:
            self._met += 1
            return
        self._open.add(key)
        met = self._met
        found = list(self._resolved(resolve(inner, self._documents[0]), resolve(outer, self._documents[1]), path))
        self._open.discard(key)
        if not found and met == self._met:  # else it holds only if what is still open does
            self._kept.add(key)
        yield from found

    def _resolved(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        if inner.get("enum") == []:
            return
        if outer.get("enum") == []:
            yield Gap(path, _REFUSED[self._flow])
        elif "anyOf" in inner:
            for branch in branches(inner):
                yield from self._gaps(branch, outer, path)
        elif "anyOf" in outer:
            yield from self._within_any(inner, outer, path)
        elif "enum" in inner:
            yield from self._values(inner["enum"], outer, path)
        else:
            yield from self._plain(inner, outer, path)

    def _within_any(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        """Each value and each type of the inner schema has to fit one branch of the outer one."""
        options = list(branches(outer))
        for part in parts(inner):
            found = [list(self._gaps(part, branch, path)) for branch in options]
            if [] not in found:
                yield from self._nearest(part, options, found)

    def _nearest(self, part: JsonSchema, options: list[JsonSchema], found: list[list[Gap]]) -> list[Gap]:
        """What is said of the branch that was meant: of the same name if there is one, and with the fewest gaps."""
        names = [resolve(branch, self._documents[1]).get("title") for branch in options]
        order = [(name != part.get("title"), len(its)) for name, its in zip(names, found, strict=True)]
        return found[order.index(min(order))]

    def _values(self, values: Iterable[Any], outer: JsonSchema, path: str) -> Iterator[Gap]:
        if not outer.keys() <= _KNOWN:
            yield from self._unknown({}, outer, path)
        for value in values:
            if not takes(outer, value):
                yield Gap(path, f"{shown(value)} {_REFUSED[self._flow]}")

    def _plain(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        kinds = types_of(inner)
        if "enum" in outer:
            closed = [value for kind in kinds for value in _CLOSED.get(kind, (NotImplemented,))]
            if NotImplemented in closed:
                yield Gap(path, f"another value than {shown(outer['enum'])} {_REFUSED[self._flow]}")
            else:
                yield from self._values(closed, outer, path)
            return
        for kind in sorted(kinds - types_of(outer)):
            yield Gap(path, f"{kind} {_REFUSED[self._flow]}")
        shared = kinds & types_of(outer)
        yield from self._limits(inner, outer, shared, path)
        yield from self._unknown(inner, outer, path)
        if "array" in shared:
            yield from self._array(inner, outer, path)
        if "object" in shared:
            yield from self._object(inner, outer, path)

    # -- what single keywords say ------------------------------------------------------------------------------

    def _limits(self, inner: JsonSchema, outer: JsonSchema, kinds: frozenset[str], path: str) -> Iterator[Gap]:
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

    def _numbers(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        for keyword, strict, sign in (("minimum", "exclusiveMinimum", -1), ("maximum", "exclusiveMaximum", 1)):
            ours, theirs = bound(inner, keyword, strict, sign), bound(outer, keyword, strict, sign)
            if theirs is not None and (ours is None or ours > theirs):
                yield self._differs(keyword if keyword in outer else strict, inner, outer, path)
        step = outer.get("multipleOf")
        ours_step = inner.get("multipleOf", 1 if inner.get("type") == "integer" else None)
        whole = isinstance(step, int) and isinstance(ours_step, int)
        if step is not None and not (ours_step == step or (whole and ours_step % step == 0)):
            yield self._differs("multipleOf", inner, outer, path)

    def _unknown(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        for keyword in sorted(outer.keys() - _KNOWN):
            if inner.get(keyword, NotImplemented) != outer[keyword] or "$ref" in shown(outer[keyword]):
                yield Gap(path, f"{keyword} can't be compared")

    def _differs(self, keyword: str, inner: JsonSchema, outer: JsonSchema, path: str) -> Gap:
        old, new = (inner, outer) if self._flow == "sent" else (outer, inner)
        before, after = (shown(schema[keyword]) if keyword in schema else "none" for schema in (old, new))
        if before == after:  # the other of a pair of keywords made the difference
            return Gap(path, f"{keyword} {before} holds otherwise")
        return Gap(path, f"{keyword} was {before}, is {after}")

    # -- arrays and objects ------------------------------------------------------------------------------------

    def _array(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
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

    def _object(self, inner: JsonSchema, outer: JsonSchema, path: str) -> Iterator[Gap]:
        ours, theirs = inner.get("properties", {}), outer.get("properties", {})
        for name in outer.get("required", ()):
            if name not in inner.get("required", ()):
                yield Gap(f"{path}.{name}", "is required" if self._flow == "sent" else "may be missing")
        for name, schema in ours.items():
            yield from self._member(schema, theirs.get(name, outer.get("additionalProperties")), f"{path}.{name}")
        further = inner.get("additionalProperties")
        for name, schema in theirs.items():
            if name not in ours and further not in (None, False):
                yield from self._gaps(further, schema, f"{path}.{name}")
        yield from self._undeclared(further, outer.get("additionalProperties"), f"{path}.*")
        if "propertyNames" in outer and (ours or further is not False):
            yield from self._names(inner, outer["propertyNames"], f"{path}.*")

    def _names(self, inner: JsonSchema, names: Any, path: str) -> Iterator[Gap]:  # Any: a schema may be a boolean
        text = {"type": "string"}
        declared = {"enum": list(inner.get("properties", {}))}
        yield from self._gaps(declared, both(text, names), path)
        if inner.get("additionalProperties") not in (None, False):
            yield from self._gaps(both(text, inner.get("propertyNames", True)), both(text, names), path)

    def _member(self, inner: Any, outer: Any, path: str) -> Iterator[Gap]:  # Any: a schema may be a boolean
        """A declared place against what is said of it: None where nothing is, and it is ignored."""
        if outer is None:
            if self._flow == "sent" and inner is not None:
                yield Gap(path, "is ignored")
        elif inner is not None:
            yield from self._gaps(inner, outer, path)

    def _undeclared(self, inner: Any, outer: Any, path: str) -> Iterator[Gap]:  # Any: as above
        if inner is False:
            return
        if inner is not None:
            yield from self._member(inner, outer, path)
        elif self._flow == "sent" and outer is False:
            yield Gap(path, "was ignored, is refused")
        elif self._flow == "sent" and outer is not None:
            yield from self._gaps(True, outer, path)
