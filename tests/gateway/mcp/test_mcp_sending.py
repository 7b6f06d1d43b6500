"""Basic/transports of 2025-11-25, section Sending Messages to the Server."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.asgi_client import AsgiClient
from support.mcp_http import McpHttp, begun, events, first, messages
from support.waits import until

from ..conftest import Serve
from .conftest import Works

pytestmark = pytest.mark.anyio


def progress(number: int, count: int) -> dict[str, Any]:
    params = {"progressToken": "t", "progress": number, "total": count}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def steps(count: int) -> dict[str, Any]:
    return {"name": "work_steps", "arguments": {"count": count}, "_meta": {"progressToken": "t"}}


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("text/event-stream;q=0.5 ,  APPLICATION/JSON", 200),
        ("application/*, text/*", 200),
        (None, 200),
        ("application/json", 406),
        ("text/event-stream", 406),
    ],
)
async def test_a_client_must_take_both_kinds_of_answers(ours: McpHttp, accept: str | None, status: int) -> None:
    assert (await ours.post("ping", accept=accept)).status == status


@pytest.mark.parametrize("method", ["PUT", "HEAD", "PATCH", "OPTIONS"])
async def test_other_methods_are_told_which_there_are(client: AsgiClient, method: str) -> None:
    status, headers, body = await client.request(method, "/mcp")
    assert (status, headers["allow"], body) == (405, "GET, POST, DELETE", b"")


async def test_nothing_is_there_beside_the_endpoint_and_nothing_at_all_without_the_setting(
    client: AsgiClient, serve: Serve, works: Works
) -> None:
    assert (await client.request("POST", "/mcp/more"))[0] == 404
    assert (await client.request("GET", "/mcp/more"))[0] == 404
    assert (await client.request("GET", "/.well-known/agent-card.json"))[0] == 200
    async with serve(works.service) as without:
        assert (await McpHttp(without).begin()).status == 404
        assert (await without.request("GET", "/.well-known/oauth-protected-resource"))[0] == 404


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}},
    ],
)
async def test_notifications_and_responses_are_accepted_without_a_body(client: AsgiClient, message: Any) -> None:
    answer = await (await begun(client)).send(message)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"null", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","method":"notifications/initialized","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    ],
)
async def test_what_is_no_message_is_a_bad_request_and_the_session_goes_on(
    ours: McpHttp, body: bytes, code: int
) -> None:
    answer = await ours.send(body)
    assert (answer.status, answer.code, "id" in answer.json) == (400, code, False)
    assert (await ours.post("ping")).result == {}


async def test_a_request_that_needs_no_stream_is_answered_with_one_json_object(ours: McpHttp) -> None:
    answer = await ours.call("work_add", a=1, b=2)
    unknown = await ours.post("tools/unheard-of")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.result["structuredContent"] == {"result": 3}
    assert (unknown.status, unknown.code) == (200, -32601)


@pytest.mark.parametrize(("revision", "primed"), [("2025-11-25", True), ("2025-06-18", False), ("2025-03-26", False)])
async def test_what_is_told_before_the_answer_comes_on_its_stream(
    client: AsgiClient, works: Works, revision: str, primed: bool
) -> None:
    works.going.set()
    ours = await begun(client, revision)
    async with ours.open("tools/call", steps(2)) as reply:
        found = [each async for each in events(reply)]
    assert reply.status == 200
    assert reply.headers["x-accel-buffering"] == "no"
    assert (found[0][1] is None) == primed
    told = [message for _, message in found[primed:]]
    assert told[:2] == [progress(0, 2), progress(1, 2)]
    assert (told[2]["id"], len(told)) == (1, 3)
    assert len({number for number, _ in found} - {None}) == len(found)


async def test_a_request_that_takes_long_becomes_a_stream_although_nothing_is_told(ours: McpHttp, works: Works) -> None:
    async with ours.open("tools/call", {"name": "work_wait"}) as reply:
        assert b"data: \n" in await reply.chunk()
        assert await reply.chunk() == b": keep-alive\n\n"
        works.going.set()
        assert (await messages(reply))[0]["result"]["content"][0]["text"] == "waited"


async def test_requests_of_one_session_run_side_by_side(ours: McpHttp, works: Works) -> None:
    async with (
        ours.open("tools/call", {"name": "work_wait"}, 1) as slow,
        ours.open("tools/call", steps(1), 2) as told,
    ):
        assert (await ours.call("work_add", 3, a=1, b=1)).json["id"] == 3
        works.going.set()
        assert [each["id"] for each in await messages(slow)] == [1]
        assert [each.get("id") for each in await messages(told)] == [None, 2]


async def test_a_disconnection_is_no_cancellation(ours: McpHttp, works: Works) -> None:
    async with ours.open("tools/call", {"name": "work_wait"}) as reply:
        await reply.chunk()
        await works.began.wait()
    assert (await ours.post("ping", call_id=2)).status == 200
    works.going.set()
    await until(lambda: works.done == ["waited"])


async def test_a_cancelled_request_is_not_answered_and_its_stream_ends(ours: McpHttp, works: Works) -> None:
    async with ours.open("tools/call", {"name": "work_wait"}, "a") as reply:
        await reply.chunk()
        assert (await ours.note("notifications/cancelled", {"requestId": "a"})).status == 202
        assert await messages(reply) == []
    assert works.done == ["cancelled"]
    assert (await ours.call("work_add", "a", a=1, b=1)).status == 200


async def test_a_request_that_is_cancelled_at_once_has_an_empty_stream(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_mcp=True) as client, anyio.create_task_group() as tasks:
        ours = await begun(client)

        async def cancel() -> None:
            await works.began.wait()
            await ours.note("notifications/cancelled", {"requestId": 1})

        tasks.start_soon(cancel)
        answer = await ours.call("work_wait")
    assert (answer.status, answer.headers["content-type"], answer.body) == (
        200,
        "text/event-stream; charset=utf-8",
        b"",
    )


async def test_the_server_asks_on_the_stream_and_an_answer_counts_in_its_own_session_alone(client: AsgiClient) -> None:
    ours, others = await begun(client, roots={}), await begun(client, roots={})
    async with ours.open("tools/call", {"name": "work_ask"}) as reply:
        [(_, asked)] = await first(reply)
        assert asked["method"] == "roots/list"
        assert (await others.reply(asked["id"], {"roots": "wrong"})).status == 202
        assert (await ours.reply(asked["id"], {"roots": []})).status == 202
        assert (await messages(reply))[0]["result"]["structuredContent"] == {"roots": []}


def ping(call_id: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": "ping", "params": {}}


async def test_a_batch_of_2025_03_26_is_answered_message_by_message(client: AsgiClient, works: Works) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    ours = await begun(client, "2025-03-26")
    answer = await ours.send([ping(1), note, ping("b"), 7, ping(1)])
    assert [each.get("id") for each in answer.json] == [1, "b", None, 1]
    assert [each["id"] for each in (await ours.send([ping(1)])).json] == [1]
    assert (await ours.send([note, note])).status == 202
    assert (await ours.send([reply, reply])).status == 202
    works.going.set()
    told = ours.message("tools/call", steps(1), 2)
    async with ours.open_body([ping(1), told]) as stream:
        assert [each.get("id") for each in await messages(stream)] == [1, None, 2]
    assert (await ours.send([])).status == 400


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_no_other_revision_has_batches(client: AsgiClient, revision: str) -> None:
    answer = await (await begun(client, revision)).send([ping(1)])
    assert (answer.status, answer.code) == (400, -32600)


async def test_events_of_a_subscription_wait_for_their_reader(ours: McpHttp, works: Works) -> None:
    params = {"name": "work_count", "arguments": {"to": 200}, "_meta": {"progressToken": "t"}}
    async with ours.open("tools/call", params) as reply:
        reply.stalls = True
        await until(lambda: len(works.done) >= 32)
        assert (await ours.post("ping", call_id=2)).status == 200
        assert len(works.done) < 200
    async with ours.listen(last_event_id="3-0") as rest:  # the fourth stream, behind those of the handshake
        found = await messages(rest)
    assert [each["params"]["progress"] for each in found[:-1]] == list(range(1, 201))
    assert len(found[-1]["result"]["structuredContent"]["result"]) == 200
