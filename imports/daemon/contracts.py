"""Contracts of operations as discreet writes them, by themselves or in an OpenAPI document, as an import. Asks nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...daemon import plugins
from ...errors.decoders import decoder_for
from ...schemas.documents import ErrorSchema, OperationSchema, Snapshot
from ...schemas.json_schema import JsonSchema
from ...schemas.keywords import dereference, json_types
from ...schemas.named_types import LOCAL, NamedTypes, Schema
from ..model import ImportedError, Note
from .model import DaemonImport, DaemonOperation

Kind = Literal["query", "mutation", "subscription"]

_KINDS: Final[dict[str, Kind]] = {
    "query": "query",
    "mutation": "mutation",
    "subscription": "subscription",
    "notification": "mutation",
}


def import_of(operations: Iterable[OperationSchema]) -> DaemonImport:
    """The import of these operations, in this order. Types that several of them refer to by one name are shared."""
    types = NamedTypes(prefix=LOCAL)
    read: list[DaemonOperation] = []
    notes: list[Note] = []
    for operation in operations:
        if reason := _unusable(operation):
            notes.append(Note(f"/{operation.name}", "left-out", reason))
            continue
        if operation.kind == "notification":
            notes.append(Note(f"/{operation.name}", "changed", "a notification is a mutation here"))
        read.append(_operation(operation, types))
    return DaemonImport(operations=tuple(read), definitions=types.schemas, notes=tuple(notes))


def _unusable(operation: OperationSchema) -> str:
    """Why an operation can't be mounted; empty where it can."""
    if operation.kind not in _KINDS:
        return f"there is no kind {operation.kind}"
    root = operation.input_schema
    return "" if "object" in _types(root, root) else "its params are no object"


def _types(schema: Schema, root: JsonSchema) -> frozenset[str]:
    plain = dereference(schema, root)
    if "anyOf" in plain:
        return frozenset[str]().union(*(_types(branch, root) for branch in plain["anyOf"]))
    return json_types(plain)


def _operation(operation: OperationSchema, types: NamedTypes) -> DaemonOperation:
    return DaemonOperation(
        name=operation.name,
        method=operation.name,
        kind=_KINDS[operation.kind],
        input=object_schema(types.include(operation.input_schema)),
        output=types.include(operation.output_schema),
        errors=tuple(_error(error, types) for error in operation.error_schemas),
        description=operation.description,
        pointer=f"/{operation.name}",
        timeout=operation.timeout,
        numbered=operation.numbered is True,
    )


def object_schema(schema: Schema) -> JsonSchema:
    """The schema of params, which is no boolean."""
    return schema if isinstance(schema, dict) else {}


def _error(error: ErrorSchema, types: NamedTypes) -> ImportedError:
    return ImportedError(
        code=error.code,
        http_status=error.http_status,
        description=error.description,
        schema=None if error.schema is None else types.include(error.schema),
        retryable=error.retryable,
        message=error.message,
    )


def without_numbers(found: DaemonImport) -> DaemonImport:
    """The same for a connection whose events have no numbers."""
    return replace(found, operations=tuple(replace(each, numbered=False) for each in found.operations))


class _Info(Struct, frozen=True):
    title: str = ""
    version: str = ""


class _Server(Struct, frozen=True):
    url: str = ""


class _About(Struct, frozen=True):
    info: _Info = _Info()
    servers: tuple[_Server, ...] = ()


def read_own_document(text: bytes) -> DaemonImport | None:
    """What the document offers; None where it is one of another program, or none at all."""
    reader = plugins.load("reader", "openapi")
    if not reader.is_openapi(text):
        return None
    try:
        snapshot: Snapshot = reader.read_openapi(text)
        about = decoder_for(_About)(text)
    except (ValueError, msgspec.DecodeError):
        return None
    found = import_of(snapshot.operations.values())
    url = about.servers[0].url if about.servers else ""
    return replace(found, title=about.info.title, version=about.info.version, url=url)
