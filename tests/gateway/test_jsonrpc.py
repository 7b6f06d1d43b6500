"""JSON-RPC of A2A on POST /: one answer to every request, and nothing but A2A. The names of tests of its section 9 begin with it."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import anyio
import msgspec
import pytest

from discreet.a2a.types import TaskState, new_id
from discreet.agents.executor import RequestContext, TaskEvents
from support.asgi_client import JSON, AsgiClient
from support.works import UNKNOWN, replying, v1

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

V1 = {"a2a_version": "1.0"}


def hello(text: str = "hello", **more: object) -> dict[str, Any]:
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def hello_03(text: str = "hello") -> dict[str, object]:
    return {
        "message": {"kind": "message", "messageId": new_id(), "role": "user", "parts": [{"kind": "text", "text": text}]}
    }


async def test_a_request_without_an_id_is_answered_with_id_null(client: AsgiClient) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "tasks/get", "params": {"id": "no"}}).encode()
    status, _, answer = await client.request("POST", "/", body, JSON)
    assert (status, json.loads(answer)["id"], json.loads(answer)["error"]["code"]) == (200, None, -32001)


async def test_nothing_but_a2a_is_a_method(client: AsgiClient) -> None:
    methods = "shutdown exit setLogLevel initialize initialized $/cancelRequest $/setTrace services/list services/call"
    methods += " services/subscribe services/metrics rpc.discover version listMethods tools/list session/new fs/read"
    for method in (*methods.split(), "textDocument/hover", "/SendMessage/"):
        assert (await client.call(method))["error"]["code"] == -32601, method
    assert "result" in await client.call("SendMessage", hello(), **V1)


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b'[{"jsonrpc":"2.0","id":1,"method":"tasks/get"}]', -32600, "batch-not-supported"),
        (b'{"jsonrpc":"1.0","id":1,"method":"tasks/get"}', -32600, "malformed-envelope"),
        (b'{"jsonrpc":"2.0","id":[],"method":"tasks/get"}', -32600, "invalid-id-type"),
        (b'{"jsonrpc":"2.0","id":1,"result":1}', -32600, "malformed-envelope"),
        (b'{"jsonrpc":"2.0","method":1}', -32600, "malformed-envelope"),
        (b'{"jsonrpc":"2.0","method":"tasks/get","params":1}', -32600, "malformed-envelope"),
        (b"7", -32600, "malformed-envelope"),
    ],
)
async def test_what_is_no_request_is_told_so(client: AsgiClient, body: bytes, code: int, reason: str) -> None:
    status, _, answer = await client.request("POST", "/", body, JSON)
    error = json.loads(answer)["error"]
    assert (status, error["code"]) == (200, code)
    assert reason in json.dumps(error["data"])


@pytest.mark.parametrize(
    ("headers", "refused"), [({}, False), ({"a2a_version": "0.3"}, False), ({"a2a_version": "1.0"}, True)]
)
async def test_a_request_that_names_no_version_means_0_3(
    client: AsgiClient, headers: dict[str, str], refused: bool
) -> None:
    answer = await client.call("message/send", hello_03(), **headers)
    assert answer.get("error", {}).get("code") == (-32009 if refused else None)


async def test_service_params_come_from_headers_alone(serve: Serve) -> None:
    seen: list[dict[str, str]] = []

    async def look(context: RequestContext, events: TaskEvents) -> None:
        seen.append(dict(context.service_params))
        await events.complete("ok")

    async with serve(agent_of(look)) as client:
        body = {
            "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": hello(),
            "serviceParams": {"authorization": "Bearer evil", "a2a-version": "9.9"},
        }  # fmt: skip
        headers = {**JSON, "a2a-version": "1.0", "traceparent": "00-1", "x-other": "no", "x-a2a-extensions": "urn:x"}
        await client.request("POST", "/", json.dumps(body).encode(), headers)
    assert seen == [{"a2a-version": "1.0", "traceparent": "00-1", "a2a-extensions": "urn:x"}]


async def test_a_client_that_disconnects_ends_its_waiting_and_not_the_task(serve: Serve) -> None:
    going, begun = anyio.Event(), anyio.Event()

    async def wait(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        begun.set()
        await going.wait()
        await events.complete("done")

    async with serve(agent_of(wait)) as client:
        sending = client.stream("SendStreamingMessage", hello(), **V1)
        async with sending as reply, aclosing(reply.events()) as events:
            task_id = (await anext(events))[1]["result"]["task"]["id"]
            await begun.wait()
        async with client.stream("SubscribeToTask", {"id": task_id}, **V1) as reply:
            going.set()
            *_, last = [event["result"] async for _, event in reply.events()]
        assert last["statusUpdate"]["status"]["state"] == TaskState.COMPLETED.value


async def test_a_client_that_has_lost_the_answer_sends_its_message_again_and_gets_the_task(serve: Serve) -> None:
    going, begun, executed = anyio.Event(), anyio.Event(), []

    async def wait(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        begun.set()
        await going.wait()
        await events.complete("done")

    said = hello()
    rest = json.dumps(said).encode()
    async with serve(agent_of(wait)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.call("SendMessage", said, **V1))
            await begun.wait()
            tasks.cancel_scope.cancel()  # the connection breaks
        going.set()
        task = (await client.call("SendMessage", said, **V1))["result"]["task"]
        assert task["status"]["state"] == TaskState.COMPLETED.value
        _, _, answer = await client.request("POST", "/message:send", rest, {**JSON, "a2a-version": "1.0"})
        assert json.loads(answer)["task"] == task
        other = {**said, "message": {**said["message"], "parts": [{"text": "other"}]}}
        status, _, _ = await client.request(
            "POST", "/message:send", json.dumps(other).encode(), {**JSON, "a2a-version": "1.0"}
        )
        assert status == 400
    assert executed == ["hello"]


async def test_one_caller_may_have_so_many_requests_in_flight(serve: Serve) -> None:
    begun, going = anyio.Event(), anyio.Event()

    async def wait(context: RequestContext, events: TaskEvents) -> None:
        begun.set()
        await going.wait()
        await events.complete("done")

    async with serve(agent_of(wait), http_max_requests=1) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.call("SendMessage", hello(), **V1))
        await begun.wait()
        async with client.stream("GetTask", {"id": "no"}, **V1) as reply:
            assert (reply.status, reply.headers["retry-after"]) == (429, "1")
            assert "OVERLOADED" in json.dumps((await reply.json())["error"])
        other = type(client)(client._app, client="127.0.0.2")
        assert (await other.call("GetTask", {"id": "no"}, **V1))["error"]["code"] == -32001
        going.set()


# -- section 9 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call_id", [1, "unique-request-id", 1.5, 9007199254740993, None])
async def test_9_3_an_answer_has_the_form_of_json_rpc(client: AsgiClient, call_id: object) -> None:
    said = await client.call("ListTasks", call_id=call_id, a2a_version="1.0")
    assert (said.pop("jsonrpc"), said.pop("id"), [*said]) == ("2.0", call_id, ["result"])
    said = await client.call("GetTask", {"id": UNKNOWN}, call_id=call_id, a2a_version="1.0")
    assert (said.pop("jsonrpc"), said.pop("id"), [*said]) == ("2.0", call_id, ["error"])


async def test_9_4_2_each_event_is_a_response_to_the_request(serve: Serve) -> None:
    options = {"call_id": "s", "a2a_version": "1.0"}
    async with serve(replying()) as client, client.stream("SendStreamingMessage", v1("work end"), **options) as reply:
        events = [data async for _, data in reply.events()]
    assert [(each["jsonrpc"], each["id"]) for each in events] == [("2.0", "s")] * 3
    assert [next(iter(each["result"])) for each in events] == ["task", "statusUpdate", "statusUpdate"]


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b"{", -32700, "PARSE_ERROR"),
        (b"[]", -32600, "INVALID_REQUEST"),
        (b'{"jsonrpc":"2.0","id":1,"method":"Unknown"}', -32601, "METHOD_NOT_FOUND"),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}', -32602, "INVALID_PARAMS"),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}', -32001, "TASK_NOT_FOUND"),
    ],
)
async def test_9_5_the_data_of_every_error_is_a_list_of_typed_objects(
    client: AsgiClient, body: bytes, code: int, reason: str
) -> None:
    _, _, answer = await client.request("POST", "/", body, {**JSON, "a2a-version": "1.0"})
    error = msgspec.json.decode(answer)["error"]
    assert error["code"] == code
    assert error["message"]
    assert all(each["@type"].startswith("type.googleapis.com/google.rpc.") for each in error["data"])
    info = error["data"][0]
    assert (info["@type"], info["reason"], info["domain"]) == (
        "type.googleapis.com/google.rpc.ErrorInfo",
        reason,
        "a2a-protocol.org",
    )
    assert all(isinstance(value, str) for value in info["metadata"].values())


async def test_9_5_errors_of_0_3_stay_flat(client: AsgiClient) -> None:
    assert (await client.call("tasks/get", {}))["error"]["data"]["param"] == "id"
    _, _, answer = await client.request("POST", "/", b"{", JSON)
    assert msgspec.json.decode(answer)["error"]["data"] == {"reason": "invalid-json"}
