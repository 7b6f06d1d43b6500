"""What the server chooses to ask: of the user, of the model, of the client; at once or in rounds; for tools, prompts, resources."""

from typing import Annotated, Any

import anyio
import msgspec
import pytest

from discreet import Context, DeclarationError, OperationError, Service, mcp
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from discreet.dialects.mcp.asking import Pending, answers_of
from discreet.dialects.mcp.questions import Questions
from discreet.dialects.mcp.revision import ProtocolRevision
from discreet.dialects.mcp.seal import MAX_STATE_BYTES, State
from support.mcp_everything import server
from support.mcp_wire import MCP, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
PARIS = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}


def capable(**capabilities: Any) -> dict[str, Any]:
    return {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}


async def rounds(
    client: McpClient, method: str, params: dict[str, Any], *answers: dict[str, Any], **capabilities: Any
) -> list[dict[str, Any]]:
    """The results of a call and of those that bring answers, each with the state of the one before."""
    call = params | capable(**(capabilities or ALL))
    results = [(await client.call(method, call))["result"]]
    for responses in answers:
        assert results[-1]["resultType"] == "input_required"
        more = {"inputResponses": responses, "requestState": results[-1]["requestState"]}
        results.append((await client.call(method, {**call, **more}))["result"])
    return results


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


async def test_what_does_not_depend_on_each_other_is_asked_at_once(serving: Any) -> None:
    async with serving(server, **MCP) as wire:
        tool = {"name": "test_input_required_result_multiple_inputs"}
        answers = {"user_name": ALICE, "greeting": PARIS, "client_roots": ROOTS}
        first, last = await rounds(McpClient(wire, MODERN), "tools/call", tool, answers)
        kinds = {"user_name": "elicitation/create", "greeting": "sampling/createMessage", "client_roots": "roots/list"}
        assert asked(first) == kinds
        assert first["inputRequests"]["client_roots"] == {"method": "roots/list", "params": {}}
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


async def test_an_answer_that_fits_no_param_ends_a_legacy_call(serving: Any) -> None:
    async with mcp_client(serving, server, **ALL) as client:
        call = client.request("tools/call", {"name": "test_input_required_result_list_roots"})
        await client.wire.send(call)
        await reply(client, "roots/list", {"roots": "none"})
        assert (await client.answer(call))["result"]["structuredContent"]["code"] == "NO_ANSWER"


# -- pages that the user opens -------------------------------------------------------------------------------------


def page(user: str) -> str | None:
    return None if user == "known" else f"https://login.example/{user}"


def signing_in() -> Service:
    service = Service("")

    @service.query
    async def mail(user: str, consent: Annotated[bool, mcp.AskUrl(page, "Sign in to read your mail.")] = False) -> str:
        return f"{user} {consent}"

    @service.query
    async def pay(done: Annotated[bool, mcp.AskUrl("https://pay.example", "Pay.")]) -> bool:
        return done

    return service


AGREED: dict[str, Any] = {"action": "accept"}
URL: dict[str, Any] = {"elicitation": {"url": {}}}


async def test_a_modern_client_is_asked_to_open_a_page_and_answers_without_content(serving: Any) -> None:
    async with serving(signing_in(), **MCP) as wire:
        call = {"name": "mail", "arguments": {"user": "ann"}}
        client = McpClient(wire, MODERN)
        first, last = await rounds(client, "tools/call", call, {"consent": AGREED}, **URL)
        params = {"mode": "url", "message": "Sign in to read your mail.", "url": "https://login.example/ann"}
        assert first["inputRequests"] == {"consent": {"method": "elicitation/create", "params": params}}
        assert last["structuredContent"] == {"result": "ann True"}
        _, declined = await rounds(client, "tools/call", call, {"consent": {"action": "cancel"}}, **URL)
        assert declined["structuredContent"]["code"] == "DECLINED"
        call["arguments"] = {"user": "known"}
        (known,) = await rounds(client, "tools/call", call, **URL)
        assert known["structuredContent"] == {"result": "known False"}


async def test_a_legacy_client_is_asked_to_open_a_page_by_an_id_of_its_own(serving: Any) -> None:
    async with mcp_client(serving, signing_in(), **URL) as client:
        ids = set()
        for _ in range(2):
            call = client.request("tools/call", {"name": "pay", "arguments": {}})
            await client.wire.send(call)
            params = await reply(client, "elicitation/create", AGREED)
            assert (params["mode"], params["url"]) == ("url", "https://pay.example")
            ids.add(params["elicitationId"])
            assert (await client.answer(call))["result"]["structuredContent"] == {"result": True}
        assert len(ids) == 2


@pytest.mark.parametrize("capability", [{}, {"form": {}}, None])
async def test_who_opens_no_pages_is_not_asked_to(serving: Any, capability: Any) -> None:
    capabilities = {} if capability is None else {"elicitation": capability}
    async with serving(signing_in(), **MCP) as wire:
        client = McpClient(wire, MODERN)
        call = {"name": "mail", "arguments": {"user": "ann"}, **capable(**capabilities)}
        assert (await client.call("tools/call", call))["result"]["structuredContent"] == {"result": "ann False"}
        error = (await client.call("tools/call", {"name": "pay", **capable(**capabilities)}))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"url": {}}}})


@pytest.mark.parametrize(
    "url", ["http://login.example", "javascript:alert(1)", "login.example", "https://", "https://[", ""]
)
async def test_only_safe_pages_are_opened(serving: Any, url: str) -> None:
    service = Service("")

    async def mail(consent: Annotated[bool, mcp.AskUrl(lambda: url, "Sign in.")]) -> bool:
        return consent

    service.query(mail)
    async with serving(service, **MCP) as wire:
        (crashed,) = await rounds(McpClient(wire, MODERN), "tools/call", {"name": "mail"}, **URL)
        assert crashed["structuredContent"]["code"] == "INTERNAL"


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


# -- Functions that decide what a client is asked, and what they may be declared with --


class NoSuchFile(OperationError, code="NO_SUCH_FILE"):
    """There is no such file."""


class Files:
    """A service that asks only before it overwrites something. `begun` are the calls whose handler has begun."""

    def __init__(self) -> None:
        self.service = Service("files", uses=["files/exists"])
        self.begun: list[tuple[str, bool]] = []

        async def overwrite(ctx: Context, path: str, lines: list[int]) -> str | None:
            if path == "none":
                raise NoSuchFile
            found = await ctx.call("files/exists", {"path": path}, type=bool)
            return f"Overwrite {path} with {len(lines)} lines?" if found else None

        @self.service.query
        async def exists(path: str) -> bool:
            return path.startswith("old")

        @self.service.mutation(errors=[NoSuchFile], limit=1)
        async def write(
            ctx: Context,
            path: str,
            sure: Annotated[bool, mcp.Ask(overwrite)] = True,
            lines: list[int] = [1, 2],  # noqa: B006 - a default that must be copied
        ) -> str:
            self.begun.append((path, sure))
            await ctx.log("info", "begun")
            return f"{path} {sure} {lines}"


async def test_a_function_that_returns_none_asks_nothing_and_its_declared_error_is_the_tools(serving: Any) -> None:
    files = Files()
    async with mcp_client(serving, files.service, MODERN) as client:
        result = await client.tool("files_write", {"path": "new"})
        assert result["structuredContent"] == {"result": "new True [1, 2]"}
        assert client.notes == []
        result = await client.tool("files_write", {"path": "none"})
        assert (result["isError"], result["structuredContent"]["code"]) == (True, "NO_SUCH_FILE")


async def test_a_function_sees_the_arguments_as_the_handler_does(serving: Any) -> None:
    files = Files()
    async with serving(files.service, **MCP) as wire:
        no = {"sure": {"action": "accept", "content": {"sure": False}}}
        tool = {"name": "files_write", "arguments": {"path": "old", "lines": "[1]"}}
        first, last = await rounds(McpClient(wire, MODERN), "tools/call", tool, no)
        assert first["inputRequests"]["sure"]["params"]["message"] == "Overwrite old with 1 lines?"
        assert last["structuredContent"] == {"result": "old False [1]"}
        assert files.begun == [("old", False)]


async def test_a_call_that_waits_for_an_answer_does_not_count_towards_the_limit(serving: Any) -> None:
    async with mcp_client(serving, Files().service, elicitation={}) as client:
        waiting = client.request("tools/call", {"name": "files_write", "arguments": {"path": "old"}})
        await client.wire.send(waiting)
        request = await client.receive()
        other = await client.tool("files_write", {"path": "new"})
        assert other["structuredContent"] == {"result": "new True [1, 2]"}
        result = {"action": "accept", "content": {"sure": True}}
        await client.wire.send({"jsonrpc": "2.0", "id": request["id"], "result": result})
        answer = (await client.answer(waiting))["result"]
        assert answer["structuredContent"] == {"result": "old True [1, 2]"}


async def test_a_call_whose_answer_came_is_refused_while_the_limit_is_reached(serving: Any) -> None:
    service = Service("s")
    running = anyio.Event()

    @service.mutation(limit=1)
    async def work(wait: bool, sure: Annotated[bool, mcp.Ask(lambda wait: None if wait else "Sure?")] = True) -> bool:
        if wait:
            running.set()
            await anyio.sleep_forever()
        return sure

    async with mcp_client(serving, service, elicitation={}) as client:
        call = client.request("tools/call", {"name": "s_work", "arguments": {"wait": False}})
        await client.wire.send(call)
        request = await client.receive()
        await client.wire.send(client.request("tools/call", {"name": "s_work", "arguments": {"wait": True}}))
        await running.wait()
        result = {"action": "accept", "content": {"sure": True}}
        await client.wire.send({"jsonrpc": "2.0", "id": request["id"], "result": result})
        assert (await client.answer(call))["result"]["structuredContent"]["code"] == "OVERLOADED"


@pytest.mark.parametrize("text", [None, 5, ["x"]])
async def test_a_function_that_returns_no_question_is_a_fault_of_the_author(
    serving: Any, logged: Any, text: Any
) -> None:
    service = Service("s")

    @service.query
    async def ask(name: Annotated[str, mcp.Sample(lambda: text)], sure: Annotated[bool, mcp.Ask(lambda: text)]) -> str:
        return f"{name} {sure}"

    async with serving(service, **MCP) as wire:
        result = await McpClient(wire, MODERN).tool("s_ask", **capable(**ALL))
        assert (result["isError"], result["structuredContent"]["code"]) == (True, "INTERNAL")
        assert "handler.failed" in dict(logged())


async def test_messages_may_be_given_and_taken_whole(serving: Any) -> None:
    service = Service("s")

    def messages(topic: str) -> list[mcp.SamplingMessage]:
        return [mcp.SamplingMessage(role="user", content=mcp.TextContent(text=topic))] * 2

    @service.query
    async def write(
        topic: str, written: Annotated[mcp.CreateMessageResult, mcp.Sample(messages, system_prompt="Be brief.")]
    ) -> str:
        return f"{written.model}: {written.role}"

    async with serving(service, **MCP) as wire:
        tool = {"name": "s_write", "arguments": {"topic": "sea"}}
        first, last = await rounds(McpClient(wire, MODERN), "tools/call", tool, {"written": PARIS})
        params = first["inputRequests"]["written"]["params"]
        assert [message["content"]["text"] for message in params["messages"]] == ["sea", "sea"]
        assert params["systemPrompt"] == "Be brief."
        assert last["structuredContent"] == {"result": "m: assistant"}


async def test_answers_of_the_program_before_a_reload_count_where_they_still_fit() -> None:
    questions = Questions(declared(mcp.Ask("Which?"), int).operations[0])
    protocol, arguments = ProtocolRevision(MODERN), msgspec.Raw(b'{"given":1}')
    for values in ({"value": 5}, {"value": "five"}, {"other": 5}):
        pending = Pending(arguments, "arguments", protocol, State(values), {})
        assert answers_of(questions, pending) == (values if values == {"value": 5} else {})


# -- params that the user is asked for before a tool runs --

ORDER = {"name": "shop_order", "arguments": {"name": "pen"}}
YES = {"action": "accept", "content": {"sure": "yes"}}
HOME = {"action": "accept", "content": {"street": "Elm", "number": 4}}


async def test_a_legacy_client_is_asked_before_the_tool_runs(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        sure = await reply(client, "elicitation/create", YES)
        assert sure["message"] == "Really?"
        properties = {"sure": {"type": "string", "enum": ["no", "yes"]}}
        assert sure["requestedSchema"] == {"type": "object", "properties": properties, "required": ["sure"]}
        address = await reply(client, "elicitation/create", HOME)
        assert address["requestedSchema"]["required"] == ["street"]
        result = (await client.answer(call))["result"]
        assert result["structuredContent"] == {"result": "pen yes Elm 4"}


async def test_a_client_that_fails_to_ask_ends_the_call(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, elicitation={}) as client:
        call = client.request("tools/call", ORDER)
        await client.wire.send(call)
        asked = await client.receive()
        await client.wire.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
        result = (await client.answer(call))["result"]
        assert result["structuredContent"]["code"] == "NO_ANSWER"
        assert "for sure" in result["content"][0]["text"]


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


# -- declarations --


def declared(mark: Any, hint: Any = str) -> Service:
    service = Service("s")

    @service.query
    async def ask(given: int, value: Annotated[hint, mark]) -> str:  # type: ignore[valid-type]
        return f"{value}"

    return service


def whole() -> Service:
    service = Service("s")
    params = msgspec.defstruct("Params", [("sure", Annotated[bool, mcp.Ask("Sure?")])])

    @service.query
    async def ask(given: params, /) -> int:  # type: ignore[valid-type]
        return 1

    return service


@pytest.mark.parametrize(
    ("service", "why"),
    [
        (declared(mcp.Ask(5)), "must be a text, or a function"),  # type: ignore[arg-type]
        (declared(mcp.Ask(lambda other: other)), "its function takes other"),
        (declared(mcp.Ask(lambda value: value)), "its function takes value"),
        (declared(mcp.Ask(lambda given, /: given)), "its function takes given"),
        (declared(mcp.Sample("x", max_tokens=0)), "max_tokens must be"),
        (declared(mcp.Sample("x"), int), "its type must be str or mcp.CreateMessageResult"),
        (declared(mcp.AskUrl("http://login.example", "Sign in."), bool), "url must begin with https://"),
        (declared(mcp.AskUrl("https://login.example", "Sign in.")), "its type must be bool"),
        (declared(mcp.AskUrl(lambda other: other, "Sign in."), bool), "its function takes other"),
        (declared(mcp.Roots()), r"its type must be list\[mcp.Root\]"),
        (declared(mcp.Ask("Which?"), list[int]), r"can't be asked for param value.*\(test_mcp_questions.py:\d+\)$"),
        (whole(), "takes named params alone"),
    ],
)
async def test_what_can_not_be_asked_fails_at_the_start(serving: Any, service: Service, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        async with serving(service, **MCP):
            pass


def test_a_question_that_is_not_written_as_one_fails_at_the_start() -> None:
    def without_text(sure: Annotated[bool, mcp.Ask]) -> None: ...
    def as_default(sure: bool = mcp.Ask("Sure?")) -> None: ...  # type: ignore[assignment] # the mistake

    def not_called(folders: Annotated[list[mcp.Root], mcp.Roots]) -> None: ...

    for handler in (without_text, as_default, not_called):
        with pytest.raises(DeclarationError, match=r"mcp\.Ask\(\"Really\?\"\)"):
            Service("shop").mutation(handler)
