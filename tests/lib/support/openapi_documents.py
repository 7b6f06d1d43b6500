"""Small OpenAPI documents, and the check that whatever is read of one is sound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from jsonschema import Draft202012Validator

try:
    import jsonschema_rs
except ImportError:
    jsonschema_rs = None

from discreet.imports.http.model import HttpImport, HttpOperation
from discreet.imports.openapi.reader import read_openapi

OK = {"200": {"description": "ok"}}


def document(paths: Any, *, version: str = "3.1.0", **members: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **members}


def with_operation(
    operation: Mapping[str, Any], *, path: str = "/x", method: str = "get", **members: Any
) -> dict[str, Any]:
    return document({path: {method: {"operationId": "op", "responses": OK, **operation}}}, **members)


def with_schema(schema: Any, schemas: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """An operation that answers with a value of this schema, and takes one as its body."""
    content = {"application/json": {"schema": schema}}
    operation = {"requestBody": {"content": content}, "responses": {"200": {"description": "ok", "content": content}}}
    return with_operation(operation, method="post", components={"schemas": schemas or {}}, **members)


def read(found: Mapping[str, Any], **options: Any) -> HttpImport:
    imported = read_openapi(msgspec.json.encode(found), **options)
    require_sound(imported)
    return imported


def only(found: Mapping[str, Any], **options: Any) -> HttpOperation:
    (operation,) = read(found, **options).operations
    return operation


def output_of(schema: Any, schemas: Mapping[str, Any] | None = None, **members: Any) -> Any:
    return only(with_schema(schema, schemas, **members)).output


def reasons(imported: HttpImport) -> dict[str, str]:
    """What is noted, by its pointer."""
    return {note.pointer: note.kind for note in imported.notes}


def require_sound(imported: HttpImport) -> None:
    """Every schema is one of JSON Schema 2020-12, every reference leads somewhere, names differ, and a cache can keep it."""
    names = [operation.name for operation in imported.operations]
    assert len(names) == len(set(names))
    for schema in schemas_of(imported):
        for ref in refs_in(schema):
            assert ref.removeprefix("#/$defs/") in imported.definitions, ref
    every = {"anyOf": list(schemas_of(imported)) or [True], "$defs": dict(imported.definitions)}
    if jsonschema_rs is None:
        Draft202012Validator.check_schema(every)
    else:
        jsonschema_rs.Draft202012Validator(every)  # checks the schema, too
    encoded = msgspec.msgpack.encode(imported)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(encoded, type=HttpImport)) == encoded
    for operation in imported.operations:
        members = operation.input["properties"]
        body = {"body"} if operation.body else set()
        chosen = {operation.accept, operation.content_type} - {""}
        assert {param.name for param in operation.params} | body | chosen == set(members)
        assert len({error.code for error in operation.errors}) == len(operation.errors)


def schemas_of(imported: HttpImport) -> Iterator[Any]:
    yield from imported.definitions.values()
    for operation in imported.operations:
        yield operation.input
        yield operation.output
        yield from (error.schema for error in operation.errors if error.schema is not None)


_SCHEMAS = ("items", "prefixItems", "contains", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "propertyNames",
            "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contentSchema")  # fmt: skip
_MAPS = ("properties", "patternProperties", "dependentSchemas")


def _values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []


def refs_in(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            waiting += [each for word, each in value.items() if word in _SCHEMAS]
            waiting += [each for word in _MAPS for each in _values(value.get(word))]
        elif isinstance(value, list):
            waiting += value
