"""Schemas as models get them, and templates of URIs: small, finite, never slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError

from discreet import OperationError, Service
from discreet.daemon.declarations import variables_of
from discreet.dialects.mcp.tool_schemas import MAX_INLINED, inlined
from discreet.dialects.mcp.tools import Tool, tool_name
from support.mcp_wire import MODERN, check, mcp_client


class Odd(msgspec.Struct):
    ref: int = msgspec.field(name="$ref")


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def test_definitions_stand_in_place_beside_what_was_said_of_the_reference() -> None:
    schema = {"$schema": "s", "properties": {"a": ref("A") | {"default": 1}}, "$defs": {"A": {"type": "integer"}}}
    assert inlined(schema) == {"properties": {"a": {"type": "integer", "default": 1}}}


def test_definitions_that_refer_to_themselves_are_kept() -> None:
    definitions = {"A": {"items": ref("B")}, "B": {"items": ref("A")}, "C": {"type": "null"}}
    found = inlined({"properties": {"a": ref("A"), "c": ref("C")}, "$defs": definitions})
    assert found["properties"] == {"a": ref("A"), "c": {"type": "null"}}
    assert found["$defs"] == {"A": {"items": ref("B")}, "B": {"items": ref("A")}}


def test_a_schema_that_would_grow_without_bound_keeps_its_definitions() -> None:
    definitions: dict[str, Any] = {
        f"D{n}": {"properties": {"a": ref(f"D{n + 1}"), "b": ref(f"D{n + 1}")}} for n in range(64)
    }
    definitions["D64"] = {"type": "null"}
    found = inlined({"items": ref("D0"), "$defs": definitions})
    assert (found["items"], len(found["$defs"])) == (ref("D0"), 65)
    assert len(definitions) < MAX_INLINED


def test_a_member_that_is_called_like_a_keyword_stays() -> None:
    service = Service("s")

    @service.query
    async def odd(given: Odd) -> int:
        return given.ref

    described = Tool(service.operations[0]).described
    assert described.input_schema["properties"]["given"]["properties"] == {"$ref": {"type": "integer"}}


@pytest.mark.parametrize(
    ("operation", "name"), [("shop/price", "shop_price"), ("a.b/c-d", "a_b_c-d"), ("$x/y", "_x_y")]
)
def test_names_of_tools_are_of_letters_that_models_take(operation: str, name: str) -> None:
    assert tool_name(operation) == name


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://{x}", "a://1", {"x": "1"}),
        ("a://{x}", "a://1/2", None),
        ("a://{x}", "a://", None),
        ("a://{x}/b", "a://%2e%2e/b", {"x": ".."}),
        ("a://{+x}", "a://1/2?3", {"x": "1/2?3"}),
        ("a://{x}-{y}", "a://1-2-3", {"x": "1", "y": "2-3"}),
        ("a://{x}.(b)", "a://1.(b)", {"x": "1"}),
    ],
)
def test_variables_are_taken_from_a_uri(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert variables_of(template, uri) == values


def test_no_uri_makes_a_template_slow() -> None:
    """With backtracking over each variable this would take longer than anyone waits."""
    template = "a://{a}-{b}-{c}-{d}-{e}-{f}!"
    assert variables_of(template, "a://" + "-" * 100_000) is None
    assert variables_of(template, "a://" + "x-" * 50_000) is None


def test_what_leaves_is_checked_against_the_published_schemas(schemas: Path) -> None:
    """Skipped where they are not at hand; the other tests of MCP check nothing against them then."""
    assert (schemas / "mcp" / f"{MODERN}.json").is_file()
    check(MODERN, "CallToolResult", {"content": [], "resultType": "complete"})
    for revision, name, wrong in (
        (MODERN, "CallToolResult", {"content": []}),
        ("2024-11-05", "CallToolResult", {"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}),
        ("2025-11-25", "ProgressNotification", {"method": "notifications/progress", "params": {}}),
    ):
        with pytest.raises(AssertionError, match=name):
            check(revision, name, wrong)


class Coded(msgspec.Struct, forbid_unknown_fields=True):
    code: int


class Tree(msgspec.Struct):
    inner: list[Tree] = []


class Refused(OperationError, code="REFUSED"):
    """It is refused."""

    why: str


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (Odd, Odd(1)),
        (Coded, Coded(1)),
        (Tree, Tree([Tree()])),
        (int, 1),
        (dict[str, int], {"a": 1}),
        (list[str], ["a"]),
        (int | Tree, Tree()),
    ],
)
async def test_the_structure_of_results_and_of_errors_fits_the_schema(serving: Any, returns: Any, value: Any) -> None:
    """Hosts refuse a result whose structure does not, be it an error's."""
    service = Service("s")

    async def work(fail: bool = False) -> Any:
        if fail:
            raise Refused(why="no")
        return value

    work.__annotations__["return"] = returns
    service.query(errors=[Refused])(work)
    async with mcp_client(serving, service) as client:
        (tool,) = (await client.call("tools/list"))["result"]["tools"]
        schema = Draft202012Validator(tool["outputSchema"])
        for arguments in ({}, {"fail": True}, {"fail": 5}):
            structure = (await client.tool("s_work", arguments))["structuredContent"]
            schema.validate(structure)
            assert ("code" in structure) == (bool(arguments) or returns is Coded)
        with pytest.raises(ValidationError):
            schema.validate({"retryable": True, "$ref": "x", "result": 1.5, "a": "b", "inner": 5})
