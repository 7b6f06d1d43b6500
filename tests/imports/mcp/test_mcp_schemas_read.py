"""Schemas of tools as those of an import: old drafts, definitions, references."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.imports.mcp.schemas import Schemas

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def read(schema: dict[str, Any]) -> tuple[dict[str, Any], Schemas]:
    schemas = Schemas()
    return schemas.read(schema, "tool", "/tools/0/inputSchema"), schemas


def test_definitions_become_those_of_the_import_under_the_names_of_their_tools() -> None:
    schema = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Point"}, "to": {"$ref": "#/definitions/Other one"}},
        "$defs": {"Point": {"type": "integer"}},
        "definitions": {"Other one": {"type": "array", "items": {"$ref": "#/$defs/Point"}}},
    }
    found, schemas = read(schema)
    assert found == {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/tool.Point"}, "to": {"$ref": "#/$defs/tool.Other_one"}},
    }
    assert schemas.definitions == {
        "tool.Point": {"type": "integer"},
        "tool.Other_one": {"type": "array", "items": {"$ref": "#/$defs/tool.Point"}},
    }
    assert schemas.notes == []


def test_two_tools_may_define_the_same_name_differently() -> None:
    schemas = Schemas()
    for kind in ("integer", "string"):
        schemas.read({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": kind}}}, "tool", "/")
    assert schemas.definitions == {"tool.A": {"type": "integer"}, "tool.A_2": {"type": "string"}}


def test_a_schema_may_refer_to_itself() -> None:
    found, schemas = read({"type": "object", "properties": {"child": {"$ref": "#"}}})
    assert found["properties"]["child"] == {"$ref": "#/$defs/tool"}
    assert schemas.definitions == {"tool": found}


def test_definitions_may_refer_to_themselves_and_each_other() -> None:
    definitions = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{(n + 1) % 300}"}, True]} for n in range(300)}
    found, schemas = read({"$ref": "#/$defs/D0", "$defs": definitions})
    assert found == {"$ref": "#/$defs/tool.D0"}
    assert len(schemas.definitions) == 300
    assert schemas.definitions["tool.D299"] == {"anyOf": [{"$ref": "#/$defs/tool.D0"}, True]}


def test_pointers_and_anchors_lead_to_their_places() -> None:
    schema = {
        "$id": "https://example.com/tool",
        "properties": {
            "a": {"$anchor": "here", "type": "integer"},
            "b": {"$ref": "#/properties/a"},
            "c": {"$ref": "#here"},
            "d": {"$ref": "https://example.com/tool#here"},
            "e": {"$ref": "#/$defs/A~1B/properties/x"},
        },
        "$defs": {"A/B": {"properties": {"x": {"type": "null"}}}},
    }
    found, schemas = read(schema)
    references = {name: part.get("$ref") for name, part in found["properties"].items()}
    assert references == {
        "a": None,
        "b": "#/$defs/tool.properties.a",
        "c": "#/$defs/tool.here",
        "d": "#/$defs/tool.here",
        "e": "#/$defs/tool.A_B/properties/x",
    }
    assert schemas.definitions["tool.here"] == schemas.definitions["tool.properties.a"] == {"type": "integer"}


@pytest.mark.parametrize("reference", ["https://example.com/x", "other.json", "#/$defs/nowhere", "#nowhere", "#/a/0"])
def test_a_reference_that_leads_nowhere_lets_anything_pass_and_is_noted(reference: str) -> None:
    found, schemas = read({"properties": {"a": {"$ref": reference, "description": "A."}}})
    assert found == {"properties": {"a": {"description": "A."}}}
    assert [(note.pointer, note.kind) for note in schemas.notes] == [("/tools/0/inputSchema", "changed")]


def test_words_of_draft_7_become_those_of_2020_12() -> None:
    schema = {
        "$schema": DRAFT_7,
        "type": "object",
        "properties": {
            "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
            "name": {"$ref": "#/definitions/N", "minLength": 3, "description": "The name."},
            "definitions": {"type": "string"},
        },
        "dependencies": {"pair": ["name"], "name": {"required": ["pair"]}},
        "definitions": {"N": {"type": "string"}},
    }
    found, schemas = read(schema)
    assert found == {
        "type": "object",
        "properties": {
            "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            "name": {"$ref": "#/$defs/tool.N", "description": "The name."},
            "definitions": {"type": "string"},
        },
        "dependentRequired": {"pair": ["name"]},
        "dependentSchemas": {"name": {"required": ["pair"]}},
    }
    assert schemas.definitions == {"tool.N": {"type": "string"}}


def test_beside_a_reference_of_2020_12_everything_stays() -> None:
    found, _ = read({"properties": {"a": {"$ref": "#/$defs/A", "minimum": 3}}, "$defs": {"A": {"type": "integer"}}})
    assert found["properties"]["a"] == {"$ref": "#/$defs/tool.A", "minimum": 3}


def test_values_of_instances_are_left_alone() -> None:
    schema = {"properties": {"a": {"const": {"$ref": "#/x"}, "enum": [{"$id": "1"}], "default": {"items": []}}}}
    assert read(schema)[0] == schema


def test_what_is_nested_too_deep_may_be_anything() -> None:
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(5000):
        deep = {"items": deep}
    found, schemas = read(deep)
    levels = 0
    while "items" in found:
        found, levels = found["items"], levels + 1
    assert levels <= 101
    assert found == {}
    assert len(schemas.notes) == 1
