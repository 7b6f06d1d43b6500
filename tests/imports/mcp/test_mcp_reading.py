"""What is read of a server's lists: schemas, errors, params that HTTP repeats in headers, and templates of URIs.

Reading has no seam of its own that is cheaper: a service behind a server would need a server for each row.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

pytest.importorskip("jsonschema_rs")

from discreet import OperationError, Service
from discreet.client.errors import RemoteError, remote_error
from discreet.dialects.mcp.tools import tools_of
from discreet.errors import FailureError, Overloaded, TimedOut, Unavailable
from discreet.imports.mcp.model import Agreed, Listing, McpImport
from discreet.imports.mcp.reading import expand, read_listing, variables_of
from discreet.imports.mcp.upstream import read_result, server_error
from discreet.imports.model import UpstreamError

MODERN = Agreed("2026-07-28")


class RateLimited(OperationError, code="RATE_LIMITED", http_status=429, retryable=True, message="Too many."):
    """Too many calls."""

    seconds: int


shop = Service("shop")


@shop.query(errors=[RateLimited])
def price(name: str) -> float:
    """The price."""
    raise RateLimited(seconds=3)


def listed() -> McpImport:
    tools = tools_of(shop.operations).values()
    return read_listing(Listing(tools=tuple(msgspec.to_builtins(tool.described) for tool in tools)), MODERN)


def failed(structured: Any) -> Raw:
    return Raw(msgspec.json.encode({"content": [], "structuredContent": structured, "isError": True}))


def raised(operation: Any, structured: Any) -> Exception:
    with pytest.raises((UpstreamError, FailureError)) as caught:
        read_result(operation, failed(structured))
    return caught.value


def test_declared_errors_are_listed_and_imported_with_all_their_facts() -> None:
    imported = listed()
    [error] = [each for each in imported.operations[0].errors if each.code == "RATE_LIMITED"]
    assert (error.retryable, error.http_status, error.message) == (True, 429, "Too many.")
    assert isinstance(error.schema, dict)
    assert error.schema["required"] == ["seconds"]


def test_a_declared_error_is_itself_and_any_other_is_what_the_tool_says() -> None:
    [operation] = listed().operations
    own = raised(operation, {"code": "RATE_LIMITED", "retryable": True, "details": {"seconds": 3}})
    assert isinstance(own, UpstreamError)
    assert (own.code, msgspec.json.decode(own.details or b"")) == ("RATE_LIMITED", {"seconds": 3})
    for structured in ({"code": "OTHER", "retryable": True}, {"code": "MCP_ERROR", "retryable": True}, [], {"code": 1}):
        other = raised(operation, structured)
        assert isinstance(other, UpstreamError)
        assert other.code == "MCP_TOOL_ERROR"


@pytest.mark.parametrize(
    ("code", "details", "failure"),
    [
        ("OVERLOADED", {"retryAfterMs": 5}, Overloaded(5)),
        ("UNAVAILABLE", None, Unavailable(upstream=True)),
        ("TIMEOUT", None, TimedOut()),
    ],
)
def test_what_passes_stays_retryable(code: str, details: Any, failure: Any) -> None:
    [operation] = listed().operations
    told = raised(operation, {"code": code, "retryable": True, **({"details": details} if details else {})})
    assert isinstance(told, FailureError)
    assert told.failure == failure
    data = {"code": code, "retryable": True, "details": details}
    error = remote_error(msgspec.json.encode({"code": -32000, "message": "no", "data": data}), a2a=False)
    assert isinstance(error, RemoteError)
    refused = server_error(error)
    assert isinstance(refused, FailureError)
    assert refused.failure == failure


@pytest.mark.parametrize(
    "error",
    [
        {"code": "lower"},
        {"code": "INTERNAL"},
        {"code": "MCP_TOOL_ERROR"},
        {"code": "A", "httpStatus": 200},
        {"code": "A" * 200},
        {"code": 1},
        1,
    ],
)
def test_an_error_that_can_be_none_here_is_left_out(error: Any) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "_meta": {"discreet/errors": [error]}}
    [operation] = read_listing(Listing(tools=(tool,)), MODERN).operations
    assert [each.code for each in operation.errors] == ["MCP_TOOL_ERROR", "MCP_ERROR"]


def marked(**part: Any) -> dict[str, Any]:
    return {"type": "string", "x-mcp-header": "Region", **part}


def of_schema(schema: dict[str, Any], *, by_http: bool = True, agreed: Agreed = MODERN) -> McpImport:
    tool = {"name": "t", "inputSchema": {"type": "object", **schema}}
    return read_listing(Listing(tools=(tool,)), agreed, by_http=by_http)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": marked(**{"x-mcp-header": ""})}},
        {"properties": {"a": marked(**{"x-mcp-header": "My Region"})}},
        {"properties": {"a": marked(**{"x-mcp-header": "Region:\r\n"})}},
        {"properties": {"a": marked(**{"x-mcp-header": 1})}},
        {"properties": {"a": marked(type="object")}},
        {"properties": {"a": marked(type=["string", "null"])}},
        {"properties": {"a": marked(), "b": marked(**{"x-mcp-header": "REGION"})}},
        {"properties": {"a": {"type": "array", "items": marked()}}},
        {"properties": {"a": {"anyOf": [marked(), {"type": "null"}]}}},
        {"$defs": {"A": marked()}, "properties": {"a": {"$ref": "#/$defs/A"}}},
        marked(type="object"),
    ],
)
def test_a_tool_with_a_mark_that_is_wrong_is_not_imported_by_http(schema: dict[str, Any]) -> None:
    found = of_schema(schema)
    assert found.operations == ()
    assert [note.kind for note in found.notes] == ["left-out"]
    assert "x-mcp-header" in found.notes[0].reason
    assert len(of_schema(schema, by_http=False).operations) == 1
    assert len(of_schema(schema, agreed=Agreed("2025-11-25")).operations) == 1


def test_right_marks_are_headers_wherever_properties_lead() -> None:
    schema = {
        "properties": {
            "a": marked(),
            "b": {
                "type": "object",
                "properties": {"x-mcp-header": marked(**{"x-mcp-header": "Inner", "type": "integer"})},
            },
            "c": {"type": "object", "default": {"x-mcp-header": 1}},
        }
    }
    [operation] = of_schema(schema).operations
    assert operation.mirrored == {"Mcp-Param-Region": ("a",), "Mcp-Param-Inner": ("b", "x-mcp-header")}


# -- schemas: old drafts, definitions, references --

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


@pytest.mark.parametrize("ref", ["#/$defs/none", "#/properties/a/items", "#/%24defs/none"])
@pytest.mark.parametrize("direction", ["inputSchema", "outputSchema"])
def test_a_reference_at_the_root_that_leads_through_itself_to_nothing_is_noted(ref: str, direction: str) -> None:
    tool = {"name": "tool", "inputSchema": {"type": "object"}, direction: {"$ref": ref}}
    found = read_listing(Listing(tools=(tool,)), Agreed("2025-06-18"))
    assert [note.reason for note in found.notes] == [f"{ref} refers to nothing; accepts anything"]


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


# -- templates of URIs, by the examples of RFC 6570 --

VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "y": "768", "empty": ""}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("X{#hello}", "X#Hello%20World!"),
        ("map?{x,y}", "map?1024,768"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("file:///{path}{?undefined}", "file:///%2Ffoo%2Fbar"),
    ],
)
def test_templates_are_expanded_as_the_rfc_says(template: str, uri: str) -> None:
    assert expand(template, VALUES) == uri


def test_the_variables_come_in_their_order() -> None:
    assert variables_of("a://{b}/{+c}{?d,b}") == ("b", "c", "d")


@pytest.mark.parametrize("template", ["a://{", "a://{}", "a://{b", "a://{b*}", "a://{b:3}", "a://}{b}"])
def test_what_is_no_template_of_these_levels_has_no_variables(template: str) -> None:
    assert variables_of(template) is None
