"""Checks JSON values against given schemas (JSON Schema 2020-12), and says what is wrong in declared facts alone.

The library is jsonschema-rs: it checks in native code, and its regular expressions can't run for ever. Its messages quote values
and are never read. `format` is an annotation, as the specification has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

from msgspec import Struct

from ..daemon.operations.input_errors import is_plain, unknown_member
from ..errors.failures import InvalidParams, JsonScalar
from ..schemas.phrases import closed_list, describe_schema, json_kind, part_at
from .archive import objects_in
from .complexity import TooMuchWork, Unbounded, Workload
from .model import ImportFailed, JsonSchema

_Path: TypeAlias = Sequence[str | int]

_MOST_BRANCHES: Final = 16
"""How far the search goes into alternatives in alternatives."""
_NAMED_ALTERNATIVES: Final = 8
"""How many alternatives that all fit are named."""


class Fault(Struct, frozen=True):
    """A place at which a value does not fit: a path in declared names, the keyword that refuses it, and the expected value."""

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
        import jsonschema_rs  # late: a third of the start-up time of a daemon

        try:
            self._workload: Final = Workload(document)
        except Unbounded as exc:
            raise ImportFailed(str(exc)) from None
        self._document: Final = document
        try:
            self._validator: Any = jsonschema_rs.Draft202012Validator(document, validate_formats=False)
        except Exception as exc:
            raise ImportFailed(f"a schema that can't be used: {type(exc).__name__}") from exc

    def fault(self, value: Any, *, prefix: str = "") -> Fault | None:
        """The first place where a value does not fit; None where it does. `prefix` stands before its path."""
        try:
            self._workload.check(value)
            if self._validator.is_valid(value):
                return None
            if not self._workload.explains(value):
                return Fault(prefix or "$", "oneOf", self._phrase(self._document), json_kind(value))
        except TooMuchWork:
            return Fault(
                prefix or "$", "complexity", f"{json_kind(value)} that is smaller or less deep", json_kind(value)
            )
        error = _first_error(self._validator, value)
        return (
            Fault(prefix or "$", "", "another value", json_kind(value))
            if error is None
            else self._fault(error, value, prefix)
        )

    def _fault(self, error: Any, value: Any, prefix: str) -> Fault:
        error, alternative = _meant(error)
        kind, keyword = error.kind, str(error.kind.name)
        path = self._shown(error.instance_path, prefix)
        fragment = part_at(self._document, list(error.schema_path)[:-1])
        if fits := [str(at) for at, each in enumerate(getattr(kind, "context", ()), 1) if not each]:
            named = ", ".join(fits[:_NAMED_ALTERNATIVES])
            received = json_kind(_value_at(value, error.instance_path))
            return Fault(path, keyword, f"{received} that fits one alternative alone, not {named}", received)
        if keyword == "required":
            name = str(kind.property)
            expected = part_at(fragment.get("properties", {}), [name])
            return Fault(
                _member(path, name), keyword, self._phrase(expected) + alternative, "missing", closed_list(expected)
            )
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
        return Fault(path, keyword, self._phrase(fragment) + alternative, received, accepted)

    def _shown(self, path: _Path, prefix: str) -> str:
        """A path in declared names; for the caller's own keys, `*`."""
        shown = prefix
        declared: set[str] = set()
        if any(isinstance(part, str) for part in path):
            tables = [each.get("properties") for each in objects_in(self._document)]
            declared.update(name for table in tables if isinstance(table, dict) for name in table)
        for part in path:
            if isinstance(part, int):
                shown = f"{shown or '$'}[{part}]"
            else:
                shown = _member("" if shown == "" else shown, part if part in declared else "*")
        return shown or "$"

    def _phrase(self, schema: Any) -> str:
        return describe_schema(schema, self._document)


def _first_error(validator: Any, value: Any) -> Any:
    import jsonschema_rs

    try:
        validator.validate(value)  # stops at the first: `iter_errors` makes all of them before it gives one
    except jsonschema_rs.ValidationError as exc:
        return exc
    except ValueError:  # a value of more levels than an error can hold
        pass
    return None


def _meant(error: Any) -> tuple[Any, str]:
    """Of alternatives that all refuse a value, the first error of the one that was probably meant, and which one that is.

    Alternatives for another JSON type were not meant; of the others it is the one whose tags fit best, and that has the fewest
    errors.
    """
    alternative = ""
    for _ in range(_MOST_BRANCHES):
        branches = getattr(error.kind, "context", None)
        if not branches or not all(branches):
            break
        depth = len(error.instance_path)
        meant = [
            (sum(each.kind.name in ("const", "enum") for each in errors), len(errors), at, errors[0])
            for at, errors in enumerate(branches, 1)
            if not any(each.kind.name == "type" and len(each.instance_path) == depth for each in errors)
        ]
        if not meant:
            break
        _, _, at, error = min(meant, key=lambda each: each[:3])
        alternative = f" (alternative {at} of {len(branches)})" if len(meant) > 1 else alternative
    return error, alternative


def _value_at(value: Any, path: _Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _member(path: str, name: str) -> str:
    return f"{path}.{name}" if path and path != "$" else name
