"""Tools as a host sees them: lists, calls, errors, progress, cancellation. Each in every revision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError

from discreet import DeclarationError, OperationError, Service, mcp
from discreet.daemon.declarations import variables_of
from discreet.daemon.host import Host
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from discreet.daemon.settings import Settings
from discreet.dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_REVISION
from discreet.dialects.mcp.state import Offered
from discreet.dialects.mcp.tool_schemas import MAX_INLINED, inlined
from discreet.dialects.mcp.tools import tool_name
from support.mcp_wire import MCP, McpClient, mcp_client

pytestmark = pytest.mark.anyio


REVISIONS = (*LEGACY_REVISIONS, MODERN_REVISION)


@pytest.fixture(params=REVISIONS)
def revision(request: Any) -> str:
    return str(request.param)


async def test_a_client_agrees_on_the_newest_legacy_revision_if_its_own_is_unknown(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        client = McpClient(wire)
        params = {"protocolVersion": "2031-01-01", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        answer = await client.call("initialize", params)
        assert answer["result"]["protocolVersion"] == "2025-11-25"
        assert answer["result"]["serverInfo"] == {"name": "shop", "version": "2.1"}
        assert answer["result"]["instructions"] == "Sells things."
        assert (await client.call("ping"))["result"] == {}
        assert (await client.call("shop/price", {"name": "a"}))["error"]["code"] == -32601


async def test_tools_are_the_external_operations_in_the_order_of_declaration(
    serving: Any, shop: Service, revision: str
) -> None:
    async with mcp_client(serving, shop, revision) as client:
        tools = (await client.call("tools/list"))["result"]["tools"]
        names = [tool["name"].removeprefix("shop_") for tool in tools]
        assert names == "price count basket wait greet picture deliveries change order books".split()
        price, count = tools[0], tools[1]
        assert price["inputSchema"]["required"] == ["name"]
        assert "$schema" not in price["inputSchema"]
        assert ("annotations" in price) == (revision >= "2025-03-26")
        assert ("outputSchema" in price) == (revision >= "2025-06-18")
        if revision >= "2025-06-18":
            assert price["annotations"]["readOnlyHint"] is True
            assert count["annotations"]["readOnlyHint"] is False
            assert count["outputSchema"]["properties"] == {"result": {"type": "integer"}}
            basket = tools[2]["outputSchema"]
            assert list(basket["$defs"]) == ["Basket"]
            assert basket["properties"]["items"]["items"]["title"] == "Item"
        asked = next(tool for tool in tools if tool["name"] == "shop_order")["inputSchema"]
        assert (list(asked["properties"]), asked["required"]) == (["name"], ["name"])


async def test_what_the_caller_may_not_call_is_not_listed(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP, access=Access(Identity("parent", frozenset()))) as wire:
        client = McpClient(wire)
        await client.begin()
        tools = (await client.call("tools/list"))["result"]["tools"]
        assert "shop_books" not in [tool["name"] for tool in tools]
        assert (await client.call("tools/call", {"name": "shop_books"}))["error"]["code"] == -32000


async def test_a_result_is_text_for_the_model_and_structure_for_programs(
    serving: Any, shop: Service, revision: str
) -> None:
    async with mcp_client(serving, shop, revision) as client:
        price = await client.tool("shop_price", {"name": "pen", "amount": 2})
        assert price["content"] == [{"type": "text", "text": '{"name":"pen","price":5.0}'}]
        greeting = await client.tool("shop_greet")
        assert greeting["content"] == [{"type": "text", "text": "hello"}]
        assert (await client.tool("shop_change"))["content"] == []
        if revision >= "2025-06-18":
            assert price["structuredContent"] == {"name": "pen", "price": 5.0}
            assert greeting["structuredContent"] == {"result": "hello"}
        else:
            assert "structuredContent" not in price


async def test_json_in_a_string_is_read_where_no_string_is_taken(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, "2025-11-25") as client:
        given = {"name": "7", "amount": "2", "labels": '["a"]'}
        assert (await client.tool("shop_price", given))["structuredContent"] == {"name": "7", "price": 5.0}
        refused = await client.tool("shop_price", {"name": "7", "amount": "two"})
        assert refused["structuredContent"]["details"]["param"] == "arguments.amount"


async def test_content_that_a_revision_does_not_know_becomes_text(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        kinds = [content["type"] for content in (await client.tool("shop_picture"))["content"]]
        audio = "audio" if revision >= "2025-03-26" else "text"
        link = "resource_link" if revision >= "2025-06-18" else "text"
        assert kinds == ["text", "image", audio, link]


async def test_a_declared_error_tells_its_code_and_details(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        result = await client.tool("shop_price", {"name": "none"})
        assert result["isError"] is True
        assert "ITEM_NOT_FOUND" in result["content"][0]["text"]
        if revision >= "2025-06-18":
            told = {"code": "ITEM_NOT_FOUND", "retryable": True, "details": {"name": "none"}}
            assert result["structuredContent"] == told


async def test_the_description_tells_a_model_what_a_tool_may_fail_with(serving: Any, revision: str) -> None:
    service = Service("")

    class Gone(OperationError, code="GONE"):
        """It is not there any more."""

    @service.query(errors=[Gone])
    async def look() -> None:
        """Look at it."""

    @service.query(errors=[Gone])
    async def glance() -> None: ...

    async with mcp_client(serving, service, revision) as client:
        tools = (await client.call("tools/list"))["result"]["tools"]
        told = "Fails with: GONE (It is not there any more)."
        assert [tool["description"] for tool in tools] == [f"Look at it.\n\n{told}", told]


async def test_a_crash_tells_nothing_of_itself(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        result = await client.tool("shop_price", {"name": "crash"})
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "The tool failed with an internal error."}]


async def test_wrong_arguments_are_for_the_model_since_2025_11_25(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        answer = await client.call("tools/call", {"name": "shop_price", "arguments": {"nam": 1}})
        if revision >= "2025-11-25":
            assert answer["result"]["isError"] is True
            assert answer["result"]["structuredContent"]["code"] == "INVALID_INPUT"
        else:
            assert answer["error"]["code"] == -32602


async def test_an_unknown_tool_is_an_error_of_the_protocol(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        for name in ("shop_hidden", "shop_told", "shop_prices", "shop/price", "nothing"):
            error = (await client.call("tools/call", {"name": name}))["error"]
            named = "tool" if "/" in name else f"tool {name}"  # only plain words are repeated
            assert (error["code"], error["message"]) == (-32602, f"Invalid params: unknown {named}")


async def test_progress_rises_and_ends_with_the_result(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        await client.tool("shop_count", {"steps": 3}, _meta={"progressToken": "t"})
        told = [note["params"] for note in client.notes if note["method"] == "notifications/progress"]
        assert told == [{"progressToken": "t", "progress": n, "total": 3} for n in range(3)]
        client.notes.clear()
        await client.tool("shop_count", {"steps": 3})
        assert [note["method"] for note in client.notes if note["method"] == "notifications/progress"] == []


async def test_a_subscription_is_a_tool_whose_events_are_progress(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        result = await client.tool("shop_deliveries", {"number": 2}, _meta={"progressToken": 7})
        told = [note["params"] for note in client.notes]
        assert [each["progress"] for each in told] == [1, 2]
        if revision >= "2025-03-26":
            assert told[1]["message"] == '{"name":"box","price":1}'
        listed = '{"result":[{"name":"box","price":0},{"name":"box","price":1}]}'
        assert result["content"] == [{"type": "text", "text": listed}]


async def test_the_result_of_a_long_subscription_is_bounded_and_says_what_is_missing(serving: Any) -> None:
    service = Service("s")

    @service.subscription
    async def many() -> AsyncIterator[str]:
        for _ in range(300):
            yield "x" * 1000

    async with mcp_client(serving, service, "2025-11-25") as client:
        result = (await client.tool("s_many"))["structuredContent"]
        assert len(result["result"]) + result["omitted"] == 300
        assert 200 < len(result["result"]) < 300


async def test_tools_have_no_deadline_of_the_daemons(serving: Any, logged: Any) -> None:
    service = Service("s")

    @service.query
    async def left(ctx: Any) -> float | None:
        found: float | None = ctx.time_left
        return found

    @service.query(timeout=9.0)
    async def limited(ctx: Any) -> bool:
        return ctx.time_left is not None

    async with mcp_client(serving, service, "2025-11-25") as client:
        assert (await client.tool("s_left"))["structuredContent"] == {"result": None}
        assert (await client.tool("s_limited"))["structuredContent"] == {"result": True}


async def test_log_messages_are_of_the_level_that_was_asked_for(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, "2025-11-25") as client:
        await client.tool("shop_count")
        assert [note["params"] for note in client.notes] == [{"level": "warning", "data": {"counted": 3}}]
        client.notes.clear()
        await client.call("logging/setLevel", {"level": "error"})
        await client.tool("shop_count")
        assert client.notes == []
        assert (await client.call("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


async def test_initializers_run_before_initialize_is_answered(serving: Any, shop: Service) -> None:
    seen: list[str] = []

    @shop.initialize
    async def look(ctx: Any, **params: Any) -> dict[str, Any]:
        seen.append(ctx.client.name)
        return {"experimental": {"shop": {}}}

    async with serving(shop, **MCP) as wire:
        client = McpClient(wire)
        assert (await client.begin())["capabilities"]["experimental"] == {"shop": {}}
        assert seen == ["test"]


async def test_a_request_without_a_proper_id_is_refused(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, "2025-11-25") as client:
        await client.wire.send({"jsonrpc": "2.0", "id": None, "method": "ping"}, b"[]", b"{")
        told = [await client.receive() for _ in range(3)]
        assert [each["error"]["code"] for each in told] == [-32600, -32600, -32700]


async def test_lists_come_in_pages(serving: Any, monkeypatch: pytest.MonkeyPatch, shop: Service) -> None:
    monkeypatch.setattr("discreet.dialects.mcp.tools.PAGE", 4)
    async with mcp_client(serving, shop, "2025-11-25") as client:
        names: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = (await client.call("tools/list", cursor))["result"]
            names += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert len(names) == len(set(names)) == 10
        for wrong in ("0", "-1", "99", "x", "٤"):
            assert (await client.call("tools/list", {"cursor": wrong}))["error"]["code"] == -32602


# -- options ---------------------------------------------------------------------------------------------------

ICON = {"src": "https://shop.example/pen.png", "mimeType": "image/png"}


async def test_options_of_a_tool_a_resource_and_a_prompt_are_listed(serving: Any, revision: str) -> None:
    service = Service("shop")
    told = {
        "title": "Price of an item",
        "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False, "title": "Price"},
        "icons": [ICON],
        "_meta": {"shop.example/group": 3},
    }

    @service.query(options=told)
    def price() -> int:
        return 1

    @service.mutation(options=mcp.ToolOptions(annotations=mcp.ToolAnnotations(destructive_hint=True)))
    def clear() -> None: ...

    @service.resource("shop://prices", options={"annotations": {"priority": 0.5}, "icons": [ICON], "_meta": {"a": 1}})
    def prices() -> str:
        return ""

    @service.prompt(options={"icons": [ICON], "_meta": {"a": 1}})
    def sell() -> str:
        return ""

    async with mcp_client(serving, service, revision) as client:
        price_tool, clear_tool = (await client.call("tools/list"))["result"]["tools"]
        assert ("title" in price_tool) == (revision >= "2025-06-18")
        assert ("icons" in price_tool) == (revision >= "2025-11-25")
        if revision >= "2025-11-25":
            assert price_tool | told | {"annotations": {"readOnlyHint": True, **told["annotations"]}} == price_tool
            assert clear_tool["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
            (resource,) = (await client.call("resources/list"))["result"]["resources"]
            assert (resource["annotations"], resource["icons"], resource["_meta"]) == (
                {"priority": 0.5},
                [ICON],
                {"a": 1},
            )
            (prompt,) = (await client.call("prompts/list"))["result"]["prompts"]
            assert (prompt["icons"], prompt["_meta"]) == ([ICON], {"a": 1})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"titel": "x"}, "there is no titel; nearest: title; MCP has icons, _meta, title, annotations, ui"),
        ({"annotations": {"readonlyHint": True}}, "there is no annotations.readonlyHint; nearest: readOnlyHint"),
        ({"title": 3}, "Expected `str | null`, got `int`"),
        (["title"], "they must be a dict"),
    ],
)
def test_options_that_mcp_does_not_know_fail_at_the_start(options: Any, said: str) -> None:
    service = Service("shop")

    @service.query(options=options)
    def price() -> int:
        return 1

    with pytest.raises(DeclarationError, match="operation shop/price: options: .*") as refused:
        Offered(Host([service], Settings(), version="1"))
    assert said in str(refused.value)


def test_options_of_a_method_of_lsp_are_none_of_a_tool() -> None:
    service = Service()

    @service.query("textDocument/completion", options={"triggerCharacters": ["."]})
    def complete(params: dict[str, Any], /) -> None: ...

    Offered(Host([service], Settings(), version="1"))


# -- arguments in strings --------------------------------------------------------------------------------------


class Order(msgspec.Struct):
    name: str
    amount: int
    sizes: list[float] = []
    gift: bool | None = None
    next: Order | None = None
    notes: dict[str, int] = {}


@pytest.mark.parametrize(
    "order",
    [
        {"name": "3", "amount": "3"},
        '{"name": "3", "amount": "3"}',
        {"name": "3", "amount": 3, "sizes": ["1.5", 2]},
        {"name": "3", "amount": 3, "sizes": '["1.5", 2]'},
        {"name": "3", "amount": 3, "gift": "true", "next": '{"name": "x", "amount": "4"}'},
        {"name": "3", "amount": 3, "notes": {"a": "7"}},
    ],
)
async def test_what_is_no_string_may_come_as_json_in_a_string_anywhere(serving: Any, order: Any) -> None:
    seen: list[tuple[Order, list[Order]]] = []
    service = Service("shop")

    @service.mutation(inline=True)
    def buy(order: Order, more: list[Order]) -> None:
        seen.append((order, more))

    async with mcp_client(serving, service, "2025-11-25") as client:
        arguments = {"order": order, "more": [order]}
        answer = await client.call("tools/call", {"name": "shop_buy", "arguments": arguments})
        assert "isError" not in answer["result"]
        wrong = {"order": {"name": "a", "amount": "many"}, "more": []}
        refused = await client.call("tools/call", {"name": "shop_buy", "arguments": wrong})
        assert refused["result"]["structuredContent"]["details"]["param"] == "arguments.order.amount"
    ((bought, (again,)),) = seen
    assert bought == again
    assert (bought.name, bought.amount) == ("3", 3)
    assert bought.next is None or bought.next.amount == 4


# -- Schemas as models get them, and templates of URIs: small, finite, never slow --


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


class Coded(msgspec.Struct, forbid_unknown_fields=True):
    code: int


class Tree(msgspec.Struct):
    inner: list[Tree] = []


class Refused(OperationError, code="REFUSED"):
    """It is refused."""

    why: str


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
