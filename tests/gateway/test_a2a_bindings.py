"""What sections 3 and 5 of A2A 1.0 demand of every binding, asked over both that HTTP has: what a method does is told by the tests of agents. A
test's name begins with its section."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from discreet.agents import Agent, Extension
from discreet.errors import ERROR_TABLE, AgentFailure
from support.a2a_bindings import BINDINGS, PATHS, Binding, Caller, HttpJson, JsonRpc, Said, Tokens, bearer
from support.works import UNKNOWN, Works, v1
from support.works import replying as agent

from .conftest import Serve

pytestmark = pytest.mark.anyio

Calling = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.fixture(params=BINDINGS)
def calling(request: pytest.FixtureRequest, serve: Serve) -> Calling:
    """`async with calling(agent, …, **settings) as caller`: a client of each binding."""
    binding: Binding = request.param

    @asynccontextmanager
    async def opened(hosted: Agent | None = None, **settings: Any) -> AsyncGenerator[Caller]:
        async with serve(hosted or agent(), **settings) as client:
            yield Caller(binding, client)

    return opened


def state_of(task: Any) -> str:
    return str(task["status"]["state"])


def kind_of(event: Said) -> str:
    return str(next(iter(event.result)))


async def test_3_1_2_progress_is_told_while_the_agent_works(calling: Calling) -> None:
    works = Works()
    async with calling(agent(works)) as caller, caller.stream("SendStreamingMessage", v1("work wait end")) as events:
        assert [kind_of(await anext(events)) for _ in range(2)] == ["task", "statusUpdate"]
        works.go.set()
        assert [kind_of(each) async for each in events] == ["statusUpdate"]


async def test_3_1_4_tasks_come_in_pages_the_last_changed_first(calling: Calling) -> None:
    async with calling() as caller:
        sent = [(await caller.task("say end"))["id"] for _ in range(3)]
        first = (await caller.call("ListTasks", {"pageSize": 2})).result
        last = (await caller.call("ListTasks", {"pageSize": 2, "pageToken": first["nextPageToken"]})).result
    assert [each["id"] for each in (*first["tasks"], *last["tasks"])] == sent[::-1]
    assert (last["nextPageToken"], last["totalSize"], last["pageSize"]) == ("", 3, 2)


async def test_3_1_5_a_task_is_canceled_once(calling: Calling) -> None:
    async with calling() as caller:
        task = await caller.task("ask")
        assert state_of((await caller.call("CancelTask", {"id": task["id"]})).result) == "TASK_STATE_CANCELED"
        said = await caller.call("CancelTask", {"id": task["id"]})
        assert (said.reason, said.facts["currentState"]) == ("TASK_NOT_CANCELABLE", "TASK_STATE_CANCELED")


async def test_3_1_6_a_subscription_begins_with_the_task_and_ends_with_it(calling: Calling) -> None:
    works = Works()
    async with calling(agent(works)) as caller:
        task = await caller.task("work wait end", returnImmediately=True)
        async with caller.stream("SubscribeToTask", {"id": task["id"]}) as events:
            first = await anext(events)
            assert first.result["task"]["id"] == task["id"]
            works.go.set()
            *_, last = [each async for each in events]
        assert state_of(last.result["statusUpdate"]) == "TASK_STATE_COMPLETED"
        (said,) = await caller.events("SubscribeToTask", {"id": task["id"]})
        assert said.reason == "UNSUPPORTED_OPERATION"


async def test_3_1_7_to_3_1_10_push_configs_are_made_read_listed_and_deleted(calling: Calling) -> None:
    async with calling(agent(push_notifications=True)) as caller:
        about = {"taskId": (await caller.task("ask"))["id"]}
        config = {**about, "id": "c/1?", "url": "https://example.com/hook", "token": "t"}
        assert (await caller.call("CreateTaskPushNotificationConfig", config)).result == config
        assert (await caller.call("GetTaskPushNotificationConfig", {**about, "id": "c/1?"})).result == config
        assert (await caller.call("ListTaskPushNotificationConfigs", about)).result == {"configs": [config]}
        for _ in range(2):
            assert (await caller.call("DeleteTaskPushNotificationConfig", {**about, "id": "c/1?"})).result == {}
        assert (await caller.call("GetTaskPushNotificationConfig", {**about, "id": "c/1?"})).reason == "TASK_NOT_FOUND"


async def test_3_1_11_the_extended_card_is_for_callers_that_are_known(calling: Calling) -> None:
    async with calling(agent(extended=lambda public, _: public), provider=Tokens()) as caller:
        assert (await caller.call("GetExtendedAgentCard")).reason == "FORBIDDEN"
        assert (await caller.call("GetExtendedAgentCard", **bearer("ann"))).result["name"] == "Works"


async def test_3_2_6_names_of_service_parameters_have_no_case_and_values_have(calling: Calling) -> None:
    async with calling(agent(extensions=[Extension("urn:x:Needed", required=True)])) as caller:
        headers = {"a2a_version": "", "A2A_VERSION": "1.0"}
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:other, urn:x:Needed")
        assert said.reason == ""
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:needed")
        assert (said.reason, said.facts["accepted"]) == ("EXTENSION_SUPPORT_REQUIRED", "urn:x:Needed")


@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_3_3_2_a_task_of_another_caller_is_not_there(calling: Calling, method: str) -> None:
    async with calling(provider=Tokens()) as caller:
        ann, bob = (Caller(caller.binding, caller.client, **bearer(name)) for name in ("ann", "bob"))
        task = await ann.task("ask")
        (hers,) = await bob.events(method, {"id": task["id"]})
        (nobodys,) = await bob.events(method, {"id": UNKNOWN})
    assert hers.reason == nobodys.reason == "TASK_NOT_FOUND"
    assert (hers.status, hers.message) == (nobodys.status, nobodys.message)


MESSAGE = v1("end")["message"]


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("SendMessage", {}, "message"),
        ("SendMessage", {"message": {**MESSAGE, "role": "ROLE_AGENT"}}, "message.role"),
        ("SendMessage", {"message": {**MESSAGE, "parts": [{}]}}, "message.parts[0]"),
        ("SendMessage", {"message": {**MESSAGE, "taskId": "ASKED", "contextId": "another"}}, "message.contextId"),
        ("ListTasks", {"pageSize": 0}, "pageSize"),
        ("ListTasks", {"pageToken": "made-up"}, "pageToken"),
        ("ListTasks", {"status": "TASK_STATE_RUNNING"}, "status"),
        ("ListTasks", {"historyLength": -1}, "historyLength"),
        ("ListTasks", {"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ("ListTasks", {"includeArtifacts": "perhaps"}, "includeArtifacts"),
    ],
)
async def test_3_3_2_wrong_params_are_named(calling: Calling, method: str, params: dict[str, Any], path: str) -> None:
    async with calling() as caller:
        if params.get("message", {}).get("taskId"):
            params = {"message": {**params["message"], "taskId": (await caller.task("ask"))["id"]}}
        said = await caller.call(method, params)
    assert (said.reason, said.facts["param"]) == ("INVALID_PARAMS", path)
    (violations,) = [each["fieldViolations"] for each in said.details if each["@type"].endswith("rpc.BadRequest")]
    assert [each["field"] for each in violations] == [path]
    assert said.facts["expected"] in violations[0]["description"]


async def test_3_3_4_without_streaming_streams_are_refused(calling: Calling) -> None:
    async with calling(agent(streaming=False)) as caller:
        task = await caller.task("ask")
        for method, params in (("SendStreamingMessage", v1("end")), ("SubscribeToTask", {"id": task["id"]})):
            assert [each.reason for each in await caller.events(method, params)] == ["UNSUPPORTED_OPERATION"]


@pytest.mark.parametrize(
    ("version", "spoken"),
    [("1.0", True), ("1.0.7", True), (" 1.0 ", True), ("0.3", False), ("1.1", False), ("10", False), ("latest", False)],
)
async def test_3_6_2_a_patch_version_is_not_considered_and_one_that_the_method_does_not_speak_is_refused(
    calling: Calling, version: str, spoken: bool
) -> None:
    async with calling() as caller:
        said = await caller.call("ListTasks", a2a_version=version)
    assert (said.reason, said.facts.get("accepted")) == (("", None) if spoken else ("VERSION_NOT_SUPPORTED", "1.0"))


@pytest.mark.parametrize("headers", [{"a2a_version": ""}, {"a2a-version": " "}], ids=["missing", "empty"])
async def test_3_6_2_no_version_means_0_3(calling: Calling, headers: dict[str, str]) -> None:
    async with calling() as caller:
        said = await caller.call("ListTasks", **headers)
    assert said.reason == "VERSION_NOT_SUPPORTED"
    assert "A2A-Version: 1.0" in said.facts["suggestion"]


async def test_5_1_a_task_of_one_binding_is_the_same_in_the_other(serve: Serve) -> None:
    async with serve(agent()) as client:
        callers = Caller(JsonRpc(), client), Caller(HttpJson(), client)
        for sender, reader in (callers, callers[::-1]):
            sent = (await sender.call("SendMessage", v1("say end"))).result["task"]
            assert (await reader.call("GetTask", {"id": sent["id"]})).result == sent
        listed = [(await caller.call("ListTasks")).result for caller in callers]
        assert listed[0] == listed[1]
        refused = [await caller.call("GetTask", {"id": UNKNOWN}) for caller in callers]
        assert (refused[0].message, refused[0].details) == (refused[1].message, refused[1].details)


async def test_5_2_the_card_declares_every_binding_and_version_that_is_served(serve: Serve) -> None:
    path, headers = "/.well-known/agent-card.json", {"a2a-version": "1.0"}
    async with serve(agent()) as client, client.open("GET", path, headers=headers) as reply:
        interfaces = (await reply.json())["supportedInterfaces"]
    assert {(each["protocolBinding"], each["protocolVersion"]) for each in interfaces} == {
        (binding, version) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")
    }
    assert {each["url"] for each in interfaces} == {"http://localhost/"}


async def test_5_3_every_operation_has_its_method_and_its_path(calling: Calling) -> None:
    async with calling(agent(push_notifications=True)) as caller:
        for method in PATHS:
            about = {"id": "c", "taskId": UNKNOWN} if "Push" in method else {"id": UNKNOWN}
            (said,) = await caller.events(method, {**about, "url": "https://example.com/"})
            assert said.reason != "METHOD_NOT_FOUND", method


STATUSES = {
    "TASK_NOT_FOUND": (-32001, "NOT_FOUND", 404),
    "TASK_NOT_CANCELABLE": (-32002, "FAILED_PRECONDITION", 400),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, "FAILED_PRECONDITION", 400),
    "UNSUPPORTED_OPERATION": (-32004, "FAILED_PRECONDITION", 400),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, "INVALID_ARGUMENT", 400),
    "INVALID_AGENT_RESPONSE": (-32006, "INTERNAL", 500),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": (-32007, "FAILED_PRECONDITION", 400),
    "EXTENSION_SUPPORT_REQUIRED": (-32008, "FAILED_PRECONDITION", 400),
    "VERSION_NOT_SUPPORTED": (-32009, "FAILED_PRECONDITION", 400),
}


def test_5_4_each_error_of_a2a_has_its_code_and_its_statuses() -> None:
    rows = [row for row in ERROR_TABLE if issubclass(row.failure, AgentFailure)]
    assert {row.protocol_code: (row.code, row.grpc_status, row.http_status) for row in rows} == STATUSES


async def test_5_4_the_bindings_answer_with_these_codes_and_statuses(serve: Serve) -> None:
    async with serve(agent()) as client:
        for method, params, reason in (
            ("GetTask", {"id": UNKNOWN}, "TASK_NOT_FOUND"),
            ("GetExtendedAgentCard", {}, "UNSUPPORTED_OPERATION"),
        ):
            code, grpc_status, http_status = STATUSES[reason]
            async with JsonRpc().open(client, method, params) as reply:
                assert (reply.status, (await reply.json())["error"]["code"]) == (200, code)
            async with HttpJson().open(client, method, params) as reply:
                error = (await reply.json())["error"]
                assert (reply.status, error["code"], error["status"]) == (http_status, http_status, grpc_status)
