"""What other servers declare beside their tools: the errors of another discreet, and params that HTTP repeats in headers."""

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
from discreet.imports.mcp.reading import read_listing
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
