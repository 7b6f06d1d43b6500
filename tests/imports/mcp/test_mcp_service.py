"""What an MCP server offers, as a service of a daemon: calls, errors, progress, changes, and the server's end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import anyio
import pytest
from jsonschema import Draft202012Validator
from msgspec import Raw

pytest.importorskip("jsonschema_rs")

from discreet.client import InternalError, InvalidParams, MethodNotFound, OperationFailed, Peer
from discreet.imports.mcp.model import Agreed, Listing, McpOperation
from discreet.imports.mcp.reading import read_listing
from discreet.imports.mcp.upstream import read_result
from discreet.testing import in_memory
from support.backends import both_loops
from support.logged_events import logged_events
from support.mcp_wire import META as META_OF_REQUESTS
from support.waits import until

from .conftest import Import

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")]

META = {"_meta": META_OF_REQUESTS}


async def act(peer: Peer, do: str, **given: Any) -> Any:
    return await peer.call("odd/act", {"do": do, **given})


async def text_of(peer: Peer, do: str, **given: Any) -> str:
    text: str = (await act(peer, do, **given))["content"][0]["text"]
    return text


async def test_the_operations_of_a_server_are_called_as_any_others(import_shop: Import) -> None:
    async with in_memory(import_shop()) as peer:
        assert (await peer.call("shop/shop_look", {"name": "pen"}))["price"] == 1.5
        with pytest.raises(InvalidParams) as invalid:
            await peer.call("shop/shop_order", {"name": "pen", "amount": 0})
        assert invalid.value.failure.param == "amount"
        with pytest.raises(OperationFailed) as failed:
            await peer.call("shop/shop_look", {"name": "moon"})
        assert failed.value.code == "UNKNOWN_ITEM"
        assert failed.value.details["name"] == "moon"
        read = await peer.call("shop/resources/read", {"uri": "shop://stock"})
        assert "pen" in read["contents"][0]["text"]
        item = await peer.call("shop/resources/shop_item", {"name": "desk"})
        assert item["contents"][0]["uri"] == "shop://items/desk"
        listed = await peer.call("shop/resources/list")
        assert [each["uri"] for each in listed["resources"]] == ["shop://stock"]
        prompt = await peer.call("shop/prompts/shop_compare", {"one": "pen", "other": "desk"})
        assert prompt["messages"][0]["role"] == "user"
        with pytest.raises(OperationFailed) as failed:
            await peer.call("shop/resources/read", {"uri": "shop://nowhere"})
        assert failed.value.code == "MCP_ERROR"


async def test_progress_reaches_whoever_asked_for_it(import_odd: Import) -> None:
    told: list[Any] = []
    async with in_memory(import_odd()) as peer:
        await peer.call("odd/act", {"do": "progress"}, on_progress=told.append)
    assert told == [{"progress": 1, "total": 2, "message": "half"}, {"progress": 2, "total": 2}]


async def test_an_error_of_a_tool_is_declared_with_its_content(import_odd: Import) -> None:
    async with in_memory(import_odd()) as peer:
        with pytest.raises(OperationFailed) as failed:
            await act(peer, "error")
        assert failed.value.code == "MCP_TOOL_ERROR"
        assert failed.value.details == {"content": [{"type": "text", "text": "it went wrong"}]}
        with pytest.raises(OperationFailed) as failed:
            await act(peer, "refuse")
        assert failed.value.code == "MCP_ERROR"
        assert failed.value.details == {"code": -32603, "message": "not today"}


@pytest.mark.parametrize("do", ["neither", "no-result"])
async def test_an_answer_that_is_none_is_an_internal_error(import_odd: Import, do: str) -> None:
    async with in_memory(import_odd()) as peer:
        with pytest.raises(InternalError):
            await act(peer, do)
        assert await text_of(peer, "next") == '{"do": "next"}'


async def test_a_server_that_dies_is_started_again_by_the_next_call(import_odd: Import) -> None:
    async with in_memory(import_odd()) as peer:
        first = await text_of(peer, "pid")
        with pytest.raises(InternalError):  # it may have had an effect: nobody is told to try again
            await act(peer, "die")
        assert await text_of(peer, "pid") != first


async def test_a_cancelled_call_is_cancelled_at_the_server(import_odd: Import) -> None:
    async with in_memory(import_odd()) as peer:
        await act(peer, "first")

        async def wait() -> None:
            await act(peer, "never")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await until(lambda: heard(peer, "tools/call tools/call"))
            tasks.cancel_scope.cancel()
        await until(lambda: heard(peer, "notifications/cancelled"))


async def heard(peer: Peer, what: str) -> bool:
    return what in await text_of(peer, "heard")


@both_loops
async def test_the_server_ends_with_the_daemon(import_odd: Import) -> None:
    async with in_memory(import_odd("stubborn")) as peer:
        pid = int(await text_of(peer, "pid"))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_what_the_server_logs_is_in_the_log_without_secrets(import_odd: Import) -> None:
    with logged_events("info") as logged:
        async with in_memory(import_odd()) as peer:
            await act(peer, "log", secret="s")
            lines: list[str] = []

            def has_all() -> bool:
                lines.extend(str(fields.get("line")) for name, fields in logged() if name.startswith("import."))
                return {"my token is s", "a line of stderr"} <= set(lines)

            await until(has_all)


# -- changes -------------------------------------------------------------------------------------------------------


async def test_a_tool_that_comes_can_be_called_and_one_that_goes_is_not_found(import_odd: Import) -> None:
    async with in_memory(import_odd()) as peer:
        with pytest.raises(MethodNotFound):
            await peer.call("odd/extra")
        await act(peer, "add", name="extra")
        await until(lambda: listed(peer, "odd/extra"))
        assert (await peer.call("odd/extra"))["content"]
        assert "odd/extra" in str(await peer.call("rpc.discover"))
        await act(peer, "drop", name="extra")
        await until(lambda: not_listed(peer, "odd/extra"))
        assert "odd/extra" not in str(await peer.call("rpc.discover"))
        with pytest.raises(MethodNotFound):
            await peer.call("odd/extra")


async def listed(peer: Peer, name: str) -> bool:
    return name in [each["name"] for each in await peer.call("services/list")]


async def not_listed(peer: Peer, name: str) -> bool:
    return not await listed(peer, name)


async def test_a_storm_of_changes_lists_once(import_odd: Import) -> None:
    async with in_memory(import_odd()) as peer:
        await act(peer, "storm", count=500)
        await act(peer, "add", name="last")
        await until(lambda: listed(peer, "odd/last"))
        assert (await text_of(peer, "heard")).split().count("tools/list") <= 3


# -- types ---------------------------------------------------------------------------------------------------------


async def test_params_and_results_are_checked_against_the_servers_own_types(import_odd: Import) -> None:
    async with in_memory(import_odd("typed")) as peer:
        tree = {"inner": [{"leaf": "ab"}]}
        assert await peer.call("odd/typed_tool", {"tree": tree}) == {"number": 1, "self": {"number": 2}}
        with pytest.raises(InvalidParams) as invalid:
            await peer.call("odd/typed_tool", {"tree": {"inner": [{"leaf": "a"}]}})
        assert invalid.value.failure.param == "tree.inner[0].leaf"
        for bad in ({"tree": {"leaf": "ab"}, "pair": [1]}, {"tree": {}}):
            with pytest.raises(InternalError):
                await peer.call("odd/typed_tool", bad)


async def test_types_and_hints_are_kept_when_served_as_mcp_again(import_odd: Import) -> None:
    async with in_memory(import_odd("typed"), dialect="mcp") as peer:
        tool = (await peer.call("tools/list", META))["tools"][1]
        assert tool["name"] == "odd_typed_tool"
        assert tool["description"] == "A typed tool"
        assert tool["annotations"] == {"title": "Typed", "destructiveHint": False, "idempotentHint": True}
        validator = Draft202012Validator(tool["inputSchema"])
        assert validator.is_valid({"tree": {"inner": [{"leaf": "ab"}]}, "pair": [1, "x"]})
        assert not validator.is_valid({"tree": {"inner": [{"leaf": "a"}]}})
        assert not validator.is_valid({"tree": {}, "pair": ["x"]})
        validator = Draft202012Validator(tool["outputSchema"])
        assert validator.is_valid({"number": 1, "self": {"number": 2}})
        assert not validator.is_valid({"number": 1, "self": {"number": "2"}})
        call = {**META, "name": "odd_typed_tool", "arguments": {"tree": {"leaf": "ab"}}}
        assert (await peer.call("tools/call", call))["structuredContent"]["number"] == 1


# -- served as MCP again -------------------------------------------------------------------------------------------


async def test_served_again_as_mcp_tools_keep_schemas_annotations_and_errors(import_shop: Import) -> None:
    async with in_memory(import_shop(), dialect="mcp") as peer:
        tools = {each["name"]: each for each in (await peer.call("tools/list", META))["tools"]}
        amount = tools["shop_shop_order"]["inputSchema"]["properties"]["amount"]
        assert amount == {"type": "integer", "minimum": 1, "maximum": 100, "default": 1}
        assert tools["shop_shop_look"]["annotations"] == {"readOnlyHint": True}
        call = {**META, "name": "shop_shop_look", "arguments": {"name": "pen"}}
        assert (await peer.call("tools/call", call))["structuredContent"]["name"] == "pen"
        call = {**META, "name": "shop_shop_look", "arguments": {"name": "moon"}}
        result = await peer.call("tools/call", call)
        assert result["isError"] is True
        assert result["structuredContent"]["code"] == "UNKNOWN_ITEM"
        assert "UNKNOWN_ITEM" in result["content"][0]["text"]


async def test_served_again_as_mcp_content_stays_content(import_odd: Import) -> None:
    async with in_memory(import_odd(), dialect="mcp") as peer:
        tool = (await peer.call("tools/list", META))["tools"][0]
        assert "outputSchema" not in tool
        result = await peer.call("tools/call", {**META, "name": "odd_act", "arguments": {"do": "hello"}})
        assert result["content"] == [{"type": "text", "text": '{"do": "hello"}'}]
        assert "structuredContent" not in result
        result = await peer.call("tools/call", {**META, "name": "odd_act", "arguments": {"do": "error"}})
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "it went wrong"}]


async def test_clients_of_mcp_are_told_of_changes(import_odd: Import) -> None:
    told = anyio.Event()
    async with in_memory(import_odd(), dialect="mcp") as peer:
        peer.on_notification("notifications/tools/list_changed", lambda _: told.set())
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        welcome = await peer.call("initialize", hello)
        assert welcome["capabilities"]["tools"] == {"listChanged": True}
        await peer.notify("notifications/initialized")
        await peer.call("tools/call", {"name": "odd_act", "arguments": {"do": "add", "name": "extra"}})
        await told.wait()
        assert [each["name"] for each in (await peer.call("tools/list"))["tools"]] == ["odd_act", "odd_extra"]
        assert (await peer.call("tools/call", {"name": "odd_extra"}))["content"]


async def test_modern_clients_of_mcp_that_listen_are_told_too(import_odd: Import) -> None:
    acknowledged, told = anyio.Event(), anyio.Event()
    async with in_memory(import_odd(), dialect="mcp") as peer:
        peer.on_notification("notifications/subscriptions/acknowledged", lambda _: acknowledged.set())
        peer.on_notification("notifications/tools/list_changed", lambda _: told.set())
        async with anyio.create_task_group() as tasks:
            listen = {**META, "notifications": {"toolsListChanged": True}}
            tasks.start_soon(lambda: peer.call("subscriptions/listen", listen, timeout=None))
            await acknowledged.wait()
            call = {**META, "name": "odd_act", "arguments": {"do": "add", "name": "extra"}}
            await peer.call("tools/call", call)
            await told.wait()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("dialect", ["auto", "lsp", "acp", "plain"])
async def test_other_dialects_mind_nothing_of_an_import(import_odd: Import, dialect: str) -> None:
    async with in_memory(import_odd("typed"), dialect=dialect):
        pass


async def test_a_call_names_its_span_to_the_server(import_odd: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    class Span:
        headers: ClassVar = {"traceparent": "00-one-two-01"}

    class Tracer:
        @contextmanager
        def call(self, method: str) -> Iterator[Span]:
            begun.append(method)
            yield Span()

    async with in_memory(import_odd()) as peer:
        assert await text_of(peer, "meta") == "null"
        with monkeypatch.context() as patched:
            patched.setattr("discreet.client.peer.call_tracing", SimpleNamespace(tracer=Tracer()))
            assert json.loads(await text_of(peer, "meta")) == Span.headers
    assert begun[-1] == "tools/call"


TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "user=ann;p=1,tier=2"}


async def test_the_trace_and_the_baggage_of_a_caller_go_on_to_the_server(import_odd: Import) -> None:
    async with in_memory(import_odd(), dialect="mcp") as peer:
        call = {"name": "odd_act", "arguments": {"do": "meta"}}
        for meta in (TRACE, META_OF_REQUESTS | TRACE):
            told = await peer.call("tools/call", {**call, "_meta": meta})
            assert json.loads(told["content"][0]["text"]) == TRACE
    async with in_memory(import_odd()) as plain:
        sent = {**TRACE, "authorization": "Bearer ours"}
        told = await plain.call("odd/act", {"do": "meta"}, service_params=sent)
        assert json.loads(told["content"][0]["text"]) == TRACE


async def test_baggage_reaches_a_modern_server_beside_its_own_members(import_app: Import, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(SAYS, encoding="utf-8")
    async with in_memory(import_app(f"{app}:says", "far")) as peer:
        assert await peer.call("far/says_params", service_params=TRACE) == TRACE


SAYS = """
from discreet import Context, Service

says = Service("says")


@says.query
def params(ctx: Context) -> dict[str, str]:
    return dict(ctx.service_params)
"""


# -- content beside structured content -----------------------------------------------------------------------------

IMAGE = [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, {"type": "text", "text": "a pixel"}]
HOLOGRAM = [{"type": "hologram", "x": 1.0}]
NUMBER = {"number": 1, "self": {"number": 2}}


async def test_content_goes_out_as_it_came_where_a_structured_tool_is_served_as_mcp_again(import_odd: Import) -> None:
    async with in_memory(import_odd("typed"), dialect="mcp") as peer:
        for leaf, content in (("image", IMAGE), ("other", HOLOGRAM), ("same", None)):
            call = {**META, "name": "odd_typed_tool", "arguments": {"tree": {"leaf": leaf}}}
            result = await peer.call("tools/call", call)
            assert result["structuredContent"] == NUMBER
            assert (
                [json.loads(result["content"][0]["text"])] == [NUMBER]
                if content is None
                else result["content"] == content
            )


@pytest.mark.parametrize(
    ("structured", "texts", "same"),
    [
        ({"a": 1}, ['{"a": 1.0}'], True),
        ({"result": "hello"}, ["hello"], True),
        ({"result": [1, "x"]}, ["1", "x"], True),
        ({"result": []}, [], True),
        ({"a": 1}, ['{"a": 2}'], False),
        ({"a": 1}, ["found one"], False),
        ({"a": 1}, ['{"a": 1}', "and more"], False),
        ({"a": 1, "_meta": {"x/y": 2}}, ["found one"], False),
        ({"a": 1, "_meta": 5}, ["found one"], True),
    ],
)
def test_texts_that_repeat_the_structured_content_are_left_out(structured: Any, texts: list[str], same: bool) -> None:
    operation = McpOperation(name="a", kind="query", input={}, method="tools/call", structured=True)
    content = [{"type": "text", "text": text} for text in texts]
    given = Raw(json.dumps({"content": content, "structuredContent": structured}).encode())
    result = json.loads(bytes(read_result(operation, given)))
    beside = structured.get("_meta", {})
    assert result == (structured if same else structured | {"_meta": beside | {"discreet/content": content}})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False},
        {"type": "object", "patternProperties": {"": {"type": "integer"}}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "propertyNames": {"const": "a"}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        {"type": "object", "properties": {"self": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_the_declared_result_of_any_schema_takes_the_content(schema: Any) -> None:
    listing = Listing(tools=({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    found = read_listing(listing, Agreed("2025-11-25"))
    validator = Draft202012Validator({**found.operations[0].output, "$defs": dict(found.definitions)})
    assert validator.is_valid({"a": 1})
    assert validator.is_valid({"a": 1, "_meta": {"discreet/content": IMAGE}})
    assert not validator.is_valid({"a": "no"})
    assert not validator.is_valid({"a": 1, "_meta": {"discreet/content": 1}})
