"""What section 9 of A2A 1.0 demands of JSON-RPC over HTTP. A test's name begins with its section."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from support.a2a_bindings import PATHS, Tokens
from support.asgi_client import JSON
from support.works import agent as works_agent
from support.works import v1

from .conftest import Serve

pytestmark = pytest.mark.anyio

V1 = {**JSON, "a2a-version": "1.0"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def agent(**options: Any) -> Any:
    return works_agent(replies_without_task=True, **options)


async def test_9_1_requests_and_responses_are_application_json(serve: Serve) -> None:
    async with serve(agent()) as client:
        async with client.stream("ListTasks", a2a_version="1.0") as reply:
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        status, headers, body = await client.request("POST", "/", b"{}", {**V1, "content-type": "text/plain"})
        assert (status, headers["content-type"]) == (415, "application/json")
        assert msgspec.json.decode(body)["error"]["code"] == -32600


async def test_9_1_streams_are_event_streams(serve: Serve) -> None:
    async with serve(agent()) as client, client.stream("SendStreamingMessage", v1("end"), a2a_version="1.0") as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


async def test_9_2_service_parameters_come_from_headers_and_not_from_the_body(serve: Serve) -> None:
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    body["serviceParams"] = {"authorization": "Bearer ann", "a2a-version": "1.0"}
    async with serve(agent(), provider=Tokens()) as client:
        status, _, answer = await client.request("POST", "/", msgspec.json.encode(body), V1)
        assert (status, msgspec.json.decode(answer)["error"]["data"][0]["reason"]) == (401, "FORBIDDEN")
        said = await client.call("ListTasks", authorization="Bearer ann", a2a_version="1.0")
        assert said["result"]["tasks"] == []


@pytest.mark.parametrize("call_id", [1, "unique-request-id", None])
async def test_9_3_an_answer_has_the_form_of_json_rpc(serve: Serve, call_id: object) -> None:
    async with serve(agent()) as client:
        said = await client.call("ListTasks", call_id=call_id, a2a_version="1.0")
        assert (said.pop("jsonrpc"), said.pop("id"), [*said]) == ("2.0", call_id, ["result"])
        said = await client.call("GetTask", {"id": UNKNOWN}, call_id=call_id, a2a_version="1.0")
        assert (said.pop("jsonrpc"), said.pop("id"), [*said]) == ("2.0", call_id, ["error"])


@pytest.mark.parametrize("method", PATHS)
async def test_9_4_every_method_of_the_specification_is_one(serve: Serve, method: str) -> None:
    async with serve(agent()) as client:
        said = await client.call(method, {"id": UNKNOWN, "taskId": UNKNOWN}, a2a_version="1.0")
    assert said.get("error", {}).get("code") != -32601


async def test_9_4_2_each_event_is_a_response_to_the_request(serve: Serve) -> None:
    options = {"call_id": "s", "a2a_version": "1.0"}
    async with serve(agent()) as client, client.stream("SendStreamingMessage", v1("work end"), **options) as reply:
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
    serve: Serve, body: bytes, code: int, reason: str
) -> None:
    async with serve(agent()) as client:
        _, _, answer = await client.request("POST", "/", body, V1)
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


async def test_9_5_wrong_params_have_a_bad_request(serve: Serve) -> None:
    async with serve(agent()) as client:
        params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}
        error = (await client.call("SendMessage", params, a2a_version="1.0"))["error"]
    assert error["data"][1] == {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [
            {
                "field": "message.parts",
                "description": "expected array of object with at least 1 item; received array",
            }
        ],
    }


async def test_9_5_errors_of_0_3_stay_flat(serve: Serve) -> None:
    async with serve(agent()) as client:
        assert (await client.call("tasks/get", {}))["error"]["data"]["param"] == "id"
        _, _, answer = await client.request("POST", "/", b"{", JSON)
        assert msgspec.json.decode(answer)["error"]["data"] == {"reason": "invalid-json"}
