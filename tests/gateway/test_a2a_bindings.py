"""What sections 3 and 5 of A2A 1.0 demand of every binding and of their JSON, asked over both that HTTP has. A test's name begins with its
section."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest

from discreet.agents import Agent, Extension
from discreet.errors import ERROR_TABLE, AgentFailure
from support.a2a_bindings import BINDINGS, PATHS, Binding, Caller, HttpJson, JsonRpc, Said, Tokens, bearer
from support.works import Works, v1
from support.works import agent as works_agent

from .conftest import Serve

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("binding", BINDINGS)
UNKNOWN = "00000000-0000-4000-8000-000000000000"
TERMINAL = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED")


def agent(works: Works | None = None, **options: Any) -> Agent:
    return works_agent(works, replies_without_task=True, **options)


def state_of(task: Any) -> str:
    return str(task["status"]["state"])


def kind_of(event: Said) -> str:
    return str(next(iter(event.result)))


@both
async def test_3_1_1_a_message_is_answered_by_a_task_or_a_message(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        assert [*(await caller.call("SendMessage", v1("end"))).result] == ["task"]
        assert [*(await caller.call("SendMessage", v1("reply"))).result] == ["message"]


@both
async def test_3_1_1_an_ended_task_takes_no_message(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("end")
        said = await caller.call("SendMessage", v1("more", task["id"]))
        assert (said.reason, said.facts["taskId"]) == ("UNSUPPORTED_OPERATION", task["id"])


@both
async def test_3_1_2_a_stream_is_the_task_and_its_updates_until_it_ends(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        events = await Caller(binding, client).events("SendStreamingMessage", v1("work say end"))
    assert [kind_of(each) for each in events] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert state_of(events[-1].result["statusUpdate"]) == "TASK_STATE_COMPLETED"


@both
async def test_3_1_2_a_stream_with_a_message_has_nothing_else(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        events = await Caller(binding, client).events("SendStreamingMessage", v1("reply"))
    assert [kind_of(each) for each in events] == ["message"]


@both
async def test_3_1_2_progress_is_told_while_the_agent_works(serve: Serve, binding: Binding) -> None:
    works = Works()
    async with (
        serve(agent(works)) as client,
        Caller(binding, client).stream("SendStreamingMessage", v1("work wait end")) as events,
    ):
        assert [kind_of(await anext(events)) for _ in range(2)] == ["task", "statusUpdate"]
        works.go.set()
        assert [kind_of(each) async for each in events] == ["statusUpdate"]


@both
async def test_3_1_3_a_task_is_as_it_was_sent(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        assert (await caller.call("GetTask", {"id": task["id"]})).result == task
        assert (await caller.call("GetTask", {"id": UNKNOWN})).reason == "TASK_NOT_FOUND"


@both
async def test_3_1_4_tasks_come_in_pages_the_last_changed_first(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        sent = [(await caller.task("say end"))["id"] for _ in range(3)]
        first = (await caller.call("ListTasks", {"pageSize": 2})).result
        last = (await caller.call("ListTasks", {"pageSize": 2, "pageToken": first["nextPageToken"]})).result
    assert [each["id"] for each in (*first["tasks"], *last["tasks"])] == sent[::-1]
    assert first["nextPageToken"] != ""
    assert (last["nextPageToken"], last["totalSize"], last["pageSize"]) == ("", 3, 2)


@both
async def test_3_1_4_artifacts_are_listed_only_where_they_are_asked_for(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        without = (await caller.call("ListTasks")).result["tasks"][0]
        with_them = (await caller.call("ListTasks", {"includeArtifacts": True})).result["tasks"][0]
    assert "artifacts" not in without
    assert with_them["artifacts"] == task["artifacts"]


@both
async def test_3_1_4_only_the_callers_own_tasks_are_listed(serve: Serve, binding: Binding) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        ann, bob = (Caller(binding, client, **bearer(name)) for name in ("ann", "bob"))
        task = await ann.task("end")
        assert [each["id"] for each in (await ann.call("ListTasks")).result["tasks"]] == [task["id"]]
        assert (await bob.call("ListTasks")).result["tasks"] == []


@both
async def test_3_1_5_a_task_is_canceled_once(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        assert state_of((await caller.call("CancelTask", {"id": task["id"]})).result) == "TASK_STATE_CANCELED"
        said = await caller.call("CancelTask", {"id": task["id"]})
        assert (said.reason, said.facts["currentState"]) == ("TASK_NOT_CANCELABLE", "TASK_STATE_CANCELED")
        assert (await caller.call("CancelTask", {"id": UNKNOWN})).reason == "TASK_NOT_FOUND"


@both
async def test_3_1_6_a_subscription_begins_with_the_task_and_ends_with_it(serve: Serve, binding: Binding) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        caller = Caller(binding, client)
        task = await caller.task("work wait end", returnImmediately=True)
        async with caller.stream("SubscribeToTask", {"id": task["id"]}) as events:
            first = await anext(events)
            assert first.result["task"]["id"] == task["id"]
            works.go.set()
            *_, last = [each async for each in events]
        assert state_of(last.result["statusUpdate"]) == "TASK_STATE_COMPLETED"
        (said,) = await caller.events("SubscribeToTask", {"id": task["id"]})
        assert said.reason == "UNSUPPORTED_OPERATION"
        (said,) = await caller.events("SubscribeToTask", {"id": UNKNOWN})
        assert said.reason == "TASK_NOT_FOUND"


@both
async def test_3_1_7_to_3_1_10_push_configs_are_made_read_listed_and_deleted(serve: Serve, binding: Binding) -> None:
    async with serve(agent(push_notifications=True)) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        about = {"taskId": task["id"]}
        config = {**about, "id": "c/1?", "url": "https://example.com/hook", "token": "t"}
        made = await caller.call("CreateTaskPushNotificationConfig", config)
        assert made.result == config
        assert (await caller.call("GetTaskPushNotificationConfig", {**about, "id": "c/1?"})).result == config
        assert (await caller.call("ListTaskPushNotificationConfigs", about)).result == {"configs": [config]}
        for _ in range(2):
            assert (await caller.call("DeleteTaskPushNotificationConfig", {**about, "id": "c/1?"})).result == {}
        assert (await caller.call("GetTaskPushNotificationConfig", {**about, "id": "c/1?"})).reason == "TASK_NOT_FOUND"
        assert not (await caller.call("ListTaskPushNotificationConfigs", about)).result.get("configs")
        unknown = await caller.call("CreateTaskPushNotificationConfig", {**config, "taskId": UNKNOWN})
        assert unknown.reason == "TASK_NOT_FOUND"


@both
async def test_3_1_11_the_extended_card_is_for_callers_that_are_known(serve: Serve, binding: Binding) -> None:
    def extended(public: Any, identity: Any) -> Any:
        return public

    async with serve(agent(extended=extended), provider=Tokens()) as client:
        caller = Caller(binding, client)
        assert (await caller.call("GetExtendedAgentCard")).reason == "FORBIDDEN"
        assert (await caller.call("GetExtendedAgentCard", **bearer("ann"))).result["name"] == "Works"


# -- 3.2 parameters -----------------------------------------------------------------------------------------------------


@both
async def test_3_2_2_a_send_waits_for_the_end_with_all_that_was_made(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        assert (state_of(task), len(task["artifacts"])) == ("TASK_STATE_COMPLETED", 1)
        assert state_of(await caller.task("ask")) == "TASK_STATE_INPUT_REQUIRED"


@both
async def test_3_2_2_a_send_that_returns_immediately_does_not_wait(serve: Serve, binding: Binding) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        task = await Caller(binding, client).task("wait", returnImmediately=True)
        works.go.set()
    assert state_of(task) not in TERMINAL


@both
@pytest.mark.parametrize(("length", "kept"), [(None, 3), (0, 0), (1, 1), (9, 3)])
async def test_3_2_4_no_more_history_comes_than_was_asked_for(
    serve: Serve, binding: Binding, length: int | None, kept: int
) -> None:
    wanted = {} if length is None else {"historyLength": length}
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        asked = await caller.task("ask")
        sent = await caller.call("SendMessage", v1("end", asked["id"], **wanted))
        got = await caller.call("GetTask", {"id": asked["id"], **wanted})
        listed = await caller.call("ListTasks", wanted)
    for task in (sent.result["task"], got.result, listed.result["tasks"][0]):
        assert len(task.get("history", ())) == kept
        assert ("history" in task) == bool(kept)


@both
async def test_3_2_6_names_of_service_parameters_have_no_case_and_values_have(serve: Serve, binding: Binding) -> None:
    async with serve(agent(extensions=[Extension("urn:x:Needed", required=True)])) as client:
        caller = Caller(binding, client)
        headers = {"a2a_version": "", "A2A_VERSION": "1.0"}
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:other, urn:x:Needed")
        assert said.reason == ""
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:needed")
        assert said.reason == "EXTENSION_SUPPORT_REQUIRED"


# -- 3.3 semantics ------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("credentials", ["", "Bearer wrong", "Basic ann", "ann"])
async def test_3_3_2_missing_or_wrong_credentials_are_refused_with_a_challenge(
    serve: Serve, binding: Binding, credentials: str
) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        said = await Caller(binding, client).call("ListTasks", authorization=credentials)
    error = ', error="invalid_token"' if credentials else ""
    assert (said.status, said.headers["www-authenticate"]) == (401, f'Bearer realm="agents"{error}')
    assert (said.reason, said.facts["authSchemes"]) == ("FORBIDDEN", "Bearer")


@both
@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_3_3_2_a_task_of_another_caller_is_not_there(serve: Serve, binding: Binding, method: str) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        ann, bob = (Caller(binding, client, **bearer(name)) for name in ("ann", "bob"))
        task = await ann.task("ask")
        (hers,) = await bob.events(method, {"id": task["id"]})
        (nobodys,) = await bob.events(method, {"id": UNKNOWN})
    assert hers.reason == nobodys.reason == "TASK_NOT_FOUND"
    assert (hers.status, hers.message) == (nobodys.status, nobodys.message)


@both
@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("SendMessage", {}, "message"),
        ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}, "message.parts"),
        (
            "SendMessage",
            {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}},
            "message.role",
        ),
        (
            "SendMessage",
            {"message": {"messageId": "", "role": "ROLE_USER", "parts": [{"text": "x"}]}},
            "message.messageId",
        ),
        ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{}]}}, "message.parts[0]"),
        ("ListTasks", {"pageSize": 0}, "pageSize"),
        ("ListTasks", {"pageSize": 101}, "pageSize"),
        ("ListTasks", {"pageToken": "made-up"}, "pageToken"),
        ("ListTasks", {"status": "TASK_STATE_RUNNING"}, "status"),
        ("ListTasks", {"historyLength": -1}, "historyLength"),
        ("ListTasks", {"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ("ListTasks", {"includeArtifacts": "perhaps"}, "includeArtifacts"),
    ],
)
async def test_3_3_2_wrong_params_are_named(
    serve: Serve, binding: Binding, method: str, params: dict[str, Any], path: str
) -> None:
    async with serve(agent()) as client:
        said = await Caller(binding, client).call(method, params)
    assert (said.reason, said.facts["param"]) == ("INVALID_PARAMS", path)
    violations = [each["fieldViolations"] for each in said.details if each["@type"].endswith("google.rpc.BadRequest")]
    assert [each["field"] for each in violations[0]] == [path]
    assert said.facts["expected"] in violations[0][0]["description"]


@both
async def test_3_3_2_every_error_has_a_code_a_message_and_typed_details(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        for method, params in (
            ("GetTask", {"id": UNKNOWN}),
            ("ListTasks", {"pageSize": 0}),
            ("GetExtendedAgentCard", {}),
        ):
            said = await caller.call(method, params)
            assert said.message
            assert said.details
            assert all(each["@type"].startswith("type.googleapis.com/google.rpc.") for each in said.details)


@both
@pytest.mark.parametrize("operation", ["Create", "Get", "List", "Delete"])
async def test_3_3_4_without_push_notifications_configs_are_refused(
    serve: Serve, binding: Binding, operation: str
) -> None:
    name = "ListTaskPushNotificationConfigs" if operation == "List" else f"{operation}TaskPushNotificationConfig"
    config = {"id": "c", "url": "https://example.com/hook"}
    async with serve(agent(push_notifications=False)) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        params = {"taskId": task["id"], **({} if operation == "List" else config)}
        assert (await caller.call(name, params)).reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"


@both
async def test_3_3_4_without_streaming_streams_are_refused(serve: Serve, binding: Binding) -> None:
    async with serve(agent(streaming=False)) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        for method, params in (("SendStreamingMessage", v1("end")), ("SubscribeToTask", {"id": task["id"]})):
            assert [each.reason for each in await caller.events(method, params)] == ["UNSUPPORTED_OPERATION"]


@both
async def test_3_3_4_without_an_extended_card_asking_for_it_is_refused(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        assert (await Caller(binding, client).call("GetExtendedAgentCard")).reason == "UNSUPPORTED_OPERATION"


@both
async def test_3_3_4_a_required_extension_must_be_named(serve: Serve, binding: Binding) -> None:
    async with serve(agent(extensions=[Extension("urn:x:needed", required=True)])) as client:
        caller = Caller(binding, client)
        said = await caller.call("SendMessage", v1("end"))
        assert (said.reason, said.facts["accepted"]) == ("EXTENSION_SUPPORT_REQUIRED", "urn:x:needed")
        assert (await caller.call("SendMessage", v1("end"), a2a_extensions="urn:x:needed")).reason == ""


# -- 3.4 several turns --------------------------------------------------------------------------------------------------


@both
async def test_3_4_1_a_context_that_was_made_is_in_the_answer_and_a_given_one_is_kept(
    serve: Serve, binding: Binding
) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        made = (await caller.task("end"))["contextId"]
        assert made
        params = v1("end")
        params["message"]["contextId"] = made
        assert (await caller.call("SendMessage", params)).result["task"]["contextId"] == made
        assert (await caller.call("SendMessage", v1("reply"))).result["message"]["contextId"]


@both
async def test_3_4_2_each_task_has_an_id_of_its_own_and_an_unknown_one_is_refused(
    serve: Serve, binding: Binding
) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        assert len({(await caller.task("end"))["id"] for _ in range(3)}) == 3
        assert (await caller.call("SendMessage", v1("end", UNKNOWN))).reason == "TASK_NOT_FOUND"


@both
async def test_3_4_3_the_context_follows_from_the_task_and_another_one_is_refused(
    serve: Serve, binding: Binding
) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        asked = await caller.task("ask")
        params = v1("end", asked["id"])
        params["message"]["contextId"] = "another"
        said = await caller.call("SendMessage", params)
        assert (said.reason, said.facts["param"]) == ("INVALID_PARAMS", "message.contextId")
        ended = (await caller.call("SendMessage", v1("end", asked["id"]))).result["task"]
        assert (ended["id"], ended["contextId"]) == (asked["id"], asked["contextId"])


# -- 3.5 updates --------------------------------------------------------------------------------------------------------


@both
async def test_3_5_2_all_streams_of_a_task_get_the_same_events_and_one_that_closes_disturbs_none(
    serve: Serve, binding: Binding
) -> None:
    works = Works()
    received: list[list[Any]] = [[], []]
    async with serve(agent(works)) as client, anyio.create_task_group() as tasks:
        caller = Caller(binding, client)
        task = await caller.task("wait work say say end", returnImmediately=True)
        about = {"id": task["id"]}
        ready = [anyio.Event(), anyio.Event()]

        async def read(index: int) -> None:
            async with caller.stream("SubscribeToTask", about) as events:
                async for each in events:
                    ready[index].set()
                    received[index].append(each.result)

        for index in range(2):
            tasks.start_soon(read, index)
            await ready[index].wait()
        async with caller.stream("SubscribeToTask", about) as events:
            await anext(events)  # and leaves
        works.go.set()
    assert received[0] == received[1]
    kinds = [next(iter(each)) for each in received[0]]
    assert kinds == ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]


# -- 3.6 versions -------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("version", ["1.0", "1.0.7", " 1.0 "])
async def test_3_6_a_patch_version_is_not_considered(serve: Serve, binding: Binding, version: str) -> None:
    async with serve(agent()) as client:
        assert (await Caller(binding, client).call("ListTasks", a2a_version=version)).reason == ""


@both
@pytest.mark.parametrize("version", ["0.3", "1.1", "2.0", "0.5", "latest", "10"])
async def test_3_6_2_a_version_that_the_method_does_not_speak_is_refused(
    serve: Serve, binding: Binding, version: str
) -> None:
    async with serve(agent()) as client:
        said = await Caller(binding, client).call("ListTasks", a2a_version=version)
    assert (said.reason, said.facts["accepted"]) == ("VERSION_NOT_SUPPORTED", "1.0")


@both
@pytest.mark.parametrize("headers", [{"a2a_version": ""}, {"a2a-version": " "}], ids=["missing", "empty"])
async def test_3_6_2_no_version_means_0_3(serve: Serve, binding: Binding, headers: dict[str, str]) -> None:
    async with serve(agent()) as client:
        said = await Caller(binding, client).call("ListTasks", **headers)
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


@both
@pytest.mark.parametrize("method", PATHS)
async def test_5_3_every_operation_has_its_method_and_its_path(serve: Serve, binding: Binding, method: str) -> None:
    about = {"id": "c", "taskId": UNKNOWN} if "Push" in method else {"id": UNKNOWN}
    async with serve(agent(push_notifications=True)) as client:
        (said,) = await Caller(binding, client).events(method, {**about, "url": "https://example.com/"})
    assert said.reason != "METHOD_NOT_FOUND"


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


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value, *(name for inner in value.values() for name in names_in(inner))}
    return {name for inner in value for name in names_in(inner)} if isinstance(value, list) else set()


@both
async def test_5_5_members_are_in_camel_case_and_enumerations_are_names(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        sent = (await caller.call("SendMessage", v1("work say ask"))).result
        listed = (await caller.call("ListTasks", {"includeArtifacts": True})).result
    names = names_in(sent) | names_in(listed)
    assert all(re.fullmatch(r"[a-z][A-Za-z]*", name) for name in names)
    assert {"contextId", "messageId", "artifactId", "nextPageToken", "totalSize"} <= names
    task = sent["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert {each["role"] for each in task["history"]} == {"ROLE_USER", "ROLE_AGENT"}


@both
async def test_5_6_1_times_are_in_utc_and_such_are_read(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        stamp = (await caller.call("SendMessage", v1("end"))).result["task"]["status"]["timestamp"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)
        for after, found in ((stamp, 1), ("2020-01-01T00:00:00Z", 1), ("9999-01-01T00:00:00.000Z", 0)):
            listed = await caller.call("ListTasks", {"statusTimestampAfter": after})
            assert len(listed.result["tasks"]) == found


@both
@pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
async def test_5_7_a_required_field_that_is_missing_is_named(serve: Serve, binding: Binding, missing: str) -> None:
    params = v1("end")
    del params["message"][missing]
    async with serve(agent()) as client:
        said = await Caller(binding, client).call("SendMessage", params)
    assert (said.reason, said.facts["param"], said.facts["received"]) == (
        "INVALID_PARAMS",
        f"message.{missing}",
        "missing",
    )


@both
async def test_5_7_members_that_are_not_known_are_ignored(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        sent = await caller.call("SendMessage", {**v1("end"), "colour": {"is": "green"}})
        assert (await caller.call("GetTask", {"id": sent.result["task"]["id"], "colour": "green"})).reason == ""


@both
async def test_5_7_an_optional_field_of_its_default_is_not_a_missing_one(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = (await caller.call("SendMessage", v1("end", historyLength=0))).result["task"]
        assert "history" not in task
        assert "history" in (await caller.call("GetTask", {"id": task["id"]})).result
