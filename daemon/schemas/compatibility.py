"""Tells what a new snapshot breaks for callers of the old one: what they may send and no longer may, or may now receive.

Compares operations here and their schemas by `containment`. Conservative: what can't be decided counts as broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from .documents import AccessSchema, ErrorSchema, OperationSchema, Snapshot
from .json_schema import JsonSchema
from .subschema import Flow, gaps

_ERROR_FACTS: Final = {"retryable": "retryable", "http_status": "httpStatus"}
_OPEN: Final = AccessSchema()


class Change(msgspec.Struct, frozen=True, order=True):
    """One change for callers of an operation. `path` is `input…`, `output…`, `errors.CODE…` or empty for the whole."""

    operation: str
    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.operation} {self.path}: {self.what}" if self.path else f"{self.operation}: {self.what}"


def breaking_changes(old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
    """What may break a caller who knows `old` alone, sorted; empty where nothing can.

    Breaking are: an operation or error code that is gone, another kind, input that was taken and may now be refused or
    ignored, params in another order, output or error details that are not as promised, another `retryable` or
    `httpStatus` of an error, and scopes that were not asked for. Texts, defaults and timeouts may change.
    """
    return tuple(sorted(set(_breaking(old, new))))


def additions(old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
    """What is new and breaks nothing: operations, error codes, params and members of results, sorted."""
    return tuple(sorted(set(_added(old, new))))


def _breaking(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    for name, before in old.operations.items():
        after = new.operations.get(name)
        if after is None:
            yield Change(name, "", "is gone")
            continue
        for path, what in _operation(before, after):
            yield Change(name, path, what)


def _operation(old: OperationSchema, new: OperationSchema) -> Iterator[tuple[str, str]]:
    if old.kind != new.kind:
        yield "", f"was a {old.kind}, is a {new.kind}"
    yield from _between("input", old.input_schema, new.input_schema, "sent")
    yield from _positions(old.input_schema, new.input_schema)
    yield from _between("output", old.output_schema, new.output_schema, "received")
    yield from _errors(old, new)
    yield from _scopes(old.access or _OPEN, new.access or _OPEN)


def _between(path: str, old: JsonSchema, new: JsonSchema, flow: Flow) -> Iterator[tuple[str, str]]:
    for gap in gaps(old, new, flow):
        yield path + gap.path, gap.what


def _positions(old: JsonSchema, new: JsonSchema) -> Iterator[tuple[str, str]]:
    """Params may be sent by position, in the order of the signature."""
    before, after = list(old.get("properties", ())), list(new.get("properties", ()))
    moved = [name for name in before if name in after and before.index(name) != after.index(name)]
    if moved:
        yield "input", f"another position for {', '.join(moved)}"


def _errors(old: OperationSchema, new: OperationSchema) -> Iterator[tuple[str, str]]:
    by_code = {error.code: error for error in new.error_schemas}
    for error in old.error_schemas:
        path = f"errors.{error.code}"
        after = by_code.get(error.code)
        if after is None:
            yield path, "is gone"
        else:
            yield from _error(path, error, after)


def _error(path: str, old: ErrorSchema, new: ErrorSchema) -> Iterator[tuple[str, str]]:
    for attribute, name in _ERROR_FACTS.items():
        before, after = getattr(old, attribute), getattr(new, attribute)
        if before != after:
            yield path, f"{name} was {msgspec.json.encode(before).decode()}, is {msgspec.json.encode(after).decode()}"
    if old.schema is not None and new.schema is None:
        yield path, "has no details any more"
    elif old.schema is not None and new.schema is not None:
        yield from _between(path, old.schema, new.schema, "received")


def _scopes(old: AccessSchema, new: AccessSchema) -> Iterator[tuple[str, str]]:
    held = set(old.all_of) | (set(old.any_of) if len(old.any_of) == 1 else set())
    for scope in new.all_of:
        if scope not in held:
            yield "access", f"asks for the scope {scope}"
    enough = set(new.any_of)
    if enough and not enough & held and not (old.any_of and enough >= set(old.any_of)):
        yield "access", f"asks for one of the scopes {', '.join(new.any_of)}"


def _added(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    for name, after in new.operations.items():
        before = old.operations.get(name)
        if before is None:
            yield Change(name, "", "is new")
            continue
        codes = {error.code for error in before.error_schemas}
        yield from (Change(name, f"errors.{e.code}", "is new") for e in after.error_schemas if e.code not in codes)
        yield from _new_members(name, "input", before.input_schema, after.input_schema)
        yield from _new_members(name, "output", before.output_schema, after.output_schema)


def _new_members(name: str, path: str, old: JsonSchema, new: JsonSchema) -> Iterator[Change]:
    optional = set(new.get("properties", ())) - set(old.get("properties", ()))
    if path == "input":
        optional -= set(new.get("required", ()))
    yield from (Change(name, f"{path}.{member}", "is new") for member in optional)
