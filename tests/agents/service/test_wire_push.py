"""Push notifications from an agent to a web server of its caller: order, bodies, headers, both versions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.testing import in_memory
from support.webhooks import Hook, hooked

pytest.importorskip("h11")
pytestmark = pytest.mark.anyio

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


def agent() -> Agent:
    return Agent(Talks(), name="Talks", description="Says a lot.")


async def test_callers_of_1_0_are_sent_every_event_in_order() -> None:
    async with hooked() as hook, in_memory(agent(), push_private=True) as peer:
        config = {"url": hook.url, "token": "t0ken-of-the-caller"}
        said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "talk"}]}
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
    async with hooked() as hook, in_memory(agent(), push_private=True) as peer:
        said = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "ask"}]}
        asked = await peer.call("message/send", {"message": said})
        put = {"taskId": asked["id"], "pushNotificationConfig": {"url": hook.url, "id": "c"}}
        kept = await peer.call("tasks/pushNotificationConfig/set", put)
        assert kept == put
        assert await peer.call("tasks/pushNotificationConfig/list", {"id": asked["id"]}) == [put]
        said = {"messageId": "m", "role": "user", "taskId": asked["id"], "parts": [{"kind": "text", "text": "end"}]}
        ended = await peer.call("message/send", {"message": said})
        bodies = await received(hook, 3)
        assert {body["kind"] for body in bodies} == {"task"}
        assert bodies[-1] == ended


async def test_configs_are_put_got_listed_and_deleted_and_then_nothing_is_sent() -> None:
    async with hooked() as hook, in_memory(agent(), push_private=True) as peer:
        said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "ask"}]}
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
