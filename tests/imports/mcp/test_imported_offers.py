"""Resources, templates and prompts of imported servers, as clients of MCP get them: under names and URIs of the import."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("jsonschema_rs")

from discreet import Service
from discreet.client import OperationFailed, Peer
from discreet.client.errors import RemoteError
from discreet.daemon.declarations import ExternalServer, external_uri
from discreet.imports.mcp.watched import WatchedResources
from discreet.testing import in_memory
from support.backends import both_loops
from support.logged_events import logged_events
from support.mcp_wire import META as META_OF_REQUESTS
from support.waits import until

from .conftest import TESTS, Import, odd

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")]

META = {"_meta": META_OF_REQUESTS}
APP = TESTS.parent / "examples" / "mcp_app" / "sales.py"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def names(peer: Peer, kind: str, key: str, member: str = "") -> list[str]:
    return [each[key] for each in (await peer.call(f"{kind}/list", META))[member or kind]]


async def read(peer: Peer, uri: str) -> Any:
    (contents,) = (await peer.call("resources/read", {**META, "uri": uri}))["contents"]
    return contents


async def complete(peer: Peer, ref: Any, name: str, value: str) -> list[str]:
    asked = {**META, "ref": ref, "argument": {"name": name, "value": value}}
    values: list[str] = (await peer.call("completion/complete", asked))["completion"]["values"]
    return values


async def test_what_a_server_offers_beside_its_tools_is_offered_as_such(import_shop: Import) -> None:
    async with in_memory(import_shop(), dialect="mcp") as peer:
        found = (await peer.call("server/discover", META))["capabilities"]
        assert found["resources"] == {"listChanged": True, "subscribe": True}
        assert (found["prompts"], found["completions"]) == ({"listChanged": True}, {})
        assert await names(peer, "tools", "name") == ["shop_shop_look", "shop_shop_order", "shop_shop_restock"]
        (stock,) = (await peer.call("resources/list", META))["resources"]
        assert stock == {
            "uri": "shop://shop/stock",
            "name": "shop/stock",
            "title": "Stock",
            "description": "What is left of every item.",
            "mimeType": "text/plain",
        }
        assert "pen: " in (await read(peer, "shop://shop/stock"))["text"]
        templates = await names(peer, "resources/templates", "uriTemplate", "resourceTemplates")
        assert templates == ["shop://shop/items/{name}"]
        item = await read(peer, "shop://shop/items/desk")
        assert (item["uri"], item["mimeType"]) == ("shop://shop/items/desk", "application/json")
        (prompt,) = (await peer.call("prompts/list", META))["prompts"]
        assert (prompt["name"], prompt["title"]) == ("shop_shop_compare", "Compare two items")
        assert [each["name"] for each in prompt["arguments"]] == ["one", "other", "style"]
        given = {"name": "shop_shop_compare", "arguments": {"one": "pen", "other": "desk"}}
        (message,) = (await peer.call("prompts/get", {**META, **given}))["messages"]
        assert "pen and desk" in message["content"]["text"]
        template = {"type": "ref/resource", "uri": "shop://shop/items/{name}"}
        assert await complete(peer, template, "name", "p") == ["pen", "paper"]
        assert await complete(peer, {"type": "ref/prompt", "name": "shop_shop_compare"}, "one", "d") == ["desk"]
        with pytest.raises(OperationFailed) as failed:
            await read(peer, "shop://shop/items/moon")
        assert failed.value.code == "MCP_ERROR"


async def test_a_failure_of_the_server_is_a_typed_error(import_odd: Import) -> None:
    async with in_memory(import_odd("offers"), dialect="mcp") as peer:
        with pytest.raises(OperationFailed) as failed:
            await read(peer, "odd://odd/refused")
        assert (failed.value.code, failed.value.details["code"]) == ("MCP_ERROR", -32002)
        with pytest.raises(RemoteError) as unknown:  # no import is called so
            await read(peer, "odd://even/a")
        assert unknown.value.number == -32602
        with pytest.raises(RemoteError) as wrong:
            await peer.call("prompts/get", {**META, "name": "odd_greet"})
        assert (wrong.value.number, wrong.value.data["param"]) == (-32602, "arguments.who")


async def test_several_imports_and_own_offers_do_not_collide(import_odd: Import) -> None:
    own = Service("odd")

    @own.resource("odd://a")
    def a() -> str:
        return "mine"

    @own.prompt
    def greet() -> str:
        return "Hello"

    services = [own, *(import_odd("offers", namespace=name) for name in ("one", "one/two"))]
    async with in_memory(*services, dialect="mcp") as peer:
        assert await names(peer, "resources", "uri") == [
            "odd://a",
            *("odd://one/a", "urn:one/odd:b", "file://one//c"),
            *("odd://one~two/a", "urn:one~two/odd:b", "file://one~two//c"),
        ]
        for uri, own_uri in (
            ("odd://one/a", "odd://a"),
            ("urn:one~two/odd:b", "urn:odd:b"),
            ("file://one//c", "file:///c"),
            ("odd://one/of/x", "odd://of/x"),
            ("odd://one/two/a", "odd://two/a"),
        ):
            assert await read(peer, uri) == {"uri": uri, "text": f"read {own_uri}"}
        assert (await read(peer, "odd://a"))["text"] == "mine"
        assert await names(peer, "prompts", "name") == ["odd_greet", "one_greet", "one_two_greet"]
        got = await peer.call("prompts/get", {**META, "name": "one_greet", "arguments": {"who": "Ann"}})
        assert got["messages"][0]["content"]["resource"]["uri"] == "odd://one/a"
        ref = {"type": "ref/resource", "uri": "odd://one~two/of/{name}"}
        assert await complete(peer, ref, "name", "x") == ['{"type": "ref/resource", "uri": "odd://of/{name}"}', "x"]
        linked = await peer.call("tools/call", {**META, "name": "one_act", "arguments": {"do": "link"}})
        assert [each["uri"] for each in linked["content"]] == ["odd://one/a", "https://a.example/b"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
async def test_clients_of_earlier_revisions_get_them_too(import_odd: Import, revision: str) -> None:
    async with in_memory(import_odd("offers"), dialect="mcp") as peer:
        welcome = await peer.call("initialize", HELLO | {"protocolVersion": revision})
        assert {"resources", "prompts"} <= welcome["capabilities"].keys()
        listed = (await peer.call("resources/list"))["resources"]
        assert listed[0] == {"uri": "odd://odd/a", "name": "one"}
        assert (await peer.call("resources/read", {"uri": "odd://odd/a"}))["contents"][0]["text"] == "read odd://a"
        (prompt,) = (await peer.call("prompts/list"))["prompts"]
        assert ("title" in prompt) == (revision >= "2025-06-18")


async def test_only_what_is_exposed_is_offered(import_odd: Import) -> None:
    service = import_odd("offers", namespace="odd")
    hidden = [spec for spec in service.operations if spec.name not in ("odd/act", "odd/prompts/greet")]
    from msgspec.structs import replace

    service.operations = [
        replace(spec, visibility="internal") if spec in hidden else spec for spec in service.operations
    ]
    async with in_memory(service, dialect="mcp") as peer:
        assert await names(peer, "resources", "uri") == []
        assert await names(peer, "prompts", "name") == ["odd_greet"]
        assert await complete(peer, {"type": "ref/prompt", "name": "odd_greet"}, "who", "A") == []
        with pytest.raises(RemoteError):
            await read(peer, "odd://odd/a")


# -- changes and updates --------------------------------------------------------------------------------------------


@both_loops
async def test_a_legacy_client_hears_of_lists_and_resources_that_change(import_odd: Import) -> None:
    told: list[Any] = []
    async with in_memory(import_odd("offers"), dialect="mcp") as peer:
        for method in ("resources/updated", "resources/list_changed"):
            peer.on_notification(f"notifications/{method}", lambda params, method=method: told.append((method, params)))
        await peer.call("initialize", HELLO)
        await peer.notify("notifications/initialized")

        async def act(do: str, **given: Any) -> Any:
            result = await peer.call("tools/call", {"name": "odd_act", "arguments": {"do": do, **given}})
            return result["content"][0]["text"]

        async def heard(what: str, times: int = 1) -> bool:
            return (await act("heard")).split().count(what) == times

        await peer.call("resources/subscribe", {"uri": "odd://odd/a"})
        await until(lambda: heard("resources/subscribe"))
        await act("touch", uri="odd://a")
        await act("touch", uri="urn:odd:b")
        await until(lambda: bool(told))
        assert told == [("resources/updated", {"uri": "odd://odd/a"})]
        told.clear()
        await act("found", uri="odd://new")
        await until(lambda: ("resources/list_changed", {}) in told)
        listed = [each["uri"] for each in (await peer.call("resources/list"))["resources"]]
        assert listed == ["odd://odd/a", "urn:odd/odd:b", "file://odd//c", "odd://odd/new"]
        await peer.call("resources/unsubscribe", {"uri": "odd://odd/a"})
        await until(lambda: heard("resources/unsubscribe"))


@both_loops
async def test_a_server_that_died_is_subscribed_to_again_and_updates_may_have_been_missed(import_odd: Import) -> None:
    told: list[Any] = []
    async with in_memory(import_odd("offers"), dialect="mcp") as peer:
        peer.on_notification("notifications/resources/updated", told.append)
        await peer.call("initialize", HELLO)
        await peer.call("resources/subscribe", {"uri": "odd://odd/a"})

        async def subscribed() -> bool:
            result = await peer.call("tools/call", {"name": "odd_act", "arguments": {"do": "heard"}})
            return "resources/subscribe" in result["content"][0]["text"]

        await until(subscribed)
        await peer.call("tools/call", {"name": "odd_act", "arguments": {"do": "die"}})
        await until(lambda: bool(told))
        assert told[0] == {"uri": "odd://odd/a"}
        await until(subscribed)


async def test_a_refused_subscription_is_the_answer_where_the_server_runs_else_a_line_of_the_log(
    import_odd: Import,
) -> None:
    gone = {"uri": "odd://odd/refused"}
    with logged_events("warn") as logged:
        async with in_memory(import_odd("offers"), dialect="mcp") as peer:
            await peer.call("initialize", HELLO)
            assert await peer.call("resources/subscribe", gone) == {}
            await until(lambda: "import.subscription_refused" in logged.names())
            await peer.call("resources/unsubscribe", gone)
            for _ in range(2):  # it may have changed its mind
                with pytest.raises(RemoteError) as refused:
                    await peer.call("resources/subscribe", gone)
                assert refused.value.error.message == "The server does not tell of updates of the resource"
                assert json.loads(bytes(refused.value.error.data))["details"] == {
                    "code": -32002,
                    "message": "Resource not found",
                }
            assert await peer.call("resources/subscribe", {"uri": "odd://odd/a"}) == {}


MIDDLE = """
from discreet import from_mcp

inner = from_mcp({command!r}, namespace="inner", expose=True)
"""


@both_loops
async def test_an_import_of_an_import_passes_everything_on(import_app: Import, tmp_path: Path) -> None:
    middle = tmp_path / "middle.py"
    middle.write_text(MIDDLE.format(command=list(odd("offers").words)), encoding="utf-8")
    uri = "odd://outer/inner/a"
    heard = anyio.Event()
    async with in_memory(import_app(f"{middle}:inner", "outer"), dialect="mcp") as peer:
        assert (await names(peer, "resources", "uri"))[0] == uri
        assert await read(peer, uri) == {"uri": uri, "text": "read odd://a"}
        assert await names(peer, "prompts", "name") == ["outer_inner_greet"]
        peer.on_notification("notifications/resources/updated", lambda _: heard.set())
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                await peer.call("subscriptions/listen", {**META, "notifications": {"resourceSubscriptions": [uri]}})

            async def touch() -> None:  # until the subscription has come to the innermost server
                touched = {"name": "outer_inner_act", "arguments": {"do": "touch", "uri": "odd://a"}}
                while True:
                    await peer.call("tools/call", {**META, **touched})
                    await anyio.sleep(0.05)

            tasks.start_soon(listen)
            tasks.start_soon(touch)
            await heard.wait()
            tasks.cancel_scope.cancel()


async def test_an_app_of_an_import_is_an_app_here(import_app: Import) -> None:
    sales = import_app(f"{APP}:sales", "crm")
    capabilities = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    async with in_memory(sales, dialect="mcp") as peer:
        welcome = await peer.call("initialize", HELLO | {"capabilities": capabilities})
        assert welcome["capabilities"]["extensions"] == {"io.modelcontextprotocol/ui": {}}
        tools = {each["name"]: each for each in (await peer.call("tools/list"))["tools"]}
        assert tools["crm_sales_report"]["_meta"]["ui"] == {"resourceUri": "ui://crm/sales/report"}
        assert tools["crm_sales_quarters"]["_meta"]["ui"]["visibility"] == ["app"]
        (page,) = (await peer.call("resources/read", {"uri": "ui://crm/sales/report"}))["contents"]
        assert page["mimeType"] == "text/html;profile=mcp-app"
        assert page["_meta"]["ui"] == {"prefersBorder": True}
    async with in_memory(sales, dialect="mcp") as peer:
        await peer.call("initialize", HELLO)
        assert [each["name"] for each in (await peer.call("tools/list"))["tools"]] == ["crm_sales_report"]


@pytest.mark.parametrize("namespace", ["a", "a/b", "a.b", "a~"])
@pytest.mark.parametrize("uri", ["x://a", "x:a", "x://", "x:///a/b", "a", "a/b", "", "x://{+path}", "{scheme}://a"])
def test_a_uri_comes_back_as_it_was(namespace: str, uri: str) -> None:
    server = ExternalServer(namespace, WatchedResources())
    assert external_uri(server.uri(uri)) == (namespace.replace("/", "~"), uri)


def test_uris_that_name_no_server_are_none_of_an_import() -> None:
    assert [external_uri(uri) for uri in ("x://a", "", "x:")] == [None, None, None]
