"""Whatever a document holds: an import whose schemas are sound, or one line. Never a traceback, never without bound."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.imports.archive import ImportArchive, pack
from discreet.imports.complexity import TOO_MANY
from discreet.imports.http.model import HttpImport, HttpOperation
from discreet.imports.openapi import reader
from discreet.imports.openapi.parsing import DocumentError
from discreet.imports.openapi.reader import read_openapi
from discreet.imports.validation import Checker
from support.openapi_documents import OK, document, read, require_sound, with_schema

REF = {"$ref": "#/components/schemas/S"}
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "nullable": True,
    "properties": {"id": {"type": "integer", "readOnly": True, "minimum": 0, "exclusiveMinimum": True}, "next": REF},
    "additionalProperties": {"anyOf": [REF, {"not": {"enum": [1]}}]},
    "discriminator": {"propertyName": "id", "mapping": {"a": "#/components/schemas/S"}},
    "example": {"id": 1},
}
FULL = document(
    {
        "/x/{id}": {
            "summary": "x",
            "servers": [{"url": "https://{h}", "variables": {"h": {"default": "a", "enum": ["a"]}}}],
            "parameters": [{"$ref": "#/components/parameters/P"}],
            "post": {
                "operationId": "op",
                "tags": ["t"],
                "security": [{"key": []}],
                "parameters": [{"name": "q", "in": "query", "style": "deepObject", "explode": True, "schema": REF}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {"schema": REF, "encoding": {"id": {"contentType": "text/plain"}}}
                    },
                },
                "responses": {
                    "200": {"description": "", "content": {"application/json": {"schema": REF}, "text/plain": {}}},
                    "404": {"$ref": "#/components/responses/R"},
                    "default": {"description": ""},
                },
                "callbacks": {"c": {"x": {"post": {"responses": OK}}}},
            },
        }
    },
    version="3.0.3",
    servers=[{"url": "/"}],
    security=[{"key": []}],
    webhooks={"w": {}},
    components={
        "schemas": {"S": SCHEMA},
        "parameters": {"P": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "responses": {"R": {"description": "", "content": {"application/json": {"schema": REF}}}},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "K"}},
    },
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, each in below for place in places(each, (*path, name)))]


PLACES = places(FULL)[1:]
ODD = [None, True, False, 0, -1, 1.5, 2**70, "", "x", "\x00\n", [], [None], ["x"], {}, {"x": None}, {"$ref": "#/"}, {"$ref": "#"}, {"$ref": ""},
       {"$ref": "#/components/schemas/S"}, {"$ref": 1}, {"type": "string"}, [{}], {"": {}}, {"200": {}}, {"a/b": {"schema": {}}}]  # fmt: skip


def changed(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    mutant = copy.deepcopy(FULL)
    holder: Any = mutant
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    return mutant


def read_or_refuse(mutant: dict[str, Any]) -> None:
    try:
        imported = read_openapi(msgspec.json.encode(mutant))
    except DocumentError as exc:
        assert "\n" not in str(exc)
        return
    require_sound(imported)
    assert all(note.reason and "\n" not in note.reason for note in imported.notes)


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_any_part_may_be_of_any_type(value: Any) -> None:
    for place in PLACES:
        read_or_refuse(changed(place, value))


MUTATION = st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD) | st.sampled_from(PLACES))


@settings(max_examples=300)
@given(st.lists(MUTATION, min_size=1, max_size=4))
def test_any_mutant_is_an_import_or_one_line(mutations: list[tuple[tuple[Any, ...], Any]]) -> None:
    mutant = copy.deepcopy(FULL)
    for place, value in mutations:
        value = copy.deepcopy(_at(FULL, value) if isinstance(value, tuple) else value)
        try:
            _at(mutant, place[:-1])[place[-1]] = value
        except (LookupError, TypeError):
            continue
    read_or_refuse(mutant)


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 6))
def test_any_damage_to_the_text_is_an_import_or_one_line(at: int, inserted: bytes, removed: int) -> None:
    text = msgspec.json.encode(FULL)
    at %= len(text)
    try:
        require_sound(read_openapi(text[:at] + inserted + text[at + removed :]))
    except DocumentError as exc:
        assert "\n" not in str(exc)


def test_tens_of_thousands_of_paths_are_read() -> None:
    paths = {f"/p{n}": {"get": {"operationId": "same", "responses": OK}} for n in range(30_000)}
    imported = read_openapi(msgspec.json.encode(document(paths)))
    assert len({operation.name for operation in imported.operations}) == 30_000


def test_a_long_chain_of_types_takes_no_stack() -> None:
    schemas = {f"T{n}": {"allOf": [{"$ref": f"#/components/schemas/T{n + 1}"}]} for n in range(3000)}
    imported = read(with_schema({"$ref": "#/components/schemas/T0"}, {**schemas, "T3000": {}}))
    assert len(imported.definitions) == 3001


@pytest.mark.parametrize(
    ("opening", "closing"), [('{"not":', "}"), ('{"items":', "}"), ('{"properties":{"x":', "}}"), ('{"allOf":[', "]}")]
)
@pytest.mark.parametrize("depth", [45, 55, 150, 5000])
def test_deeply_nested_schemas_are_read_or_refused_in_one_line(opening: str, closing: str, depth: int) -> None:
    text = (
        msgspec.json.encode(with_schema("SCHEMA"))
        .decode()
        .replace('"SCHEMA"', opening * depth + "{}" + closing * depth)
    )
    try:
        imported = read_openapi(text.encode())
    except DocumentError as exc:
        assert "\n" not in str(exc)
        return
    require_sound(imported)
    assert bool(imported.notes) is (depth > 50)


def test_operations_that_many_paths_share_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_OPERATIONS", 1000)
    item = {"additionalOperations": {f"M{n}": {"responses": OK} for n in range(50)}}
    paths = {f"/p{n}": {"$ref": "#/components/pathItems/I"} for n in range(50)}
    with pytest.raises(DocumentError, match="operations"):
        read(document(paths, components={"pathItems": {"I": item}}))


def test_params_that_many_operations_share_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_PARTS", 10_000)
    params = [{"name": f"q{n}", "in": "query", "schema": {}} for n in range(150)]
    item = {"parameters": params, "additionalOperations": {f"M{n}": {"responses": OK} for n in range(100)}}
    with pytest.raises(DocumentError, match="params"):
        read(document({"/x": item}))


DOUBLING = [
    lambda to: {"allOf": [to, to]},
    lambda to: {"anyOf": [to, to]},
    lambda to: {"oneOf": [to, to]},
    lambda to: {"not": {"anyOf": [to, to]}},
    lambda to: {"if": to, "then": to},
    lambda to: {"if": True, "then": to, "else": to},
    lambda to: {"dependentSchemas": {"a": to, "b": to}},
    lambda to: {"unevaluatedProperties": False, "allOf": [to]},
    lambda to: {"unevaluatedItems": False, "$ref": to["$ref"]},
    lambda to: {"properties": {"a": {"oneOf": [to]}}, "allOf": [to], "anyOf": [to]},
]


@pytest.mark.parametrize("level", DOUBLING)
@pytest.mark.parametrize("depth", [5, 40])
def test_an_operation_is_imported_just_where_its_schema_can_be_checked(level: Any, depth: int) -> None:
    types = {f"S{at}": level({"$ref": f"#/components/schemas/S{at + 1}"}) for at in range(depth)}
    body = {"type": "object", "properties": {"deep": {"type": "array", "items": {"$ref": "#/components/schemas/S0"}}}}
    operation = {"requestBody": {"content": {"application/json": {"schema": body}}}, "responses": OK}
    paths = {"/doubled": {"post": operation}, "/plain": {"get": {"responses": OK}}}
    imported = read(document(paths=paths, components={"schemas": {**types, f"S{depth}": {"type": "object"}}}))
    left_out = [(note.pointer, note.reason) for note in imported.notes if note.kind == "left-out"]
    names = {each.path for each in imported.operations}
    packed = ImportArchive(pack(imported), HttpImport, HttpOperation)
    for at in range(len(packed.entries)):
        Checker(packed.document(packed.operation(at).input))
    if depth == 5:
        assert (names, left_out, imported.left_out) == ({"/doubled", "/plain"}, [], 0)
    else:
        assert (names, left_out, imported.left_out) == ({"/plain"}, [("/paths/~1doubled/post", TOO_MANY)], 1)
