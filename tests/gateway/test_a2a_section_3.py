"""What section 3 of A2A 1.0 demands of every binding beyond its operations (3.1), asked over both that HTTP has. A test's name begins with its section."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet.agents import Agent, Extension
from support.a2a_bindings import BINDINGS, Binding, Caller, Tokens, bearer
from support.works import Works, v1
from support.works import agent as works_agent

from .conftest import Serve

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("binding", BINDINGS)]

UNKNOWN = "00000000-0000-4000-8000-000000000000"
TERMINAL = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED")


def agent(works: Works | None = None, **options: Any) -> Agent:
    return works_agent(works, replies_without_task=True, **options)


def state_of(task: Any) -> str:
    return str(task["status"]["state"])


# -- 3.2 parameters -----------------------------------------------------------------------------------------------------


async def test_3_2_2_a_send_waits_for_the_end_with_all_that_was_made(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        assert (state_of(task), len(task["artifacts"])) == ("TASK_STATE_COMPLETED", 1)
        assert state_of(await caller.task("ask")) == "TASK_STATE_INPUT_REQUIRED"


async def test_3_2_2_a_send_that_returns_immediately_does_not_wait(serve: Serve, binding: Binding) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        task = await Caller(binding, client).task("wait", returnImmediately=True)
        works.go.set()
    assert state_of(task) not in TERMINAL


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


async def test_3_2_6_names_of_service_parameters_have_no_case_and_values_have(serve: Serve, binding: Binding) -> None:
    async with serve(agent(extensions=[Extension("urn:x:Needed", required=True)])) as client:
        caller = Caller(binding, client)
        headers = {"a2a_version": "", "A2A_VERSION": "1.0"}
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:other, urn:x:Needed")
        assert said.reason == ""
        said = await caller.call("ListTasks", **headers, A2A_EXTENSIONS="urn:x:needed")
        assert said.reason == "EXTENSION_SUPPORT_REQUIRED"


# -- 3.3 semantics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("credentials", ["", "Bearer wrong", "Basic ann", "ann"])
async def test_3_3_2_missing_or_wrong_credentials_are_refused_with_a_challenge(
    serve: Serve, binding: Binding, credentials: str
) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        said = await Caller(binding, client).call("ListTasks", authorization=credentials)
    error = ', error="invalid_token"' if credentials else ""
    assert (said.status, said.headers["www-authenticate"]) == (401, f'Bearer realm="agents"{error}')
    assert (said.reason, said.facts["authSchemes"]) == ("FORBIDDEN", "Bearer")


@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_3_3_2_a_task_of_another_caller_is_not_there(serve: Serve, binding: Binding, method: str) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        ann, bob = (Caller(binding, client, **bearer(name)) for name in ("ann", "bob"))
        task = await ann.task("ask")
        (hers,) = await bob.events(method, {"id": task["id"]})
        (nobodys,) = await bob.events(method, {"id": UNKNOWN})
    assert hers.reason == nobodys.reason == "TASK_NOT_FOUND"
    assert (hers.status, hers.message) == (nobodys.status, nobodys.message)


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


async def test_3_3_4_without_streaming_streams_are_refused(serve: Serve, binding: Binding) -> None:
    async with serve(agent(streaming=False)) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        for method, params in (("SendStreamingMessage", v1("end")), ("SubscribeToTask", {"id": task["id"]})):
            assert [each.reason for each in await caller.events(method, params)] == ["UNSUPPORTED_OPERATION"]


async def test_3_3_4_without_an_extended_card_asking_for_it_is_refused(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        assert (await Caller(binding, client).call("GetExtendedAgentCard")).reason == "UNSUPPORTED_OPERATION"


async def test_3_3_4_a_required_extension_must_be_named(serve: Serve, binding: Binding) -> None:
    async with serve(agent(extensions=[Extension("urn:x:needed", required=True)])) as client:
        caller = Caller(binding, client)
        said = await caller.call("SendMessage", v1("end"))
        assert (said.reason, said.facts["accepted"]) == ("EXTENSION_SUPPORT_REQUIRED", "urn:x:needed")
        assert (await caller.call("SendMessage", v1("end"), a2a_extensions="urn:x:needed")).reason == ""


# -- 3.4 several turns --------------------------------------------------------------------------------------------------


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


async def test_3_4_2_each_task_has_an_id_of_its_own_and_an_unknown_one_is_refused(
    serve: Serve, binding: Binding
) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        assert len({(await caller.task("end"))["id"] for _ in range(3)}) == 3
        assert (await caller.call("SendMessage", v1("end", UNKNOWN))).reason == "TASK_NOT_FOUND"


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


@pytest.mark.parametrize("version", ["1.0", "1.0.7", " 1.0 "])
async def test_3_6_a_patch_version_is_not_considered(serve: Serve, binding: Binding, version: str) -> None:
    async with serve(agent()) as client:
        assert (await Caller(binding, client).call("ListTasks", a2a_version=version)).reason == ""


@pytest.mark.parametrize("version", ["0.3", "1.1", "2.0", "0.5", "latest", "10"])
async def test_3_6_2_a_version_that_the_method_does_not_speak_is_refused(
    serve: Serve, binding: Binding, version: str
) -> None:
    async with serve(agent()) as client:
        said = await Caller(binding, client).call("ListTasks", a2a_version=version)
    assert (said.reason, said.facts["accepted"]) == ("VERSION_NOT_SUPPORTED", "1.0")


@pytest.mark.parametrize("headers", [{"a2a_version": ""}, {"a2a-version": " "}], ids=["missing", "empty"])
async def test_3_6_2_no_version_means_0_3(serve: Serve, binding: Binding, headers: dict[str, str]) -> None:
    async with serve(agent()) as client:
        said = await Caller(binding, client).call("ListTasks", **headers)
    assert said.reason == "VERSION_NOT_SUPPORTED"
    assert "A2A-Version: 1.0" in said.facts["suggestion"]
