"""What OpenAPI says of values is said in JSON Schema 2020-12, without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from discreet.imports.openapi.loading import load_document
from discreet.imports.openapi.reader import read_openapi
from support.openapi_documents import OK, document, only, read, reasons, require_sound, with_operation, with_schema

TEXT = {"type": "string"}
REF = {"$ref": "#/components/schemas/T"}
DEF = {"$ref": "#/$defs/T"}

PATTERNS = pytest.mark.needs("jsonschema_rs")

OLD = [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "nullable": False}, {"type": "string"}),
    ({"nullable": True}, {}),
    ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"type": "string", "enum": ["a", None], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"nullable": True, "allOf": [REF], "title": "x"}, {"title": "x", "anyOf": [{"allOf": [DEF]}, {"type": "null"}]}),
    ({"nullable": True, "enum": ["a"]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 1}),
    ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, {"type": "number", "maximum": 1}),
    ({"type": "number", "exclusiveMaximum": True}, {"type": "number"}),
    ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
    ({"type": "string", "example": None}, {"type": "string", "examples": [None]}),
    ({"$ref": "#/components/schemas/T", "description": "ignored", "nullable": True}, DEF),
    ({"type": "string", "format": "byte"}, {"type": "string", "format": "byte", "contentEncoding": "base64"}),
    ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    ({"xml": {"name": "x"}, "externalDocs": {}, "x-y": 1}, {"xml": {"name": "x"}, "externalDocs": {}, "x-y": 1}),
]

NEW = [
    (True, True),
    (False, False),
    ({}, {}),
    ({"type": ["string", "null"], "examples": ["a"]}, {"type": ["string", "null"], "examples": ["a"]}),
    ({**REF, "description": "kept"}, {**DEF, "description": "kept"}),
    ({**REF, "nullable": True}, {"anyOf": [DEF, {"type": "null"}]}),
    ({"exclusiveMinimum": 1}, {"exclusiveMinimum": 1}),
    ({"const": 1, "prefixItems": [REF], "items": False}, {"const": 1, "prefixItems": [DEF], "items": False}),
    ({"if": REF, "then": TEXT, "else": {"not": REF}}, {"if": DEF, "then": TEXT, "else": {"not": DEF}}),
    ({"patternProperties": {"^x": REF}, "propertyNames": TEXT}, {"patternProperties": {"^x": DEF}, "propertyNames": TEXT}),
    ({"dependentSchemas": {"a": REF}, "dependentRequired": {"a": ["b"]}}, {"dependentSchemas": {"a": DEF}, "dependentRequired": {"a": ["b"]}}),
    ({"unevaluatedProperties": False, "contains": REF, "minContains": 2}, {"unevaluatedProperties": False, "contains": DEF, "minContains": 2}),
    ({"$defs": {"X": TEXT}, "items": {"$ref": "#/paths/~1x/post/responses/200/content/application~1json/schema/$defs/X"}}, None),
    ({"items": [TEXT, REF], "additionalItems": False}, {"prefixItems": [TEXT, DEF], "items": False}),
    ({"properties": {"$ref": TEXT, "type": TEXT, "required": REF}}, {"properties": {"$ref": TEXT, "type": TEXT, "required": DEF}}),
    ({"default": {"$ref": "#/none"}, "enum": [{"nullable": True}]}, {"default": {"$ref": "#/none"}, "enum": [{"nullable": True}]}),
    ({"oneOf": [REF], "discriminator": {"propertyName": "k", "mapping": {"a": "#/components/schemas/T", "b": "T"}}},
     {"oneOf": [DEF], "discriminator": {"propertyName": "k", "mapping": {"a": "#/$defs/T", "b": "T"}}}),
    ({"x-y": REF, "default": {}, "pattern": r"^(?=x)\d"}, {"x-y": REF, "default": {}, "pattern": r"^(?=x)\d"}),
    ({"maximum": 2**70}, {"maximum": float(2**70)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "schema", "expected"), [*(("3.0.3", *row) for row in OLD), *(("3.1.0", *row) for row in NEW)]
)
def test_a_schema_becomes_that_of_2020_12(version: str, schema: Any, expected: Any) -> None:
    found = read(with_schema(schema, {"T": {"type": "object"}}, version=version))
    assert found.notes == ()
    if expected is not None:
        assert found.operations[0].output == expected
        assert found.operations[0].input["properties"]["body"] == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "any"}, {}),
        ({"type": []}, {}),
        ({"type": [["string"]]}, {}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"minLength": "1", "maxLength": -1, "minItems": 1.5}, {}),
        ({"minimum": "0", "multipleOf": 0}, {}),
        ({"pattern": 1, "title": None, "description": []}, {}),
        ({"enum": None, "allOf": [], "anyOf": {}, "oneOf": None}, {}),
        ({"properties": [], "required": "a", "items": None}, {"items": True}),
        ({"properties": {"a": None, "b": "string", "c": 1}}, {"properties": {"a": True, "b": True, "c": True}}),
        ({"additionalProperties": "no"}, {"additionalProperties": True}),
        ({"$ref": 1, "discriminator": "kind"}, {}),
        ({"nullable": "yes", "deprecated": 1}, {}),
        ({"dependentRequired": {"a": "b"}}, {}),
        ({"uniqueItems": "true", "type": "array"}, {"type": "array"}),
        pytest.param({"pattern": "(", "patternProperties": {"(": {}, "a": {}}}, {"patternProperties": {"a": {}}}, marks=PATTERNS),
    ],
)  # fmt: skip
def test_a_keyword_with_a_value_that_it_cannot_have_is_left_out_with_a_note(schema: Any, expected: Any) -> None:
    found = read(with_schema(schema))
    assert found.operations[0].output == expected
    assert set(reasons(found).values()) == {"changed"}


def test_what_stays_the_same_is_not_noted_and_types_keep_their_names() -> None:
    schemas = {"a.b-c": TEXT, "Page«T»": TEXT, "Page_T_": {"type": "integer"}}
    found = read(
        with_schema({"properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in schemas}}, schemas)
    )
    assert set(found.definitions) == {"a.b-c", "Page_T_", "Page_T__2"}
    assert found.notes == ()


# -- directions ---------------------------------------------------------------------------------------

ACCOUNT = {
    "type": "object",
    "required": ["id", "password", "name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "password": {"type": "string", "writeOnly": True},
        "name": TEXT,
    },
}


def required(found: Any, definition: str) -> set[str]:
    return set(found.definitions[definition].get("required", ()))


def test_members_that_are_never_sent_are_not_required() -> None:
    found = read(with_schema({"$ref": "#/components/schemas/A"}, {"A": ACCOUNT, "B": TEXT}))
    assert (required(found, "A"), required(found, "A_input")) == ({"id", "name"}, {"password", "name"})
    assert found.operations[0].output == {"$ref": "#/$defs/A"}
    assert found.operations[0].input["properties"]["body"] == {"$ref": "#/$defs/A_input"}


def test_a_type_differs_if_one_that_it_needs_does_and_others_are_stored_once() -> None:
    schemas = {
        "List": {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
        "A": {**ACCOUNT, "properties": {**ACCOUNT["properties"], "same": {"$ref": "#/components/schemas/Same"}}},
        "Same": {"type": "object", "required": ["x"], "properties": {"x": TEXT}},
    }
    found = read(with_schema({"$ref": "#/components/schemas/List"}, schemas))
    assert set(found.definitions) == {"List", "List_input", "A", "A_input", "Same"}
    assert found.definitions["List_input"]["items"] == {"$ref": "#/$defs/A_input"}
    assert found.definitions["A_input"]["properties"]["same"] == {"$ref": "#/$defs/Same"}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": ACCOUNT["properties"]}, {"required": ACCOUNT["required"]}]},
        {"allOf": [{"$ref": "#/components/schemas/P"}], "required": ACCOUNT["required"]},
        {"required": ACCOUNT["required"], "properties": {"id": {"$ref": "#/components/schemas/R"}, "password": {"writeOnly": True}}},
    ],
)  # fmt: skip
def test_a_member_is_found_where_it_is_declared(schema: dict[str, Any]) -> None:
    schemas = {"S": schema, "P": {"properties": ACCOUNT["properties"]}, "R": {"readOnly": True}}
    found = read(with_schema({"$ref": "#/components/schemas/S"}, schemas)).definitions
    assert (_required(found["S"]), _required(found["S_input"])) == ({"id", "name"}, {"password", "name"})


def _required(schema: Any) -> set[str]:
    return set(schema.get("required") or schema["allOf"][1]["required"])


# -- circles ------------------------------------------------------------------------------------------


def test_a_base_of_alternatives_that_extend_it_keeps_its_members_in_each() -> None:
    pet = "#/components/schemas/Pet"
    schemas = {
        "Pet": {
            "required": ["kind"],
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        },
        "Cat": {"allOf": [{"$ref": pet}, {"properties": {"kind": {"const": "cat"}}}]},
        "Dog": {"allOf": [{"$ref": pet}, {"properties": {"kind": {"const": "dog"}}}]},
    }
    found = read(with_schema({"$ref": pet}, schemas))
    validator = Draft202012Validator({"$ref": "#/$defs/Pet", "$defs": dict(found.definitions)})
    for value, valid in (({"kind": "cat"}, True), ({"kind": "dog"}, True), ({"kind": "cow"}, False), ({}, False)):
        assert validator.is_valid(value) is valid
    assert found.definitions["Pet_base"] == {"required": ["kind"]}


NAMES = ("A", "B", "C", "D")


def schema_of_references(draw: Any) -> Any:
    ref = st.sampled_from(NAMES).map(lambda name: {"$ref": f"#/components/schemas/{name}"})
    leaf = ref | st.just(TEXT) | st.just({"type": "object"})
    several = st.lists(leaf, min_size=1, max_size=3)
    words = {
        "allOf": several, "anyOf": several, "oneOf": several, "not": leaf, "if": leaf, "items": leaf,
        "properties": st.dictionaries(st.sampled_from("xy"), leaf, max_size=2), "dependentSchemas": st.dictionaries(st.just("x"), leaf, max_size=1),
    }  # fmt: skip
    return draw(leaf | st.fixed_dictionaries({}, optional=words))


SCHEMA = st.composite(schema_of_references)()
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


def in_place(schema: Any) -> set[str]:
    """The types that a value must be checked against for this schema itself."""
    if isinstance(schema, list):
        return {ref for each in schema for ref in in_place(each)}
    if not isinstance(schema, dict):
        return set()
    found = {schema["$ref"].removeprefix("#/$defs/")} if "$ref" in schema else set()
    for word in IN_PLACE:
        if word in schema:
            found |= in_place([*schema[word].values()] if word == "dependentSchemas" else schema[word])
    return found


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, SCHEMA)), st.sampled_from(["3.0.0", "3.1.0"]))
def test_no_type_leads_back_to_itself_without_a_value_between(schemas: dict[str, Any], version: str) -> None:
    members = {"properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in NAMES}}
    found = read(with_schema(members, schemas, version=version))
    edges = {name: in_place(schema) for name, schema in found.definitions.items()}
    for name in edges:
        met: set[str] = set()
        waiting = [name]
        while waiting:
            for other in edges[waiting.pop()] - met:
                assert other != name, found.definitions
                met.add(other)
                waiting.append(other)


def test_a_large_schema_of_a_shared_response_is_a_shared_type() -> None:
    large = {"type": "object", "properties": {"code": TEXT}}
    content = {"application/json": {"schema": large}}
    responses = {"200": {"description": "", "content": content}, "404": {"$ref": "#/components/responses/NotFound"}}
    components = {"responses": {"NotFound": {"description": "", "content": content}}}
    found = read(document({"/x": {"get": {"operationId": "op", "responses": responses}}}, components=components))
    assert found.operations[0].output == large
    assert found.operations[0].errors[0].schema == {"$ref": "#/$defs/responses_NotFound"}
    assert found.definitions == {"responses_NotFound": large}


# -- references lead within a document, to files beside it, and nowhere that they may not --


def to(place: str) -> dict[str, str]:
    return {"$ref": f"#/components/{place}"}


CONTENT = {"content": {"application/json": {"schema": to("schemas/S")}}}
COMPONENTS = {
    "pathItems": {
        "Item": {
            "parameters": [to("parameters/Id")],
            "put": {
                "operationId": "put",
                "requestBody": to("requestBodies/B"),
                "responses": {"200": to("responses/R"), "404": to("responses/E")},
            },
        }
    },
    "parameters": {
        "Id": to("parameters/Real"),
        "Real": {"name": "id", "in": "path", "required": True, "schema": TEXT},
    },
    "requestBodies": {"B": CONTENT},
    "responses": {"R": {"description": "", **CONTENT}, "E": {"description": "none", **CONTENT}},
    "schemas": {"S": {"type": "object"}},
}


def test_each_kind_of_component_may_be_referred_to() -> None:
    found = only(document({"/a~b/{id}": to("pathItems/Item")}, components=COMPONENTS))
    ref = {"$ref": "#/$defs/S"}
    assert found.input["properties"] == {"id": TEXT, "body": ref}
    assert (found.output, found.errors[0].schema, found.errors[0].description) == (ref, ref, "none")


def test_a_path_item_beside_its_reference_counts_more() -> None:
    shared = {"get": {"operationId": "theirs", "responses": OK}, "put": {"operationId": "put", "responses": OK}}
    item = {**to("pathItems/I"), "get": {"operationId": "ours", "responses": OK}}
    found = read(document({"/x": item}, components={"pathItems": {"I": shared}}))
    assert {operation.name for operation in found.operations} == {"ours", "put"}


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        ("#/components/schemas/A", "A"),
        ("#/components/schemas/a~1b~0c%20d", "a_b_c_d"),
        ("#/components/schemas/A/properties/x", "A_properties_x"),
        ("#/x-types/T", "x-types_T"),
        ("#anchored", "Anchored"),
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
        "Ided": {
            "$id": "https://example.com/ided",
            "$defs": {"Inner": {"$anchor": "inside", "type": "null"}},
            "properties": {"inner": {"$ref": "#/$defs/Inner"}, "self": {"$ref": "#"}},
        },
    }
    found = read(with_schema({"$ref": ref}, schemas, **{"x-types": {"T": TEXT}}))
    assert found.operations[0].output == {"$ref": f"#/$defs/{name}"}
    assert not any(word in str(found.definitions) for word in ("$id", "$anchor", "$dynamicAnchor"))
    assert found.notes == ()


def test_a_dynamic_reference_is_a_reference_and_a_recursive_type_is_stored_once() -> None:
    node = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {"$dynamicRef": "#node"}}}
    found = read(with_schema({"$ref": "#/components/schemas/Node"}, {"Node": node}))
    assert found.definitions == {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}


@pytest.mark.parametrize("ref", ["#/components/schemas/None", "#/components/schemas/A", "#none", "other.yaml", "http://[/", "#/paths/%2Fx/get/0"])  # fmt: skip
def test_an_operation_whose_value_is_a_reference_to_nowhere_is_left_out(ref: str) -> None:
    circle = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    found = read(with_schema({"$ref": ref}, circle))
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
