"""References lead within a document, to files beside it, and nowhere that they may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.imports.openapi.loading import load_document
from discreet.imports.openapi.reader import read_openapi
from support.openapi_documents import OK, document, only, read, reasons, require_sound, with_operation, with_schema

TEXT = {"type": "string"}


def test_each_kind_of_component_may_be_referred_to() -> None:
    found = only(
        document(
            {"/a~b/{id}": {"$ref": "#/components/pathItems/Item"}},
            components={
                "pathItems": {
                    "Item": {
                        "parameters": [{"$ref": "#/components/parameters/Id"}],
                        "put": {
                            "operationId": "put",
                            "requestBody": {"$ref": "#/components/requestBodies/B"},
                            "responses": {
                                "200": {"$ref": "#/components/responses/R"},
                                "404": {"$ref": "#/components/responses/E"},
                            },
                        },
                    }
                },
                "parameters": {
                    "Id": {"$ref": "#/components/parameters/Real"},
                    "Real": {"name": "id", "in": "path", "required": True, "schema": TEXT},
                },
                "requestBodies": {
                    "B": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}}
                },
                "responses": {
                    "R": {
                        "description": "",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}},
                    },
                    "E": {
                        "description": "none",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}},
                    },
                },
                "schemas": {"S": {"type": "object"}},
            },
        )
    )
    ref = {"$ref": "#/$defs/S"}
    assert found.input["properties"] == {"id": TEXT, "body": ref}
    assert (found.output, found.errors[0].schema, found.errors[0].description) == (ref, ref, "none")


def test_a_path_item_beside_its_reference_counts_more() -> None:
    shared = {"get": {"operationId": "theirs", "responses": OK}, "put": {"operationId": "put", "responses": OK}}
    found = read(
        document(
            {"/x": {"$ref": "#/components/pathItems/I", "get": {"operationId": "ours", "responses": OK}}},
            components={"pathItems": {"I": shared}},
        )
    )
    assert {operation.name for operation in found.operations} == {"ours", "put"}


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        ("#/components/schemas/A", "A"),
        ("#/components/schemas/a~1b~0c%20d", "a_b_c_d"),
        ("#/components/schemas/A/properties/x", "A_properties_x"),
        ("#/components/schemas/Alias/properties/x", "A_properties_x"),
        ("#/x-types/T", "x-types_T"),
        ("#/x-list/1", "x-list_1"),
        ("#anchored", "Anchored"),
        ("#dynamic", "Dynamic"),
        ("https://example.com/ided", "Ided"),
        ("https://example.com/ided#/$defs/Inner", "Ided_Inner"),
        ("https://example.com/ided#inside", "Ided_Inner"),
        ("#/components/schemas/Alias", "A"),
    ],
)
def test_a_reference_leads_to_a_shared_type(ref: str, name: str) -> None:
    schemas = {
        "A": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "Alias": {"$ref": "#/components/schemas/A"},
        "a/b~c d": TEXT,
        "Anchored": {"$anchor": "anchored", "type": "object"},
        "Dynamic": {"$dynamicAnchor": "dynamic", "type": "object"},
        "Ided": {
            "$id": "https://example.com/ided",
            "$defs": {"Inner": {"$anchor": "inside", "type": "null"}},
            "properties": {"inner": {"$ref": "#/$defs/Inner"}, "self": {"$ref": "#"}},
        },
    }
    found = read(with_schema({"$ref": ref}, schemas, **{"x-types": {"T": TEXT}, "x-list": [TEXT, TEXT]}))
    assert found.operations[0].output == {"$ref": f"#/$defs/{name}"}
    assert not any(word in str(found.definitions) for word in ("$id", "$anchor", "$dynamicAnchor"))
    assert found.notes == ()


def test_a_dynamic_reference_is_a_reference() -> None:
    node = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {"$dynamicRef": "#node"}}}
    found = read(with_schema({"$ref": "#/components/schemas/Node"}, {"Node": node}))
    assert found.definitions == {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}


def test_a_recursive_type_is_stored_once() -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
    }
    found = read(with_schema({"$ref": "#/components/schemas/Tree"}, {"Tree": tree}))
    assert found.definitions["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert list(found.definitions) == ["Tree"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/components/schemas/None"},
        {"$ref": "#/components/schemas/A"},
        {"$ref": "#none"},
        {"$ref": "other.yaml"},
        {"$ref": "http://[/"},
        {"$ref": "#/paths/%2Fx/get/0"},
    ],
)
def test_an_operation_whose_value_is_a_reference_to_nowhere_is_left_out(schema: Any) -> None:
    circle = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    found = read(with_schema(schema, circle))
    assert (found.operations, reasons(found)) == ((), {"/paths/~1x/post": "left-out"})


def test_a_member_that_is_a_reference_to_nowhere_accepts_anything() -> None:
    found = read(with_schema({"properties": {"x": {"$ref": "#/none"}, "y": TEXT}}))
    assert found.operations[0].output == {"properties": {"x": True, "y": TEXT}}
    assert list(reasons(found).values()) == ["changed"] * 2  # of the body and of the response


@pytest.mark.parametrize("what", ["parameters", "requestBody", "responses"])
def test_references_in_a_circle_leave_the_operation_out(what: str) -> None:
    circle = {"$ref": "#/components/x/A"}
    parts = {"parameters": [circle], "requestBody": circle, "responses": {"200": circle}}
    found = read(
        with_operation({what: parts[what]}, components={"x": {"A": {"$ref": "#/components/x/B"}, "B": circle}})
    )
    assert (found.operations, reasons(found)) == ((), {"/paths/~1x/get": "left-out"})


# -- other documents ---------------------------------------------------------------------------------

MAIN = """
openapi: 3.0.0
info: {title: T, version: "1"}
paths:
  /pets: {$ref: 'paths/pets.yaml'}
  /far: {$ref: '../far.yaml#/far'}
components: {schemas: {Pet: {type: string}}}
"""
PETS = """
get:
  operationId: pets
  responses: {200: {description: ok, content: {application/json: {schema: {$ref: '../schemas/pet.json#/Pet'}}}}}
"""
PET = (
    '{"Pet": {"type": "object", "nullable": true, "properties": {"owner": {"$ref": "#/Owner"}, "pet":'
    ' {"$ref": "../main.yaml#/components/schemas/Pet"}}}, "Owner": {"type": "string"}}'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "api/main.yaml": MAIN,
        "api/paths/pets.yaml": PETS,
        "api/schemas/pet.json": PET,
        "far.yaml": "far: {get: {operationId: far, responses: {200: {description: ok}}}}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.needs("yaml")
@pytest.mark.parametrize("outside", [False, True])
def test_files_beside_a_document_are_read_and_others_only_if_asked(folder: Path, outside: bool) -> None:
    loaded = load_document(folder / "api" / "main.yaml", outside=outside)
    found = read_openapi(loaded.text, origin=loaded.origin, fetch=loaded.fetch)
    require_sound(found)
    assert [operation.name for operation in found.operations] == ["pets", *(["far"] if outside else [])]
    assert found.definitions == {
        "pet_Pet": {
            "type": ["object", "null"],
            "properties": {"owner": {"$ref": "#/$defs/pet_Owner"}, "pet": {"$ref": "#/$defs/Pet"}},
        },
        "pet_Owner": TEXT,
        "Pet": TEXT,
    }
    assert found.operations[0].pointer == "paths/pets.yaml#/get"
    assert [note.kind for note in found.notes] == ([] if outside else ["left-out"])


@pytest.mark.needs("yaml")
def test_a_link_does_not_lead_out_of_the_folder(folder: Path) -> None:
    (folder / "api" / "paths" / "pets.yaml").unlink()
    (folder / "api" / "paths" / "pets.yaml").symlink_to(folder / "far.yaml")
    loaded = load_document(folder / "api" / "main.yaml")
    found = read_openapi(loaded.text, origin=loaded.origin, fetch=loaded.fetch)
    assert (found.operations, {note.kind for note in found.notes}) == ((), {"left-out"})
