"""What section 3.1 of A2A 1.0 demands of every binding, asked over both that HTTP has. A test's name begins with its section."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.agents import Agent
from support.a2a_bindings import BINDINGS, Binding, Caller, Said, Tokens, bearer
from support.works import Works, v1
from support.works import agent as works_agent

from .conftest import Serve

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("binding", BINDINGS)]

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def agent(works: Works | None = None, **options: Any) -> Agent:
    return works_agent(works, replies_without_task=True, **options)


def state_of(task: Any) -> str:
    return str(task["status"]["state"])


def kind_of(event: Said) -> str:
    return str(next(iter(event.result)))


async def test_3_1_1_a_message_is_answered_by_a_task_or_a_message(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        assert [*(await caller.call("SendMessage", v1("end"))).result] == ["task"]
        assert [*(await caller.call("SendMessage", v1("reply"))).result] == ["message"]


async def test_3_1_1_an_ended_task_takes_no_message(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("end")
        said = await caller.call("SendMessage", v1("more", task["id"]))
        assert (said.reason, said.facts["taskId"]) == ("UNSUPPORTED_OPERATION", task["id"])


async def test_3_1_2_a_stream_is_the_task_and_its_updates_until_it_ends(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        events = await Caller(binding, client).events("SendStreamingMessage", v1("work say end"))
    assert [kind_of(each) for each in events] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert state_of(events[-1].result["statusUpdate"]) == "TASK_STATE_COMPLETED"


async def test_3_1_2_a_stream_with_a_message_has_nothing_else(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        events = await Caller(binding, client).events("SendStreamingMessage", v1("reply"))
    assert [kind_of(each) for each in events] == ["message"]


async def test_3_1_2_progress_is_told_while_the_agent_works(serve: Serve, binding: Binding) -> None:
    works = Works()
    async with (
        serve(agent(works)) as client,
        Caller(binding, client).stream("SendStreamingMessage", v1("work wait end")) as events,
    ):
        assert [kind_of(await anext(events)) for _ in range(2)] == ["task", "statusUpdate"]
        works.go.set()
        assert [kind_of(each) async for each in events] == ["statusUpdate"]


async def test_3_1_3_a_task_is_as_it_was_sent(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        assert (await caller.call("GetTask", {"id": task["id"]})).result == task
        assert (await caller.call("GetTask", {"id": UNKNOWN})).reason == "TASK_NOT_FOUND"


async def test_3_1_4_tasks_come_in_pages_the_last_changed_first(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        sent = [(await caller.task("say end"))["id"] for _ in range(3)]
        first = (await caller.call("ListTasks", {"pageSize": 2})).result
        last = (await caller.call("ListTasks", {"pageSize": 2, "pageToken": first["nextPageToken"]})).result
    assert [each["id"] for each in (*first["tasks"], *last["tasks"])] == sent[::-1]
    assert first["nextPageToken"] != ""
    assert (last["nextPageToken"], last["totalSize"], last["pageSize"]) == ("", 3, 2)


async def test_3_1_4_artifacts_are_listed_only_where_they_are_asked_for(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("say end")
        without = (await caller.call("ListTasks")).result["tasks"][0]
        with_them = (await caller.call("ListTasks", {"includeArtifacts": True})).result["tasks"][0]
    assert "artifacts" not in without
    assert with_them["artifacts"] == task["artifacts"]


async def test_3_1_4_only_the_callers_own_tasks_are_listed(serve: Serve, binding: Binding) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        ann, bob = (Caller(binding, client, **bearer(name)) for name in ("ann", "bob"))
        task = await ann.task("end")
        assert [each["id"] for each in (await ann.call("ListTasks")).result["tasks"]] == [task["id"]]
        assert (await bob.call("ListTasks")).result["tasks"] == []


async def test_3_1_5_a_task_is_canceled_once(serve: Serve, binding: Binding) -> None:
    async with serve(agent()) as client:
        caller = Caller(binding, client)
        task = await caller.task("ask")
        assert state_of((await caller.call("CancelTask", {"id": task["id"]})).result) == "TASK_STATE_CANCELED"
        said = await caller.call("CancelTask", {"id": task["id"]})
        assert (said.reason, said.facts["currentState"]) == ("TASK_NOT_CANCELABLE", "TASK_STATE_CANCELED")
        assert (await caller.call("CancelTask", {"id": UNKNOWN})).reason == "TASK_NOT_FOUND"


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


async def test_3_1_11_the_extended_card_is_for_callers_that_are_known(serve: Serve, binding: Binding) -> None:
    def extended(public: Any, identity: Any) -> Any:
        return public

    async with serve(agent(extended=extended), provider=Tokens()) as client:
        caller = Caller(binding, client)
        assert (await caller.call("GetExtendedAgentCard")).reason == "FORBIDDEN"
        assert (await caller.call("GetExtendedAgentCard", **bearer("ann"))).result["name"] == "Works"
