"""What the server chooses to ask: of the user, of the model, of the client; at once or in rounds; for tools, prompts, resources."""

from typing import Any

import pytest

from discreet.dialects.mcp.seal import MAX_STATE_BYTES
from support.mcp_everything import server
from support.mcp_rounds import ALL, PARIS, capable, rounds
from support.mcp_wire import MCP, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

ALICE = {"action": "accept", "content": {"name": "Alice"}}
BLUE = {"action": "accept", "content": {"color": "blue"}}
ROOTS = {"roots": [{"uri": "file:///here", "name": "Here"}]}


def asked(result: dict[str, Any]) -> dict[str, str]:
    """The methods of what a result asks for."""
    return {name: request["method"] for name, request in result["inputRequests"].items()}


async def reply(client: McpClient, method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Take the server's next request and answer it."""
    request = await client.receive()
    assert request["method"] == method
    await client.wire.send({"jsonrpc": "2.0", "id": request["id"], "result": result})
    params: dict[str, Any] = request["params"]
    return params


# -- what a modern client is asked ---------------------------------------------------------------------------------


async def test_the_model_of_the_client_is_asked(serving: Any) -> None:
    async with mcp_client(serving, server, MODERN) as client:
        tool = {"name": "test_input_required_result_sampling"}
        first, last = await rounds(client, "tools/call", tool, {"capital_question": PARIS})
        content = {"type": "text", "text": "What is the capital of France?"}
        params = {"messages": [{"role": "user", "content": content}], "maxTokens": 100}
        request = {"method": "sampling/createMessage", "params": params}
        assert first["inputRequests"] == {"capital_question": request}
        assert last["content"][0]["text"] == "Paris"


async def test_the_roots_of_the_client_are_asked_for(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_list_roots"}
        client = McpClient(wire, MODERN)
        first, last = await rounds(client, "tools/call", tool, {"client_roots": ROOTS})
        assert first["inputRequests"] == {"client_roots": {"method": "roots/list", "params": {}}}
        assert last["structuredContent"] == {"result": ["file:///here"]}


async def test_what_does_not_depend_on_each_other_is_asked_at_once(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_multiple_inputs"}
        answers = {"user_name": ALICE, "greeting": PARIS, "client_roots": ROOTS}
        first, last = await rounds(McpClient(wire, MODERN), "tools/call", tool, answers)
        kinds = {"user_name": "elicitation/create", "greeting": "sampling/createMessage", "client_roots": "roots/list"}
        assert asked(first) == kinds
        assert last["content"][0]["text"] == "Paris Alice 1"


async def test_a_question_that_depends_on_an_answer_is_asked_after_it(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_multi_round"}
        results = await rounds(McpClient(wire, MODERN), "tools/call", tool, {"step1": ALICE}, {"step2": BLUE})
        assert [list(result.get("inputRequests", ())) for result in results] == [["step1"], ["step2"], []]
        assert results[1]["inputRequests"]["step2"]["params"]["message"].endswith("Alice?")
        assert results[0]["requestState"] != results[1]["requestState"]
        assert results[2]["content"][0]["text"] == "Alice likes blue"


async def test_a_prompt_asks_and_does_not_list_what_it_asks_for(serving: Any) -> None:
    async with mcp_client(serving, server, MODERN) as client:
        name = "test_input_required_result_prompt"
        listed = {prompt["name"]: prompt for prompt in (await client.call("prompts/list"))["result"]["prompts"]}
        assert "arguments" not in listed[name]
        answer = {"user_context": {"action": "accept", "content": {"context": "the sea"}}}
        first, last = await rounds(client, "prompts/get", {"name": name}, answer)
        assert asked(first) == {"user_context": "elicitation/create"}
        assert last["messages"][0]["content"]["text"] == "Mind the context: the sea"


async def test_a_resource_asks(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        answer = {"sure": {"action": "accept", "content": {"sure": True}}}
        read = {"uri": "test://asking/all"}
        first, last = await rounds(McpClient(wire, MODERN), "resources/read", read, answer)
        assert first["inputRequests"]["sure"]["params"]["message"] == "Show all?"
        assert last["contents"][0]["text"] == "all True"


async def test_a_client_is_asked_only_for_what_it_is_capable_of(serving: Any) -> None:
    async with mcp_client(serving, server, MODERN) as client:
        tool = {"name": "test_input_required_result_capabilities"}
        sampling, _ = await rounds(client, "tools/call", tool, {"capital": PARIS}, sampling={})
        assert asked(sampling) == {"capital": "sampling/createMessage"}
        (forms,) = await rounds(client, "tools/call", tool, elicitation={"form": {}})
        assert asked(forms) == {"confirm": "elicitation/create"}
        (nothing,) = await rounds(client, "tools/call", tool, elicitation={"url": {}})
        assert nothing["content"][0]["text"] == "None None"


async def test_everything_that_a_client_lacks_is_told_at_once(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_multiple_inputs", **capable(roots={})}
        error = (await McpClient(wire, MODERN).call("tools/call", tool))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}, "sampling": {}}})


# -- what a legacy client is asked ---------------------------------------------------------------------------------


async def test_a_legacy_client_is_asked_for_all_of_it_too(serving: Any) -> None:
    async with mcp_client(serving, server, **ALL) as client:
        call = client.request("tools/call", {"name": "test_input_required_result_multiple_inputs"})
        await client.wire.send(call)
        await reply(client, "elicitation/create", ALICE)
        assert (await reply(client, "sampling/createMessage", PARIS))["maxTokens"] == 50
        await reply(client, "roots/list", ROOTS)
        assert (await client.answer(call))["result"]["content"][0]["text"] == "Paris Alice 1"


async def test_a_legacy_client_is_asked_in_the_order_of_dependence(serving: Any) -> None:
    async with mcp_client(serving, server, **ALL) as client:
        call = client.request("prompts/get", {"name": "test_input_required_result_prompt"})
        await client.wire.send(call)
        await reply(client, "elicitation/create", {"action": "accept", "content": {"context": "x"}})
        assert "result" in await client.answer(call)
        call = client.request("tools/call", {"name": "test_input_required_result_multi_round"})
        await client.wire.send(call)
        await reply(client, "elicitation/create", ALICE)
        assert (await reply(client, "elicitation/create", BLUE))["message"].endswith("Alice?")
        assert (await client.answer(call))["result"]["content"][0]["text"] == "Alice likes blue"


async def test_an_answer_that_fits_no_param_ends_a_legacy_call(serving: Any) -> None:
    async with mcp_client(serving, server, **ALL) as client:
        call = client.request("tools/call", {"name": "test_input_required_result_list_roots"})
        await client.wire.send(call)
        await reply(client, "roots/list", {"roots": "none"})
        assert (await client.answer(call))["result"]["structuredContent"]["code"] == "NO_ANSWER"


# -- answers and states --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [5, {}, {"action": "accept"}, {"action": "accept", "content": {"name": 5}}])
async def test_what_is_no_answer_is_asked_for_again(serving: Any, answer: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_elicitation"}
        results = await rounds(McpClient(wire, MODERN), "tools/call", tool, {"user_name": answer}, {"user_name": ALICE})
        assert asked(results[1]) == {"user_name": "elicitation/create"}
        assert results[2]["content"][0]["text"] == "Hello, Alice!"


async def test_a_user_who_declines_ends_a_modern_call_too(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        client, answer = McpClient(wire, MODERN), {"user_name": {"action": "decline"}}
        tool = {"name": "test_input_required_result_elicitation"}
        _, last = await rounds(client, "tools/call", tool, answer)
        assert (last["isError"], last["structuredContent"]["code"]) == (True, "DECLINED")


async def test_only_what_was_asked_can_be_answered(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_multi_round"}
        _, second = await rounds(McpClient(wire, MODERN), "tools/call", tool, {"step1": ALICE, "step2": BLUE})
        assert asked(second) == {"step2": "elicitation/create"}


async def test_a_state_holds_for_its_own_operation_alone(serving: Any) -> None:
    async with mcp_client(serving, server, MODERN) as client:
        (first,) = await rounds(client, "tools/call", {"name": "test_input_required_result_request_state"})
        other = {"name": "test_input_required_result_tampered_state", "requestState": first["requestState"]}
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        error = (await client.call("tools/call", {**other, "inputResponses": answers}))["error"]
        assert (error["code"], error["data"]["param"]) == (-32602, "requestState")


async def test_answers_that_are_too_long_for_another_round_are_refused(serving: Any) -> None:
    async with mcp_client(serving, server, MODERN) as client:
        tool = {"name": "test_input_required_result_multi_round"}
        (first,) = await rounds(client, "tools/call", tool)
        long = {"action": "accept", "content": {"name": "x" * MAX_STATE_BYTES}}
        more = {"inputResponses": {"step1": long}, "requestState": first["requestState"]}
        result = (await client.call("tools/call", {**tool, **more, **capable(**ALL)}))["result"]
        assert result["structuredContent"]["details"]["param"] == "inputResponses"
