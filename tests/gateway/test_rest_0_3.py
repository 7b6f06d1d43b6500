"""HTTP+JSON of A2A 0.3: its paths, and the ProtoJSON of its protobuf."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from discreet.a2a.types import new_id
from support.a2a_bindings import Tokens, bearer
from support.asgi_client import JSON, AsgiClient
from support.works import UNKNOWN, Works
from support.works import replying as agent

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    async with serve(agent()) as found:
        yield found


def message(text: str = "end", task_id: str | None = None) -> dict[str, Any]:
    said = {"messageId": new_id(), "role": "ROLE_USER", "content": [{"text": text}]}
    return {**said, **({"taskId": task_id} if task_id else {})}


async def ask(
    client: AsgiClient, verb: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    encoded = b"" if body is None else msgspec.json.encode(body)
    given = {**(JSON if encoded else {}), **(headers or {})}
    status, got, answer = await client.request(verb, path, encoded, given)
    return status, got, msgspec.json.decode(answer)


async def task_of(client: AsgiClient, text: str = "ask") -> Any:
    return (await ask(client, "POST", "/v1/message:send", {"message": message(text)}))[2]["task"]


@pytest.mark.parametrize("headers", [{}, {"a2a-version": "0.3"}, {"a2a-version": "0.3.0"}])
async def test_a_task_has_the_names_of_the_protobuf(client: AsgiClient, headers: dict[str, str]) -> None:
    status, got, body = await ask(client, "POST", "/v1/message:send", {"message": message("work ask")}, headers)
    task = body["task"]
    assert (status, got["content-type"]) == (200, "application/json")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert [(each["role"], each["content"][0]["text"]) for each in task["history"]] == [
        ("ROLE_USER", "work ask"),
        ("ROLE_AGENT", "on it"),
    ]
    assert task["status"]["message"]["content"] == [{"text": "more?"}]


async def test_a_canceled_task_has_its_own_spelling(client: AsgiClient) -> None:
    task = await task_of(client)
    canceled = (await ask(client, "POST", f"/v1/tasks/{task['id']}:cancel", {"name": f"tasks/{task['id']}"}))[2]
    assert canceled["status"]["state"] == "TASK_STATE_CANCELLED"
    status, _, body = await ask(client, "POST", f"/v1/tasks/{task['id']}:cancel")
    assert status == 400
    assert (body["type"], body["message"]) == ("TaskNotCancelableError", "Task cannot be canceled")
    facts = body["error"]["details"][0]["metadata"]
    assert facts["currentState"] == "TASK_STATE_CANCELLED"


async def test_the_events_of_a_stream_say_when_no_more_follows(client: AsgiClient) -> None:
    body = msgspec.json.encode({"message": message("work say end")})
    async with client.open("POST", "/v1/message:stream", body, JSON) as reply:
        events = [data async for _, data in reply.events()]
    assert [next(iter(each)) for each in events] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert [each["statusUpdate"].get("final", False) for each in events if "statusUpdate" in each] == [False, True]
    assert events[2]["artifactUpdate"]["artifact"]["parts"] == [{"text": "said"}]


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_subscription_ends_where_the_task_waits_for_its_caller(serve: Serve, verb: str) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        params = {"message": message("wait ask"), "configuration": {"blocking": False}}
        task = (await ask(client, "POST", "/v1/message:send", params))[2]["task"]
        async with client.open(verb, f"/v1/tasks/{task['id']}:subscribe") as reply:
            events = reply.events()
            assert (await anext(events))[1]["task"]["id"] == task["id"]
            works.go.set()
            (last,) = [data async for _, data in events]
    assert (last["statusUpdate"]["status"]["state"], last["statusUpdate"]["final"]) == (
        "TASK_STATE_INPUT_REQUIRED",
        True,
    )


@pytest.mark.parametrize("configuration", [{}, {"blocking": False}])
async def test_a_configuration_that_does_not_say_blocking_does_not_wait(
    serve: Serve, configuration: dict[str, Any]
) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        params = {"message": message("wait"), "configuration": configuration}
        task = (await ask(client, "POST", "/v1/message:send", params))[2]["task"]
        works.go.set()
        assert task["status"]["state"] == "TASK_STATE_SUBMITTED"


async def test_a_history_length_of_zero_is_the_whole_history(client: AsgiClient) -> None:
    task = await task_of(client, "work ask")
    for length, kept in ((0, 2), (1, 1)):
        got = (await ask(client, "GET", f"/v1/tasks/{task['id']}?historyLength={length}"))[2]
        assert len(got["history"]) == kept


async def test_every_kind_of_part_comes_back_as_it_was_sent(serve: Serve) -> None:
    """The bytes of a file are base64 text in a field that is base64 itself: so a2a-sdk has them."""
    content = base64.b64encode(base64.b64encode(b"\x00\xff")).decode()
    parts = [
        {"text": "a", "metadata": {"of": 1}},
        {"file": {"fileWithBytes": content, "mimeType": "image/png", "name": "a.png"}},
        {"file": {"fileWithUri": "https://example.com/a.png"}},
        {"data": {"data": {"deep": [1, None, {"x": True}]}}},
        {"data": {"data": {"value": [1, 2]}}, "metadata": {"data_part_compat": True}},
    ]
    async with serve(agent_of(input_modes=["*/*"])) as client:
        said = {**message(), "content": parts, "extensions": ["urn:x"], "metadata": {"k": "v"}}
        task = (await ask(client, "POST", "/v1/message:send", {"message": said}))[2]["task"]
        kept = task["history"][0]
        assert [kept[name] for name in ("content", "extensions", "metadata")] == [parts, ["urn:x"], {"k": "v"}]
        new = (await ask(client, "GET", f"/tasks/{task['id']}", headers={"a2a-version": "1.0"}))[2]
    assert new["history"][0]["parts"] == [
        {"text": "a", "metadata": {"of": 1}},
        {"raw": "AP8=", "filename": "a.png", "mediaType": "image/png"},
        {"url": "https://example.com/a.png"},
        {"data": {"deep": [1, None, {"x": True}]}},
        {"data": [1, 2]},
    ]


async def test_names_and_numbers_of_the_protobuf_are_read_too(client: AsgiClient) -> None:
    said = {"message_id": "m", "role": 1, "content": [{"text": "end"}], "context_id": "", "task_id": None}
    params = {"request": said, "configuration": {"accepted_output_modes": [], "blocking": True}}
    task = (await ask(client, "POST", "/v1/message:send", params))[2]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({}, "message"),
        ({"message": {**message(), "messageId": ""}}, "message.messageId"),
        ({"message": {**message(), "content": []}}, "message.content"),
        ({"message": {**message(), "role": "user"}}, "message.role"),
        ({"message": {**message(), "role": "ROLE_AGENT"}}, "message.role"),
        ({"request": {**message(), "content": [{}]}}, "request.content[0]"),
        ({"message": {**message(), "content": [{"text": "a", "data": {"data": {}}}]}}, "message.content[0]"),
        ({"message": {**message(), "content": [{"data": {"data": [1]}}]}}, "message.content[0].data.data"),
        ({"message": {**message(), "content": [{"file": {}}]}}, "message.content[0].file"),
        (
            {"message": {**message(), "content": [{"file": {"fileWithBytes": "/w=="}}]}},
            "message.content[0].file.fileWithBytes",
        ),
        (
            {"message": message(), "configuration": {"pushNotification": {"url": "ftp://a"}}},
            "configuration.pushNotification.url",
        ),
        (
            {
                "message": message(),
                "configuration": {"pushNotification": {"url": "https://a", "authentication": {"credentials": "x"}}},
            },
            "configuration.pushNotification.authentication.schemes",
        ),
    ],
)
async def test_a_wrong_param_is_named_as_the_caller_wrote_it(serve: Serve, params: dict[str, Any], path: str) -> None:
    async with serve(agent(push_notifications=True, input_modes=["*/*"])) as client:
        status, _, body = await ask(client, "POST", "/v1/message:send", params)
    assert (status, body["type"], body["error"]["details"][0]["metadata"]["param"]) == (400, "InvalidParamsError", path)


async def test_push_configs_have_names_of_resources(serve: Serve) -> None:
    async with serve(agent(push_notifications=True)) as client:
        task = await task_of(client)
        configs = f"/v1/tasks/{task['id']}/pushNotificationConfigs"
        push = {"url": "https://example.com/hook", "token": "t", "authentication": {"schemes": ["Bearer", "Basic"]}}
        request = {"parent": f"tasks/{task['id']}", "configId": "c", "config": {"pushNotificationConfig": push}}
        kept = {**push, "id": "c", "authentication": {"schemes": ["Bearer"]}}
        config = {"name": f"tasks/{task['id']}/pushNotificationConfigs/c", "pushNotificationConfig": kept}
        assert (await ask(client, "POST", configs, request))[2] == config
        assert (await ask(client, "GET", f"{configs}/c"))[2] == config
        assert (await ask(client, "GET", configs))[2] == {"configs": [config]}
        assert (await ask(client, "DELETE", f"{configs}/c"))[::2] == (200, {})
        assert (await ask(client, "GET", f"{configs}/c"))[0] == 404
        assert (await ask(client, "GET", configs))[2] == {}
        wrong = {"config": {"pushNotificationConfig": {"url": "ftp://a"}}}
        facts = (await ask(client, "POST", configs, wrong))[2]["error"]["details"][0]["metadata"]
        assert facts["param"] == "config.pushNotificationConfig.url"


async def test_the_card_of_0_3_is_that_of_its_json_rpc(serve: Serve) -> None:
    async with serve(agent(extended=lambda card, _: card), provider=Tokens()) as client:
        status, headers, _ = await ask(client, "GET", "/v1/card")
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="agents"')
        card = (await ask(client, "GET", "/v1/card", headers=bearer("ann")))[2]
    assert (card["protocolVersion"], card["name"]) == ("0.3.0", "Works")
    assert {"url": "http://localhost/", "transport": "HTTP+JSON"} in card["additionalInterfaces"]


async def test_failures_before_the_first_event_are_responses(client: AsgiClient) -> None:
    for verb, path, body in (
        ("POST", "/v1/message:stream", {"message": message("end", UNKNOWN)}),
        ("GET", f"/v1/tasks/{UNKNOWN}:subscribe", None),
        ("GET", f"/v1/tasks/{UNKNOWN}", None),
    ):
        status, headers, said = await ask(client, verb, path, body)
        assert (status, headers["content-type"], said["type"]) == (404, "application/json", "TaskNotFoundError")


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/nothing", "/v1", "/v1/message:send/x"])
async def test_a_path_that_0_3_does_not_have_is_not_found(client: AsgiClient, path: str) -> None:
    status, _, body = await ask(client, "GET", path)
    assert (status, body["error"]["details"][0]["reason"]) == (404, "METHOD_NOT_FOUND")


async def test_a_client_of_1_0_has_a_tenant_there(client: AsgiClient) -> None:
    status, _, body = await ask(client, "GET", "/v1/tasks", headers={"a2a-version": "1.0"})
    assert (status, body["tasks"]) == (200, [])
