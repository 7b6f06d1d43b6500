"""Schemas of tools as those of an import: old drafts, definitions, references."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.imports.mcp.model import Agreed, Listing, McpImport
from discreet.imports.mcp.reading import read_listing

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def read(*schemas: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], McpImport]:
    """The schema of the first tool, all definitions, and all that was read. Names are those of the tools."""
    tools = tuple({"name": "tool" if at == 0 else f"tool{at}", "inputSchema": each} for at, each in enumerate(schemas))
    found = read_listing(Listing(tools=tools), Agreed("2025-06-18"))
    definitions = {name: schema for name, schema in found.definitions.items() if name != "Content"}
    return found.operations[0].input, definitions, found


def test_definitions_become_those_of_the_import_under_the_names_of_their_tools() -> None:
    schema = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Point"}, "to": {"$ref": "#/definitions/Other one"}},
        "$defs": {"Point": {"type": "integer"}},
        "definitions": {"Other one": {"type": "array", "items": {"$ref": "#/$defs/Point"}}},
    }
    found, definitions, imported = read(schema)
    assert found == {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/tool.Point"}, "to": {"$ref": "#/$defs/tool.Other_one"}},
    }
    assert definitions == {
        "tool.Point": {"type": "integer"},
        "tool.Other_one": {"type": "array", "items": {"$ref": "#/$defs/tool.Point"}},
    }
    assert imported.notes == ()


def test_two_tools_may_define_the_same_name_differently() -> None:
    kinds = ("integer", "string")
    _, definitions, _ = read(
        *({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": k}}} for k in kinds)
    )
    assert definitions == {"tool.A": {"type": "integer"}, "tool1.A": {"type": "string"}}


def test_a_schema_may_refer_to_itself() -> None:
    found, definitions, _ = read({"type": "object", "properties": {"child": {"$ref": "#"}}})
    assert found["properties"]["child"] == {"$ref": "#/$defs/tool"}
    assert definitions == {"tool": found}


def test_definitions_may_refer_to_themselves_and_each_other() -> None:
    given = {f"D{n}": {"properties": {"next": {"$ref": f"#/$defs/D{(n + 1) % 300}"}}} for n in range(300)}
    found, definitions, _ = read({"$ref": "#/$defs/D0", "$defs": given})
    assert found == {"type": "object", "$ref": "#/$defs/tool.D0"}
    assert len(definitions) == 300
    assert definitions["tool.D299"] == {"properties": {"next": {"$ref": "#/$defs/tool.D0"}}}


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
    found, definitions, _ = read(schema)
    references = {name: part.get("$ref") for name, part in found["properties"].items()}
    assert references == {
        "a": None,
        "b": "#/$defs/tool.properties.a",
        "c": "#/$defs/tool.properties.a",
        "d": "#/$defs/tool.properties.a",
        "e": "#/$defs/tool.A_B.properties.x",
    }
    assert definitions["tool.properties.a"] == {"type": "integer"}


@pytest.mark.parametrize("reference", ["https://example.com/x", "other.json", "#/$defs/nowhere", "#nowhere", "#/a/0"])
def test_a_reference_that_leads_nowhere_lets_anything_pass_and_is_noted(reference: str) -> None:
    found, _, imported = read({"properties": {"a": {"$ref": reference, "description": "A."}}})
    assert found["properties"] == {"a": {"description": "A."}}
    place = "/tools/0/inputSchema/properties/a/$ref"
    assert [(note.pointer, note.kind) for note in imported.notes] == [(place, "changed")]


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
    found, definitions, _ = read(schema)
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
    assert definitions == {"tool.N": {"type": "string"}}


def test_beside_a_reference_of_2020_12_everything_stays() -> None:
    found, _, _ = read({"properties": {"a": {"$ref": "#/$defs/A", "minimum": 3}}, "$defs": {"A": {"type": "integer"}}})
    assert found["properties"]["a"] == {"$ref": "#/$defs/tool.A", "minimum": 3}


def test_values_of_instances_are_left_alone() -> None:
    schema = {"properties": {"a": {"const": {"$ref": "#/x"}, "enum": [{"$id": "1"}], "default": {"items": []}}}}
    assert read(schema)[0]["properties"] == schema["properties"]


def test_what_is_nested_too_deep_may_be_anything() -> None:
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(900):
        deep = {"items": deep}
    found, _, imported = read({"properties": {"a": deep}})
    part, levels = found["properties"]["a"], 0
    while isinstance(part, dict) and "items" in part:
        part, levels = part["items"], levels + 1
    assert levels <= 50
    assert part is True
    assert len(imported.notes) == 1
