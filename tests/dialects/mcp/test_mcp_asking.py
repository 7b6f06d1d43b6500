"""Params that the user is asked for: by a request of the server's in the legacy protocol, within a result in the modern one."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from discreet import DeclarationError, Service, mcp
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from support.mcp_wire import MCP, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

ORDER = {"name": "shop_order", "arguments": {"name": "pen"}}
YES = {"action": "accept", "content": {"sure": "yes"}}
HOME = {"action": "accept", "content": {"street": "Elm", "number": 4}}


async def answer(client: McpClient, **result: Any) -> dict[str, Any]:
    """Take the server's next request and answer it."""
    asked = await client.receive()
    assert asked["method"] == "elicitation/create"
    await client.wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    params: dict[str, Any] = asked["params"]
    return params


async def test_a_legacy_client_is_asked_before_the_tool_runs(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        sure = await answer(client, **YES)
        assert sure["message"] == "Really?"
        properties = {"sure": {"type": "string", "enum": ["no", "yes"]}}
        assert sure["requestedSchema"] == {"type": "object", "properties": properties, "required": ["sure"]}
        address = await answer(client, **HOME)
        assert address["requestedSchema"]["required"] == ["street"]
        result = (await client.answer(call))["result"]
        assert result["structuredContent"] == {"result": "pen yes Elm 4"}


async def test_a_user_who_declines_ends_the_call(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        await answer(client, action="decline")
        result = (await client.answer(call))["result"]
        assert (result["isError"], result["structuredContent"]["code"]) == (True, "DECLINED")


async def test_a_client_that_fails_to_ask_ends_the_call(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        asked = await client.receive()
        await client.wire.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
        assert (await client.answer(call))["result"]["structuredContent"]["code"] == "NO_ANSWER"


async def test_a_cancelled_call_takes_its_question_back(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        asked = await client.receive()
        cancel = {"requestId": call["id"]}
        await client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
        taken_back = await client.receive()
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"] == {"requestId": asked["id"]}
        assert "result" in await client.call("ping")


async def test_a_legacy_client_that_can_ask_nobody_is_told_so(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop) as client:
        assert (await client.tool(**ORDER))["structuredContent"]["code"] == "CLIENT_CANNOT_ASK"


async def test_a_model_can_not_answer_for_the_user(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        for revision in ("2025-06-18", MODERN):
            client = McpClient(wire, revision)
            if revision != MODERN:
                await client.begin(elicitation={})
            given = {"name": "pen", "sure": "yes", "address": {"street": "a"}}
            refused = await client.call("tools/call", {"name": "shop_order", "arguments": given})
            assert (refused["error"]["code"], refused["error"]["data"]["param"]) == (-32602, "arguments.sure")


async def test_a_modern_client_brings_the_answers_with_its_next_request(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        first = (await client.call("tools/call", ORDER))["result"]
        assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["sure", "address"])
        state = {"requestState": first["requestState"]}
        second = (await client.call("tools/call", {**ORDER, **state, "inputResponses": {"sure": YES}}))["result"]
        assert list(second["inputRequests"]) == ["address"]
        state = {"requestState": second["requestState"]}
        third = (await client.call("tools/call", {**ORDER, **state, "inputResponses": {"address": HOME}}))["result"]
        assert third["structuredContent"] == {"result": "pen yes Elm 4"}


async def test_a_state_that_was_changed_or_is_of_another_call_is_refused(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        state = (await client.call("tools/call", ORDER))["result"]["requestState"]
        answers = {"sure": YES, "address": HOME}
        other = {**ORDER, "arguments": {"name": "gold"}}
        for call, sealed in (
            (ORDER, state + "x"),
            (ORDER, "A" + state[1:] if state[0] != "A" else "B" + state[1:]),
            (ORDER, state[:60]),
            (ORDER, "é"),
            (ORDER, ""),
            (other, state),
        ):
            params = {**call, "requestState": sealed, "inputResponses": answers}
            assert (await client.call("tools/call", params))["error"]["code"] == -32602


async def test_a_state_expires(serving: Any, shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.dialects.mcp.seal.STATE_SECONDS", -1.0)
    async with mcp_client(serving, shop, MODERN) as client:
        state = (await client.call("tools/call", ORDER))["result"]["requestState"]
        params = {**ORDER, "requestState": state, "inputResponses": {"sure": YES, "address": HOME}}
        assert (await client.call("tools/call", params))["error"]["code"] == -32602


async def test_answers_without_a_state_are_asked_for_again(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        params = {**ORDER, "inputResponses": {"sure": YES, "address": HOME}}
        assert (await client.call("tools/call", params))["result"]["resultType"] == "input_required"


async def test_a_modern_client_that_can_ask_nobody_learns_what_is_missing(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        meta = {"io.modelcontextprotocol/clientCapabilities": {}}
        error = (await McpClient(wire, MODERN).call("tools/call", {**ORDER, "_meta": meta}))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


async def test_who_may_not_call_the_tool_is_refused_before_anybody_is_asked(serving: Any) -> None:
    service = Service("s")

    @service.mutation(scopes=["s:admin"])
    async def erase(sure: Annotated[bool, mcp.Ask("Sure?")]) -> bool:
        return sure

    nobody = Access(Identity("parent", frozenset()))
    async with serving(service, access=nobody, **MCP) as wire:
        modern, legacy = McpClient(wire, MODERN), McpClient(wire)
        await legacy.begin(elicitation={})
        for client in (modern, legacy):
            assert (await client.call("tools/call", {"name": "s_erase"}))["error"]["code"] == -32000
            assert client.asked == []


async def test_to_other_clients_it_is_a_param_like_any_other(serving: Any, shop: Service) -> None:
    async with serving(shop) as wire:
        params = {"name": "pen", "sure": "yes", "address": {"street": "Elm"}}
        assert (await wire.call("shop/order", params))["result"] == "pen yes Elm 1"


async def test_what_no_form_can_hold_fails_at_the_start(serving: Any) -> None:
    service = Service("s")

    @service.query
    async def ask(many: Annotated[list[int], mcp.Ask("Which?")]) -> int:
        return len(many)

    with pytest.raises(DeclarationError, match=r"can't be asked for param many.*\(test_mcp_asking.py:\d+\)$"):
        async with serving(service, **MCP):
            pass


@pytest.mark.parametrize(("given", "param"), [({"name": 5}, "name"), ({}, "name"), ({"name": "pen", "x": 1}, "x")])
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_nobody_is_asked_for_a_call_with_wrong_arguments(
    serving: Any, shop: Service, given: dict[str, Any], param: str, revision: str
) -> None:
    async with serving(shop, **MCP) as wire:
        client = McpClient(wire, revision)
        if revision != MODERN:
            await client.begin(elicitation={})
        result = (await client.call("tools/call", {"name": "shop_order", "arguments": given}))["result"]
        assert result["structuredContent"]["details"]["param"] == f"arguments.{param}"
        assert (result["structuredContent"]["code"], client.asked) == ("INVALID_INPUT", [])


def test_a_question_that_is_not_written_as_one_fails_at_the_start() -> None:
    def without_text(sure: Annotated[bool, mcp.Ask]) -> None: ...
    def as_default(sure: bool = mcp.Ask("Sure?")) -> None: ...  # type: ignore[assignment] # the mistake

    def not_called(folders: Annotated[list[mcp.Root], mcp.Roots]) -> None: ...

    for handler in (without_text, as_default, not_called):
        with pytest.raises(DeclarationError, match=r"mcp\.Ask\(\"Really\?\"\)"):
            Service("shop").mutation(handler)
