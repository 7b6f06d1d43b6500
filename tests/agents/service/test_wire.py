"""The agent's methods through a daemon, in both versions: every result and every error, push notifications, and skills."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from discreet.a2a.types import new_id
from discreet.agents import Agent, InvalidStateTransition, RequestContext, TaskEvents
from discreet.client import Peer, RemoteError
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS
from support.webhooks import Hook, hooked
from support.works import Works, refused, v03, v1
from support.works import agent as works_agent

pytestmark = pytest.mark.anyio

INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"}

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def agent(works: Works | None = None, **options: Any) -> Agent:
    return works_agent(works, replies_without_task=True, **options)


async def collected(peer: Peer, method: str, params: Any, **options: Any) -> list[Any]:
    return [each async for each in peer.subscribe(method, params, timeout=DEADLINE_SECONDS, **options)]


# -- the happy paths -----------------------------------------------------------------------------------------------


async def test_all_methods_of_1_0_do_what_they_are_for() -> None:
    async with in_memory(agent()) as peer:
        asked = (await peer.call("SendMessage", v1("work say ask")))["task"]
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert await peer.call("GetTask", {"id": asked["id"]}) == asked
        listed = await peer.call("ListTasks", {})
        assert (listed["totalSize"], listed["pageSize"], listed["nextPageToken"]) == (1, 50, "")
        assert listed["tasks"] == [{name: value for name, value in asked.items() if name != "artifacts"}]
        streamed = await collected(peer, "SendStreamingMessage", v1("say end", asked["id"]))
        assert [*streamed[0]] == ["task"]
        assert [next(iter(each)) for each in streamed[1:]] == ["artifactUpdate", "statusUpdate"]
        assert streamed[1]["artifactUpdate"]["append"] is True
        assert (await peer.call("SendMessage", v1("reply")))["message"]["parts"] == [{"text": "pong"}]
        asked = (await peer.call("SendMessage", v1("ask")))["task"]
        canceled = await peer.call("CancelTask", {"id": asked["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"


async def test_all_methods_of_0_3_do_what_they_are_for() -> None:
    async with in_memory(agent()) as peer:
        asked = await peer.call("message/send", v03("work say ask"))
        assert (asked["kind"], asked["status"]["state"]) == ("task", "input-required")
        assert await peer.call("tasks/get", {"id": asked["id"]}) == asked
        async with peer.subscribe("tasks/resubscribe", {"id": asked["id"]}) as again:
            assert await anext(again) == asked
            streamed = await collected(peer, "message/stream", v03("say end", asked["id"]))
            assert [each["kind"] for each in streamed] == ["task", "artifact-update", "status-update"]
            assert [each.get("final") for each in streamed] == [None, None, True]
            working, *rest = [each async for each in again]
            assert (working["kind"], working["status"]["state"], working["final"]) == (
                "status-update",
                "working",
                False,
            )
            assert rest == streamed[1:]
        assert (await peer.call("message/send", v03("reply")))["kind"] == "message"
        asked = await peer.call("message/send", v03("ask"))
        assert (await peer.call("tasks/cancel", {"id": asked["id"]}))["status"]["state"] == "canceled"


# -- the errors ----------------------------------------------------------------------------------------------------


async def test_each_error_of_a_task_has_its_exact_data_in_both_versions() -> None:
    async with in_memory(agent(push_notifications=False)) as peer:
        task = (await peer.call("SendMessage", v1()))["task"]
        ended = task["id"]
        suggestion = "The task may have been removed. Send a new message."
        gone = {"taskId": UNKNOWN, "suggestion": suggestion}
        assert await refused(peer.call("tasks/get", {"id": UNKNOWN})) == {
            "code": -32001,
            "message": "Task not found",
            "data": gone,
        }
        for method in ("GetTask", "CancelTask"):
            assert await refused(peer.call(method, {"id": UNKNOWN})) == {
                "code": -32001,
                "message": "Task not found",
                "data": [{**INFO, "reason": "TASK_NOT_FOUND", "metadata": gone}],
            }
        kept = {"taskId": ended, "completedAt": task["status"]["timestamp"], "reason": "The task has ended."}
        read = "Read the task with {}: nothing more happens to it."
        old = {**kept, "currentState": "completed", "suggestion": read.format("tasks/get")}
        found = await refused(peer.call("tasks/cancel", {"id": ended}))
        assert (found["code"], found["data"]) == (-32002, old)
        found = await refused(collected(peer, "tasks/resubscribe", {"id": ended}))
        assert (found["code"], found["data"]) == (-32004, old)
        found = await refused(peer.call("CancelTask", {"id": ended}))
        metadata = {**kept, "currentState": "TASK_STATE_COMPLETED", "suggestion": read.format("GetTask")}
        assert (found["code"], found["data"]) == (
            -32002,
            [{**INFO, "reason": "TASK_NOT_CANCELABLE", "metadata": metadata}],
        )
        begin = {**metadata, "suggestion": "Send a message without a task id to begin a new task."}
        for work, wanted in (
            (peer.call("SendMessage", v1("end", ended)), begin),
            (collected(peer, "SubscribeToTask", {"id": ended}), metadata),
        ):
            (info,) = (found := await refused(work))["data"]
            assert (found["code"], info["reason"], info["metadata"]) == (-32004, "UNSUPPORTED_OPERATION", wanted)


async def test_a_message_that_is_sent_again_gets_its_task_in_either_version_and_other_content_is_invalid() -> None:
    """(-32602.)"""
    async with in_memory(agent()) as peer:
        said, said_03 = v1("work end"), v03("work end")
        said_03["message"]["messageId"] = said["message"]["messageId"]
        task = (await peer.call("SendMessage", said))["task"]
        assert (await peer.call("SendMessage", said))["task"] == task
        assert await collected(peer, "SendStreamingMessage", said) == [{"task": task}]
        assert (await peer.call("message/send", said_03))["id"] == task["id"]
        said["message"]["parts"], said_03["message"]["metadata"] = [{"text": "end"}], {"n": 1}
        expected = {
            "param": "message.messageId",
            "expected": "a new id, or the content of the message that has this one",
            "received": "other content",
        }
        for work in (
            peer.call("SendMessage", said),
            peer.call("message/send", said_03),
            collected(peer, "SendStreamingMessage", said),
        ):
            assert (found := await refused(work))["code"] == -32602
            assert found["data"] == expected
        assert (await peer.call("ListTasks", {}))["totalSize"] == 1
    async with in_memory(agent(deduplicates_messages=False)) as peer:
        tasks = [(await peer.call("SendMessage", said))["task"]["id"] for _ in range(2)]
        assert len({*tasks}) == 2


async def test_what_an_agent_does_not_do_comes_with_what_to_do_instead() -> None:
    """(-32003, -32004 and -32007.)"""
    cases: list[tuple[str, Any, int]] = [
        ("tasks/pushNotificationConfig/list", {"id": UNKNOWN}, -32003),
        ("ListTaskPushNotificationConfigs", {"taskId": UNKNOWN}, -32003),
        ("agent/getAuthenticatedExtendedCard", None, -32007),
        ("GetExtendedAgentCard", None, -32004),
    ]
    async with in_memory(agent(push_notifications=False)) as peer:
        for method, params, code in cases:
            found = await refused(peer.call(method, params))
            facts = found["data"] if isinstance(found["data"], dict) else found["data"][0]["metadata"]
            instead = "Work with the public agent card: `discreet card` prints it."
            if code == -32003:
                get = "tasks/get" if "/" in method else "GetTask"
                instead = f"Poll the task with {get}, every 1 s, until it has ended or waits for you."
            assert (found["code"], facts["suggestion"]) == (code, instead)


async def test_an_invalid_transition_names_states_as_the_callers_version_does() -> None:
    class Stubborn:
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            await events.working()
            raise InvalidStateTransition(current="TASK_STATE_WORKING", target="TASK_STATE_INPUT_REQUIRED")

        async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...

    async with in_memory(Agent(Stubborn(), name="Stubborn", description="Goes on.")) as peer:
        task = (await peer.call("SendMessage", v1()))["task"]["id"]
        for method, details in (
            ("tasks/get", {"current": "working", "target": "input-required"}),
            ("GetTask", {"current": "TASK_STATE_WORKING", "target": "TASK_STATE_INPUT_REQUIRED"}),
        ):
            _, part = (await peer.call(method, {"id": task}))["status"]["message"]["parts"]
            assert part["data"]["data"]["details"] == details


async def test_descriptions_of_methods_have_no_indentation() -> None:
    async with in_memory(agent()) as peer:
        texts = [each["description"] for each in await peer.call("listMethods")]
    assert not [text for text in texts if "\n " in text or text != text.strip()]


@pytest.mark.parametrize(
    ("mode", "taken"), [("application/json", True), ("application/vnd.x+json", True), ("text/*", False)]
)
async def test_data_without_a_media_type_is_json(mode: str, taken: bool) -> None:
    async with in_memory(agent(input_modes=[mode])) as peer:
        for method, params in (
            ("SendMessage", {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"data": {}}]}}),
            (
                "message/send",
                {"message": {"messageId": new_id(), "role": "user", "parts": [{"kind": "data", "data": {}}]}},
            ),
        ):
            if taken:
                await peer.call(method, params)
            else:
                assert (await refused(peer.call(method, params)))["code"] == -32005


@pytest.mark.parametrize(
    ("version", "first", "second"),
    [
        ("1.0", 0, -32009),
        ("1.0.3", 0, -32009),
        ("0.3", -32009, 0),
        ("0.3.1", -32009, 0),
        ("9.9", -32009, -32009),
        ("", 0, 0),
    ],
)
async def test_a_method_is_called_in_its_own_version_or_in_none(version: str, first: int, second: int) -> None:
    async with in_memory(agent()) as peer:
        for code, method, params in ((first, "SendMessage", v1()), (second, "message/send", v03())):
            work = peer.call(method, params, service_params={"A2A-Version": version})
            if code:
                assert (await refused(work))["code"] == code
            else:
                await work


async def test_callers_with_tokens_see_their_own_tasks_and_others_are_refused() -> None:
    tokens = [f"{who}:{hashlib.sha256(who.encode()).hexdigest()}" for who in ("ann", "bob")]
    ann, bob = ({"authorization": f"Bearer {who}"} for who in ("ann", "bob"))
    async with in_memory(agent(), tokens=tokens) as peer:
        asked = (await peer.call("SendMessage", v1("ask"), service_params=ann))["task"]["id"]
        for method in ("GetTask", "CancelTask"):
            assert (await refused(peer.call(method, {"id": asked}, service_params=bob)))["code"] == -32001
        assert (await refused(peer.call("SendMessage", v1("end", asked), service_params=bob)))["code"] == -32001
        assert (await refused(collected(peer, "SubscribeToTask", {"id": asked}, service_params=bob)))["code"] == -32001
        assert (await peer.call("ListTasks", {}, service_params=bob))["totalSize"] == 0
        assert (await peer.call("ListTasks", {}, service_params=ann))["totalSize"] == 1
        assert (await refused(peer.call("ListTasks", {})))["data"]["code"] == "FORBIDDEN"


async def test_errors_before_the_method_runs_are_written_in_its_version_too() -> None:
    tokens = [f"ann:{hashlib.sha256(b'ann').hexdigest()}"]
    async with in_memory(agent(), tokens=tokens) as peer:
        with pytest.raises(RemoteError) as new:
            await peer.call("ListTasks", {})
        with pytest.raises(RemoteError) as old:
            await peer.call("tasks/get", {"id": UNKNOWN})
    assert new.value.data[0]["reason"] == "FORBIDDEN"
    assert old.value.data["code"] == "FORBIDDEN"
    assert new.value.failure == old.value.failure


pytest.importorskip("h11")

CHUNKS = 40


class Talks:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        for number in range(CHUNKS):
            await events.artifact(str(number), artifact_id="a", append=True)
        await (events.require_input() if context.text == "ask" else events.complete())

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


async def received(hook: Hook, count: int) -> list[Any]:
    """The notifications, of which there are exactly so many."""
    await hook.received(count)
    assert len(hook.requests) == count
    return [msgspec.json.decode(body) for body in hook.bodies]


def talking() -> Agent:
    return Agent(Talks(), name="Talks", description="Says a lot.")


async def test_callers_of_1_0_are_sent_every_event_in_order() -> None:
    async with hooked() as hook, in_memory(talking(), push_private=True) as peer:
        config = {"url": hook.url, "token": "t0ken-of-the-caller"}
        said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "talk"}]}
        sent = {"message": said, "configuration": {"taskPushNotificationConfig": config}}
        task = (await peer.call("SendMessage", sent))["task"]
        first, working, *chunks, ended = await received(hook, CHUNKS + 3)
        assert first["task"]["id"] == task["id"]
        assert working["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
        texts = [chunk["artifactUpdate"]["artifact"]["parts"][0]["text"] for chunk in chunks]
        assert texts == [str(number) for number in range(CHUNKS)]
        assert ended["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert {request.headers["x-a2a-notification-token"] for request in hook.requests} == {"t0ken-of-the-caller"}


async def test_callers_of_0_3_are_sent_the_task_whenever_its_status_changes() -> None:
    async with hooked() as hook, in_memory(talking(), push_private=True) as peer:
        said = {"messageId": new_id(), "role": "user", "parts": [{"kind": "text", "text": "ask"}]}
        asked = await peer.call("message/send", {"message": said})
        put = {"taskId": asked["id"], "pushNotificationConfig": {"url": hook.url, "id": "c"}}
        kept = await peer.call("tasks/pushNotificationConfig/set", put)
        assert kept == put
        assert await peer.call("tasks/pushNotificationConfig/list", {"id": asked["id"]}) == [put]
        said = {
            "messageId": new_id(),
            "role": "user",
            "taskId": asked["id"],
            "parts": [{"kind": "text", "text": "end"}],
        }
        ended = await peer.call("message/send", {"message": said})
        bodies = await received(hook, 3)
        assert {body["kind"] for body in bodies} == {"task"}
        assert bodies[-1] == ended


async def test_configs_are_put_got_listed_and_deleted_and_then_nothing_is_sent() -> None:
    async with hooked() as hook, in_memory(talking(), push_private=True) as peer:
        said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "ask"}]}
        task = (await peer.call("SendMessage", {"message": said}))["task"]
        put = {"taskId": task["id"], "url": hook.url, "id": "c"}
        one = {"taskId": task["id"], "id": "c"}
        assert await peer.call("CreateTaskPushNotificationConfig", put) == put
        assert await peer.call("GetTaskPushNotificationConfig", one) == put
        assert await peer.call("ListTaskPushNotificationConfigs", {"taskId": task["id"]}) == {"configs": [put]}
        for _ in range(2):
            assert await peer.call("DeleteTaskPushNotificationConfig", one) == {}
        assert await peer.call("ListTaskPushNotificationConfigs", {"taskId": task["id"]}) == {"configs": []}
        await peer.call("SendMessage", {"message": {**said, "taskId": task["id"]}})
        assert hook.requests == []
