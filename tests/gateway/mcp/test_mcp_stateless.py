"""Basic/transports/streamable-http of 2026-07-28: every request stands alone, and its headers repeat what it says."""

from __future__ import annotations

import base64
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
import pytest

from discreet import Context, Service, mcp
from discreet.gateway.mcp.conversation import SESSION_BYTES
from support.asgi_client import AsgiClient
from support.mcp_http import META, MODERN, McpHttp, begun, budget, events, first, messages
from support.vault import SECRET, digest
from support.waits import until

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio

TOKENS = (f"ada:{digest(SECRET)}", f"bob:{digest('other-token')}")
ADD = {"name": "work_add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture
def ours(client: AsgiClient) -> McpHttp:
    return McpHttp(client, MODERN)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def test_a_request_needs_no_session_and_begins_none(ours: McpHttp) -> None:
    answer = await ours.post("tools/call", ADD, mcp_session_id="of another revision")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.result["structuredContent"] == {"result": 3}
    assert answer.result["resultType"] == "complete"
    assert "mcp-session-id" not in answer.headers
    assert (await ours.post("server/discover")).result["supportedVersions"] == [MODERN]


async def test_there_is_nothing_to_listen_to_and_nothing_to_delete(ours: McpHttp) -> None:
    for answer in (await ours.get(mcp_protocol_version=MODERN), await ours.delete(mcp_protocol_version=MODERN)):
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, 202, None),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600),
        ([], 400, -32600),
        (b"{", 400, -32700),
    ],
)
async def test_a_body_is_one_request_or_notification(
    client: AsgiClient, message: Any, status: int, code: int | None
) -> None:
    answer = await McpHttp(client).send(message, mcp_protocol_version=MODERN)
    assert answer.status == status
    assert answer.body == b"" if code is None else answer.code == code


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tools/unheard-of", {}, 404, -32601),
        ("initialize", {}, 404, -32601),
        ("tools/call", {"name": "nothing"}, 400, -32602),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/clientCapabilities": None}}, 400, -32602),
        ("resources/read", {"uri": "work://none"}, 400, -32602),
    ],
)
async def test_errors_have_statuses(client: AsgiClient, method: str, params: Any, status: int, code: int) -> None:
    answer = await McpHttp(client, MODERN).post(method, params, "a")
    assert (answer.status, answer.code, answer.json["id"]) == (status, code, "a")


async def test_a_request_that_says_nothing_of_itself_is_refused(client: AsgiClient) -> None:
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}
    answer = await McpHttp(client).post("tools/list", {"_meta": {"progressToken": 1}}, **headers)
    assert (answer.status, answer.code) == (400, -32602)


async def test_a_version_that_is_not_supported_is_told_which_is(client: AsgiClient) -> None:
    named = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2999-01-01"}}
    answer = await McpHttp(client, MODERN).post("tools/list", named, mcp_protocol_version="2999-01-01")
    assert (answer.status, answer.code) == (400, -32022)
    assert answer.json["error"]["data"] == {"requested": "2999-01-01", "supported": [MODERN]}


@pytest.mark.parametrize(
    ("headers", "header"),
    [
        ({"mcp_protocol_version": None}, "MCP-Protocol-Version"),
        ({"mcp_protocol_version": "2025-11-25"}, "MCP-Protocol-Version"),
        ({"mcp_method": None}, "Mcp-Method"),
        ({"mcp_method": "tools/list"}, "Mcp-Method"),
        ({"mcp_name": None}, "Mcp-Name"),
        ({"mcp_name": "work_wait"}, "Mcp-Name"),
        ({"mcp_name": encoded("work_wait")}, "Mcp-Name"),
        ({"mcp_name": "=?base64?d29ya19hZGQ?="}, "Mcp-Name"),
        ({"mcp_name": "=?base64?!!!!?="}, "Mcp-Name"),
        ({"mcp_name": "=?BASE64?d29ya19hZGQ=?="}, "Mcp-Name"),
    ],
)
async def test_headers_that_do_not_repeat_the_body_are_refused(
    client: AsgiClient, headers: dict[str, str | None], header: str
) -> None:
    answer = await McpHttp(client, MODERN).post("tools/call", ADD, **headers)
    assert (answer.status, answer.code, answer.json["id"]) == (400, -32020, 1)
    assert answer.json["error"]["data"] == {"header": header}


@pytest.mark.parametrize("name", [encoded("work_add"), "  work_add\t"])
async def test_a_header_may_be_encoded(client: AsgiClient, name: str) -> None:
    assert (await McpHttp(client, MODERN).post("tools/call", ADD, mcp_name=name)).status == 200


@pytest.mark.parametrize(
    ("params", "headers", "status"),
    [
        ({}, {"mcp_method": "tools/list"}, 400),
        ({"_meta": {"io.modelcontextprotocol/protocolVersion": "2999-01-01"}}, {"mcp_protocol_version": "2999-01-01"}, 400),
        ({"_meta": {"io.modelcontextprotocol/clientCapabilities": 1}}, {}, 400),
        ({"_meta": {"io.modelcontextprotocol/logLevel": "loud"}}, {}, 400),
        ({"_meta": {"x": "y" * 70_000}}, {}, 400),
    ],
)  # fmt: skip
async def test_what_is_refused_for_what_it_says_of_itself_costs_no_conversation(
    client: AsgiClient, params: Any, headers: dict[str, str], status: int
) -> None:
    ours = McpHttp(client, MODERN)
    assert (await ours.post("tools/call", ADD | params, **headers)).status == status
    for message in (b"{", b"[]", {"jsonrpc": "2.0", "id": 1, "result": {}}):
        assert (await McpHttp(client).send(message, mcp_protocol_version=MODERN)).status == 400
    unknown = await ours.post("tools/unheard-of"), await ours.post("tools/list", call_id=None)
    assert [answer.status for answer in unknown] == [404, 202]
    assert budget(client).held("sessions") == 0
    assert (await ours.post("tools/call", ADD)).status == 200
    assert budget(client).held("sessions") // SESSION_BYTES == 1


async def test_what_is_beyond_a_limit_costs_no_conversation(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_requests=1, **SERVED) as client:
        ours, memory = McpHttp(client, MODERN), budget(client)
        async with ours.open("tools/call", {"name": "work_wait"}):
            await works.began.wait()
            for _ in range(3):
                assert (await ours.post("tools/call", ADD)).status == 429
            assert memory.held("sessions") // SESSION_BYTES == 1
        await until(lambda: works.done)
        memory.add("replies", memory.limit - memory.used - 1024)
        assert (await ours.post("tools/call", ADD)).status == 429
        memory.add("replies", -memory.held("replies"))
        assert (await ours.post("tools/call", ADD)).status == 200


class Place(msgspec.Struct):
    zone: Annotated[str | None, msgspec.Meta(extra_json_schema={"x-mcp-header": "Zone"})] = None


NOWHERE = Place()


def mirroring() -> Service:
    service = Service("db")

    @service.query
    async def run(
        region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
        level: Annotated[int, msgspec.Meta(extra_json_schema={"x-mcp-header": "Level"})] = 0,
        dry: Annotated[bool, msgspec.Meta(extra_json_schema={"x-mcp-header": "Dry"})] = False,
        place: Place = NOWHERE,
    ) -> str:
        return region

    return service


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"),
    [
        ({"region": "us"}, {"region": "us"}, True),
        ({"region": "Grüße"}, {"region": encoded("Grüße")}, True),
        ({"region": "us"}, {}, False),
        ({"region": "us"}, {"region": "eu"}, False),
        ({"region": "us", "level": 42}, {"region": "us", "level": "42"}, True),
        ({"region": "us", "level": 42}, {"region": "us", "level": "42.0"}, True),
        ({"region": "us", "level": 42}, {"region": "us", "level": "43"}, False),
        ({"region": "us", "level": 42}, {"region": "us", "level": "4_2"}, False),
        ({"region": "us", "level": 42}, {"region": "us"}, False),
        ({"region": "us"}, {"region": "us", "level": "42"}, False),
        ({"region": "us", "dry": True}, {"region": "us", "dry": "true"}, True),
        ({"region": "us", "dry": True}, {"region": "us", "dry": "True"}, False),
        ({"region": "us", "place": {"zone": "a"}}, {"region": "us", "zone": "a"}, True),
        ({"region": "us", "place": {"zone": "a"}}, {"region": "us"}, False),
        ({"region": "us", "place": {"zone": None}}, {"region": "us"}, True),
    ],
)
async def test_arguments_that_a_tool_wants_in_headers_are_compared(
    serve: Serve, arguments: Any, headers: dict[str, str], fits: bool
) -> None:
    async with serve(mirroring(), **SERVED) as client:
        ours = McpHttp(client, MODERN)
        given: dict[str, str | None] = {f"mcp_param_{name}": value for name, value in headers.items()}
        answer = await ours.post("tools/call", {"name": "db_run", "arguments": arguments}, **given)
    assert answer.status == (200 if fits else 400)
    assert fits or answer.code == -32020


# -- streams ---------------------------------------------------------------------------------------------------------


async def test_messages_have_no_ids_and_belong_to_the_request_alone(client: AsgiClient, works: Works) -> None:
    works.going.set()
    params = {"name": "work_steps", "arguments": {"count": 2}, "_meta": {"progressToken": 1}}
    async with McpHttp(client, MODERN).open("tools/call", params, last_event_id="0-0") as reply:
        found = [each async for each in events(reply)]
    assert [number for number, _ in found] == [None] * 3
    assert [message.get("method") for _, message in found] == ["notifications/progress"] * 2 + [None]


async def test_equal_ids_and_tokens_of_two_clients_do_not_meet(ours: McpHttp, works: Works) -> None:
    params = {"name": "work_steps", "arguments": {"count": 3}, "_meta": {"progressToken": "t"}}
    async with ours.open("tools/call", params) as one, ours.open("tools/call", params) as other:
        works.going.set()
        for reply in (one, other):
            progress = [each.get("params", {}).get("progress") for each in await messages(reply)]
            assert progress == [0, 1, 2, None]


async def test_going_away_cancels_the_request(client: AsgiClient, works: Works) -> None:
    async with McpHttp(client, MODERN).open("tools/call", {"name": "work_wait"}) as reply:
        await reply.chunk()
        await works.began.wait()
    await until(lambda: works.done == ["cancelled"])


async def test_nobody_cancels_the_request_of_another(client: AsgiClient, ours: McpHttp, works: Works) -> None:
    async with ours.open("tools/call", {"name": "work_wait"}, 5) as reply:
        await works.began.wait()
        for each in (ours, await begun(client)):
            assert (await each.note("notifications/cancelled", {"requestId": 5})).status == 202
        works.going.set()
        assert [message["id"] for message in await messages(reply)] == [5]


async def test_changes_come_on_the_stream_of_the_request_that_listens(client: AsgiClient) -> None:
    ours, legacy = McpHttp(client, MODERN), await begun(client)
    wanted = {"notifications": {"resourceSubscriptions": ["work://one"]}}
    async with (
        ours.open("subscriptions/listen", wanted, "a") as one,
        ours.open("subscriptions/listen", wanted, "a") as other,
        ours.open("subscriptions/listen", {"notifications": {}}, "b") as deaf,
    ):
        for reply in (one, other, deaf):
            [(_, told)] = await first(reply)
            assert told["method"] == "notifications/subscriptions/acknowledged"
        for each in (ours, legacy):
            assert (await each.call("work_touch")).status == 200
            for reply in (one, other):
                [(number, told)] = await first(reply)
                assert (number, told["method"]) == (None, "notifications/resources/updated")
                assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "a"}
        assert await deaf.chunk() == b": keep-alive\n\n"


async def test_a_conversation_is_lent_again_only_when_nothing_of_it_goes_on(ours: McpHttp) -> None:
    for _ in range(3):
        async with ours.open("subscriptions/listen", {"notifications": {}}, "a") as reply:
            await first(reply)
    async with ours.open("subscriptions/listen", {"notifications": {}}, "a") as reply:
        assert [told["method"] for _, told in await first(reply)] == ["notifications/subscriptions/acknowledged"]


# -- questions -------------------------------------------------------------------------------------------------------


def asking() -> Service:
    service = Service("ask")

    @service.mutation
    async def erase(ctx: Context, sure: Annotated[bool, mcp.Ask("Sure?")]) -> str:
        return f"{sure} {ctx.identity.subject if ctx.identity else None}"

    return service


async def test_an_answer_comes_with_the_next_request_of_the_same_caller_alone(serve: Serve) -> None:
    async with serve(asking(), tokens=TOKENS, **SERVED) as client:
        ada = McpHttp(client, MODERN, authorization=f"Bearer {SECRET}")
        bob = McpHttp(client, MODERN, authorization="Bearer other-token")
        asked = (await ada.post("tools/call", {"name": "ask_erase"})).result
        assert asked["resultType"] == "input_required"
        answers = {"sure": {"action": "accept", "content": {"sure": True}}}
        again = {"name": "ask_erase", "requestState": asked["requestState"], "inputResponses": answers}
        stolen = await bob.post("tools/call", again)
        assert (stolen.status, stolen.code) == (400, -32602)
        told = (await ada.post("tools/call", again, 2)).result
    assert told["structuredContent"] == {"result": "True ada"}


async def test_what_a_question_needs_and_the_client_lacks_is_a_bad_request(serve: Serve) -> None:
    async with serve(asking(), **SERVED) as client:
        meta = META | {"io.modelcontextprotocol/clientCapabilities": {}}
        answer = await McpHttp(client, MODERN).post("tools/call", {"name": "ask_erase", "_meta": meta})
    assert (answer.status, answer.code) == (400, -32021)


async def test_a_notification_of_no_revision_means_nothing(client: AsgiClient) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    answer = await McpHttp(client).send(message, mcp_protocol_version=MODERN)
    assert (answer.status, answer.body, budget(client).held("sessions")) == (202, b"", 0)


# -- tasks -----------------------------------------------------------------------------------------------------------

TASKS = {
    "_meta": {
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        }
    }
}


def booking() -> Service:
    service = Service("")

    @service.mutation(task="required")
    async def book(ctx: Context) -> str:
        answer = await ctx.request("elicitation/create", {"message": "Who?", "requestedSchema": {}}, timeout=60)
        return f"{answer['action']} {ctx.identity.subject if ctx.identity else None}"

    return service


async def test_a_task_is_its_callers_alone_and_its_states_come_on_the_stream(serve: Serve) -> None:
    async with serve(booking(), tokens=TOKENS, **SERVED) as client:
        ada = McpHttp(client, MODERN, authorization=f"Bearer {SECRET}")
        bob = McpHttp(client, MODERN, authorization="Bearer other-token")
        task = (await ada.post("tools/call", {"name": "book", **TASKS})).result["taskId"]
        wanted = {"notifications": {"taskIds": [task]}, **TASKS}
        async with bob.open("subscriptions/listen", wanted, "b") as reply:
            [(_, agreed)] = await first(reply)
            assert agreed["params"]["notifications"] == {"taskIds": []}
        async with ada.open("subscriptions/listen", wanted, "a") as reply, aclosing(events(reply)) as coming:
            statuses: list[str] = []
            async for _, told in coming:
                if told is None:
                    continue
                if told["method"] == "notifications/subscriptions/acknowledged":
                    assert told["params"]["notifications"] == {"taskIds": [task]}
                    continue
                statuses.append(told["params"]["status"])
                if statuses[-1] == "input_required":
                    [key] = told["params"]["inputRequests"]
                    answers = {"taskId": task, "inputResponses": {key: {"action": "decline"}}, **TASKS}
                    assert (await bob.post("tasks/update", answers, mcp_name=task)).code == -32602
                    assert (await ada.post("tasks/update", answers, mcp_name=task)).result["resultType"] == "complete"
                elif statuses[-1] == "completed":
                    assert told["params"]["result"]["structuredContent"] == {"result": "decline ada"}
                    break
            assert "input_required" in statuses
