"""What section 5 of A2A 1.0 demands of bindings and of their JSON. A test's name begins with its section."""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.errors import ERROR_TABLE, AgentFailure
from support.a2a_bindings import BINDINGS, PATHS, Binding, Caller, HttpJson, JsonRpc
from support.works import agent as works_agent
from support.works import v1

from .conftest import Serve

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("binding", BINDINGS)
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def agent(**options: Any) -> Any:
    return works_agent(replies_without_task=True, **options)


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
