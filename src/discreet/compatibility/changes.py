"""Compares two snapshots of a service: changes that break callers of the old one, and additions.

Compares operations here and their schemas in `subschema`. Conservative: a change that can't be decided counts as a break.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ..schemas.documents import AccessSchema, ErrorSchema, OperationSchema, Snapshot
from ..schemas.json_schema import JsonSchema
from .subschema import Direction, incompatibilities

_ERROR_FACTS: Final = {"retryable": "retryable", "http_status": "httpStatus"}
_UNRESTRICTED: Final = AccessSchema()


class ContractChange(msgspec.Struct, frozen=True, order=True):
    """One change for callers of an operation. `path` is `input…`, `output…`, `errors.CODE…`, or empty for the operation."""

    operation: str
    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.operation} {self.path}: {self.what}" if self.path else f"{self.operation}: {self.what}"


def breaking_changes(old: Snapshot, new: Snapshot) -> tuple[ContractChange, ...]:
    """List the changes that break callers who know only `old`, sorted; empty if none does."""
    return tuple(sorted(set(_breaking(old, new))))


def additions(old: Snapshot, new: Snapshot) -> tuple[ContractChange, ...]:
    """List the additions that break no caller: operations, error codes, params and members of results, sorted."""
    return tuple(sorted(set(_added(old, new))))


def _breaking(old: Snapshot, new: Snapshot) -> Iterator[ContractChange]:
    for name, before in old.operations.items():
        after = new.operations.get(name)
        if after is None:
            yield ContractChange(name, "", "is gone")
            continue
        for path, what in _compare_operations(before, after):
            yield ContractChange(name, path, what)


def _compare_operations(old: OperationSchema, new: OperationSchema) -> Iterator[tuple[str, str]]:
    if old.kind != new.kind:
        yield "", f"was a {old.kind}, is a {new.kind}"
    yield from _compare_schemas("input", old.input_schema, new.input_schema, "sent")
    yield from _positions(old.input_schema, new.input_schema)
    yield from _compare_schemas("output", old.output_schema, new.output_schema, "received")
    yield from _errors(old, new)
    yield from _scopes(old.access or _UNRESTRICTED, new.access or _UNRESTRICTED)


def _compare_schemas(path: str, old: JsonSchema, new: JsonSchema, direction: Direction) -> Iterator[tuple[str, str]]:
    for found in incompatibilities(old, new, direction):
        yield path + found.path, found.what


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
        yield path, "no longer has details"
    elif old.schema is not None and new.schema is not None:
        yield from _compare_schemas(path, old.schema, new.schema, "received")


def _scopes(old: AccessSchema, new: AccessSchema) -> Iterator[tuple[str, str]]:
    held = set(old.all_of) | (set(old.any_of) if len(old.any_of) == 1 else set())
    for scope in new.all_of:
        if scope not in held:
            yield "access", f"requires the scope {scope}"
    enough = set(new.any_of)
    if enough and not enough & held and not (old.any_of and enough >= set(old.any_of)):
        yield "access", f"requires one of the scopes {', '.join(new.any_of)}"


def _added(old: Snapshot, new: Snapshot) -> Iterator[ContractChange]:
    for name, after in new.operations.items():
        before = old.operations.get(name)
        if before is None:
            yield ContractChange(name, "", "is new")
            continue
        codes = {error.code for error in before.error_schemas}
        yield from (
            ContractChange(name, f"errors.{e.code}", "is new") for e in after.error_schemas if e.code not in codes
        )
        yield from _new_members(name, "input", before.input_schema, after.input_schema)
        yield from _new_members(name, "output", before.output_schema, after.output_schema)


def _new_members(name: str, path: str, old: JsonSchema, new: JsonSchema) -> Iterator[ContractChange]:
    optional = set(new.get("properties", ())) - set(old.get("properties", ()))
    if path == "input":
        optional -= set(new.get("required", ()))
    yield from (ContractChange(name, f"{path}.{member}", "is new") for member in optional)
