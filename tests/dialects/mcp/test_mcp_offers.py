"""Resources, prompts and completion, as a host sees them in every revision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet import DeclarationError, Service
from discreet.daemon.operations.request import ResourceWatcher
from discreet.dialects.mcp.generated.tables import LEGACY_REVISIONS
from support.mcp_wire import MCP, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio


@pytest.fixture(params=(*LEGACY_REVISIONS, MODERN))
def revision(request: Any) -> str:
    return str(request.param)


async def test_resources_and_templates_are_listed_and_read(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        listed = (await client.call("resources/list"))["result"]["resources"]
        assert [each["uri"] for each in listed] == ["shop://prices", "shop://logo"]
        assert ("title" in listed[0]) == (revision >= "2025-06-18")
        templates = (await client.call("resources/templates/list"))["result"]["resourceTemplates"]
        assert [each["uriTemplate"] for each in templates] == ["shop://items/{name}/{count}"]

        async def contents(uri: str) -> Any:
            return (await client.call("resources/read", {"uri": uri}))["result"]["contents"]

        text = {"uri": "shop://prices", "mimeType": "text/plain", "text": "pen 1"}
        assert await contents("shop://prices") == [text]
        assert await contents("shop://logo") == [{"uri": "shop://logo", "mimeType": "image/png", "blob": "AAE="}]
        uri = "shop://items/a%20b/3"
        filled = {"uri": uri, "mimeType": "application/json", "text": '{"name":"a b","price":3}'}
        assert await contents(uri) == [filled]


async def test_what_is_no_resource_is_refused(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        for uri in ("shop://nothing", "shop://items/a", "shop://items/a/b/1", ""):
            error = (await client.call("resources/read", {"uri": uri}))["error"]
            assert error["code"] == (-32602 if revision == MODERN else -32002)
        refused = await client.call("resources/read", {"uri": "shop://items/a/many"})
        assert (refused["error"]["code"], refused["error"]["data"]["param"]) == (-32602, "uri.count")


async def test_who_subscribed_to_a_resource_hears_of_its_changes(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, "2025-11-25") as client:
        await client.tool("shop_change")
        assert client.notes == []
        await client.call("resources/subscribe", {"uri": "shop://prices"})
        await client.tool("shop_change")
        assert [note["params"] for note in client.notes] == [{"uri": "shop://prices"}]
        client.notes.clear()
        await client.call("resources/unsubscribe", {"uri": "shop://prices"})
        await client.tool("shop_change")
        assert client.notes == []
        assert (await client.call("resources/subscribe", {"uri": "no://"}))["error"]["code"] == -32002


async def test_clients_that_came_another_way_hear_of_changes_too(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        client, host = McpClient(wire), wire.daemon.host
        await client.begin()
        heard: list[str] = []
        host.resource_watchers.append(ResourceWatcher(heard.append))
        await client.tool("shop_change")
        assert (heard, client.notes) == (["shop://prices"], [])
        await client.call("resources/subscribe", {"uri": "shop://prices"})
        host.resource_updated("shop://prices")  # as by a request that came over HTTP
        await client.call("ping")
        assert len(client.notes) == 1
        assert host.memory.held("sessions") == len("shop://prices")


async def test_subscriptions_of_a_client_are_bounded(
    serving: Any, shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.dialects.mcp.dialect.MAX_SUBSCRIBED", 2)
    async with mcp_client(serving, shop, "2025-11-25") as client:
        for count in (1, 2, 1):
            assert "result" in await client.call("resources/subscribe", {"uri": f"shop://items/a/{count}"})
        refused = await client.call("resources/subscribe", {"uri": "shop://items/a/3"})
        assert refused["error"]["data"]["code"] == "OVERLOADED"


async def test_a_subscription_that_is_cancelled_before_its_answer_holds_no_place(
    serving: Any, shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = anyio.Event()

    async def check_watched(*_: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    monkeypatch.setattr("discreet.dialects.mcp.state.McpState.check_watched", check_watched)
    async with mcp_client(serving, shop, "2025-11-25") as client:
        waiting = client.request("resources/subscribe", {"uri": "shop://prices"})
        await client.wire.send(waiting)
        await asked.wait()
        cancelled = {"requestId": waiting["id"]}
        await client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        await client.tool("shop_change")
        assert (client.notes, client.wire.daemon.host.memory.held("sessions")) == ([], 0)


async def test_prompts_are_listed_and_filled(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:
        advise = (await client.call("prompts/list"))["result"]["prompts"][0]
        assert advise["name"] == "shop_advise"
        required = [(each["name"], each["required"]) for each in advise["arguments"]]
        assert required == [("about", True), ("style", False), ("words", False)]
        given = {"name": "shop_advise", "arguments": {"about": "12", "words": "5"}}
        messages = (await client.call("prompts/get", given))["result"]["messages"]
        assert messages == [{"role": "user", "content": {"type": "text", "text": "12 short 5"}}]
        shown = (await client.call("prompts/get", {"name": "shop_show"}))["result"]["messages"]
        assert shown[0]["content"]["type"] == ("audio" if revision >= "2025-03-26" else "text")
        for wrong in (
            {"name": "shop_price"},
            {"name": "shop_advise"},
            {"name": "shop_advise", "arguments": {"x": "1"}},
        ):
            assert (await client.call("prompts/get", wrong))["error"]["code"] == -32602


async def test_values_are_completed(serving: Any, shop: Service, revision: str) -> None:
    async with mcp_client(serving, shop, revision) as client:

        async def values(ref: dict[str, str], name: str, value: str) -> Any:
            params = {"ref": ref, "argument": {"name": name, "value": value}}
            return (await client.call("completion/complete", params))["result"]["completion"]["values"]

        prompt = {"type": "ref/prompt", "name": "shop_advise"}
        assert await values(prompt, "about", "p") == ["pens", "paper"]
        assert await values(prompt, "style", "L") == ["long"]
        assert await values(prompt, "words", "1") == []
        template = {"type": "ref/resource", "uri": "shop://items/{name}/{count}"}
        assert await values(template, "name", "x") == []
        unknown = {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}}
        assert (await client.call("completion/complete", unknown))["error"]["code"] == -32602


async def test_to_other_clients_an_offer_is_a_query(serving: Any, shop: Service) -> None:
    async with serving(shop) as wire:
        assert (await wire.call("shop/prices"))["result"] == "pen 1"
        assert (await wire.call("shop/advise", {"about": "pens"}))["result"] == "pens short 10"


async def test_subscribers_of_other_daemons_on_the_store_hear_of_changes(
    serving: Any, shop: Service, tmp_path: Path
) -> None:
    settings = {**MCP, "store": f"sqlite:{tmp_path / 'tasks'}"}
    wanted = {"notifications": {"resourceSubscriptions": ["shop://prices", "shop://logo"]}}
    async with (
        serving(shop, **settings) as ours,
        serving(shop, **settings) as theirs,
        serving(shop, **settings) as modern,
    ):
        client, other, listener = McpClient(ours), McpClient(theirs), McpClient(modern, MODERN)
        for each in (client, other):
            await each.begin()
            await each.call("resources/subscribe", {"uri": "shop://prices"})
        await other.call("resources/subscribe", {"uri": "shop://logo"})
        await modern.send(listener.request("subscriptions/listen", wanted))
        await listener.receive()
        await client.tool("shop_change")
        assert client.notes == [await other.receive()]
        assert (await listener.receive())["params"]["uri"] == "shop://prices"
        await other.tool("shop_change")
        assert (await client.receive())["method"] == "notifications/resources/updated"


@pytest.mark.parametrize(
    ("uri", "wrong"),
    [
        ("prices", "scheme"),
        ("a://{x}", "variables"),
        ("a://{name}{count}", "between"),
        ("a://{+name}/{+count}", "between"),
        ("a://{name*}", "only"),
    ],
)
def test_a_uri_that_does_not_fit_its_handler_fails_at_the_start(uri: str, wrong: str) -> None:
    service = Service("s")
    with pytest.raises(DeclarationError, match=wrong):

        @service.resource(uri)
        def read(name: str, count: int) -> str:
            return name


def test_a_completer_for_no_param_fails_at_the_start() -> None:
    service = Service("s")
    with pytest.raises(DeclarationError, match="names no param"):

        @service.prompt(complete={"other": lambda begun: [begun]})
        def ask(name: str) -> str:
            return name


def test_a_resource_without_a_uri_fails_at_the_start() -> None:
    service = Service("s")
    with pytest.raises(DeclarationError, match="needs a URI"):

        @service.resource  # type: ignore[arg-type]
        def read() -> str:
            return ""

    with pytest.raises(DeclarationError, match="must be strings"):

        @service.resource("a://b", mime_type=1)  # type: ignore[arg-type]
        def other() -> str:
            return ""


async def test_two_resources_of_one_uri_fail_at_the_start(serving: Any) -> None:
    service = Service("s")

    @service.resource("a://b")
    def one() -> str:
        return ""

    @service.resource("a://b")
    def two() -> str:
        return ""

    with pytest.raises(DeclarationError, match="s/one and s/two are both the resource a://b"):
        async with serving(service, **MCP):
            pass
