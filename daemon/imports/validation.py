"""Checks JSON values against given schemas (JSON Schema 2020-12), and says what is wrong in declared facts alone.

The library is jsonschema-rs: it checks in native code, and its regular expressions can't run for ever. Its messages quote values
and are never read. `format` is an annotation, as the specification has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, TypeAlias, final

from msgspec import Struct

from ...errors.failures import InvalidParams, JsonScalar
from ..operations.input_errors import is_plain, unknown_member
from ..schemas.phrases import closed_list, describe_schema, json_kind, part_at
from .complexity import DEEPEST_AMBIGUOUS, depth_of, is_ambiguous, too_many_alternatives
from .failures import ImportFailed
from .model import JsonSchema

INSTALL: Final = "pip install 'discreet[openapi]'"

_Path: TypeAlias = Sequence[str | int]

_EXPLAINED: Final = 6
"""Levels of a value that are searched for what is wrong, where each may double the work."""
_MOST_BRANCHES: Final = 3
"""How far the search goes into alternatives in alternatives."""


def require_validator(extra: str = "openapi") -> None:
    """Raises `ImportFailed` where the library is not installed. `extra` brings it."""
    if find_spec("jsonschema_rs") is None:
        raise ImportFailed(f"imported operations need jsonschema-rs: pip install 'discreet[{extra}]'")


class Fault(Struct, frozen=True):
    """Where a value does not fit: a path in declared names, the keyword that refuses it, and what is expected there."""

    path: str
    keyword: str
    expected: str
    received: str
    accepted: tuple[JsonScalar, ...] | None = None
    unknown_member: str | None = None

    def as_invalid_params(self) -> InvalidParams:
        if self.unknown_member is not None:
            known = tuple(str(name) for name in self.accepted or ())
            return unknown_member("" if self.path == "$" else self.path, self.unknown_member, known)
        return InvalidParams(self.path, self.expected, self.received, self.accepted)


@final
class Checker:
    """Checks values against one schema, a document of its own. Raises `ImportFailed` for a schema that is none."""

    def __init__(self, document: JsonSchema) -> None:
        if too_many_alternatives(document):
            raise ImportFailed("a schema with too many alternatives of alternatives to be checked")
        self._deepest: Final = DEEPEST_AMBIGUOUS if is_ambiguous(document) else None
        import jsonschema_rs  # late: a third of the start-up time of a daemon

        self._document: Final = document
        try:
            self._validator: Any = jsonschema_rs.Draft202012Validator(document, validate_formats=False)
        except Exception as exc:
            raise ImportFailed(f"a schema that can't be used: {type(exc).__name__}") from exc

    def fault(self, value: Any, *, prefix: str = "") -> Fault | None:
        """The first place where a value does not fit; None where it does. `prefix` stands before its path."""
        depth = 0 if self._deepest is None else depth_of(value)
        if self._deepest is not None and depth > self._deepest:
            expected = f"{json_kind(value)} of at most {self._deepest} levels"
            return Fault(prefix or "$", "maxDepth", expected, json_kind(value))
        if self._validator.is_valid(value):
            return None
        if depth > _EXPLAINED:  # every wrong alternative of every level would be told
            return Fault(prefix or "$", "oneOf", self._phrase(self._document), json_kind(value))
        for error in self._validator.iter_errors(value):
            return self._fault(error, value, prefix)
        return Fault(prefix or "$", "", "another value", json_kind(value))

    def _fault(self, error: Any, value: Any, prefix: str) -> Fault:
        error = _deepest(error)
        kind, keyword = error.kind, str(error.kind.name)
        path = self._shown(error.instance_path, prefix)
        fragment = part_at(self._document, list(error.schema_path)[:-1])
        if keyword == "required":
            name = str(kind.property)
            expected = part_at(fragment.get("properties", {}), [name])
            return Fault(_member(path, name), keyword, self._phrase(expected), "missing", closed_list(expected))
        if keyword in ("additionalProperties", "unevaluatedProperties"):
            unknown = next(iter(kind.unexpected), "")
            if fragment.get(keyword) is False:
                return Fault(path, keyword, "one of", "unknown field", tuple(fragment.get("properties", ())), unknown)
        received = json_kind(_value_at(value, error.instance_path))
        accepted = closed_list(fragment)
        if (
            accepted is not None
            and received == "string"
            and is_plain(word := str(_value_at(value, error.instance_path)))
        ):
            received = word
        return Fault(path, keyword, self._phrase(fragment), received, accepted)

    def _shown(self, path: _Path, prefix: str) -> str:
        """A path in declared names; for the caller's own keys, `*`."""
        shown = prefix
        declared = frozenset(_property_names(self._document)) if any(isinstance(part, str) for part in path) else ()
        for part in path:
            if isinstance(part, int):
                shown = f"{shown or '$'}[{part}]"
            else:
                shown = _member("" if shown == "" else shown, part if part in declared else "*")
        return shown or "$"

    def _phrase(self, schema: Any) -> str:
        return describe_schema(schema, self._document)


def _deepest(error: Any) -> Any:
    """Of alternatives that all refuse a value, the one that got furthest into it."""
    for _ in range(_MOST_BRANCHES):
        branches = getattr(error.kind, "context", None)
        if not branches:
            return error
        firsts = [branch[0] for branch in branches if branch]
        further = [each for each in firsts if len(each.instance_path) > len(error.instance_path)]
        if not further:
            return error
        error = max(further, key=lambda each: len(each.instance_path))
    return error


def _value_at(value: Any, path: _Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _member(path: str, name: str) -> str:
    return f"{path}.{name}" if path and path != "$" else name


def _property_names(schema: Any) -> Iterator[str]:
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("properties"), Mapping):
                yield from part["properties"]
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
