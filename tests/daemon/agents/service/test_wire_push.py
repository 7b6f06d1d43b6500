"""Push notifications from an agent to a web server of its caller: order, bodies, headers, both versions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import msgspec
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS

pytest.importorskip("httpcore")
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


class Hook:
    """Records what it receives."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/news"
        self.bodies: list[Any] = []
        self.tokens: list[str | None] = []
        self._news = anyio.Event()

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        received = BufferedByteReceiveStream(stream)
        try:
            async with stream:
                while True:
                    head = (await received.receive_until(b"\r\n\r\n", 65536)).decode()
                    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
                    body = await received.receive_exactly(int(fields["content-length"]))
                    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    self.bodies.append(msgspec.json.decode(body))
                    self.tokens.append(fields.get("x-a2a-notification-token"))
                    self._news.set()
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    async def received(self, count: int) -> list[Any]:
        """Exactly so many."""
        with anyio.fail_after(DEADLINE_SECONDS):
            while len(self.bodies) < count:
                self._news = anyio.Event()
                await self._news.wait()
        assert len(self.bodies) == count
        return self.bodies


@asynccontextmanager
async def hooked() -> AsyncIterator[Hook]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    hook = Hook(listener.extra(anyio.abc.SocketAttribute.local_port))
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hook.serve)
        yield hook
        tasks.cancel_scope.cancel()


def agent() -> Agent:
    return Agent(Talks(), name="Talks", description="Says a lot.")


async def test_callers_of_1_0_are_sent_every_event_in_order() -> None:
    async with hooked() as hook, in_memory(agent(), push_private=True) as peer:
        config = {"url": hook.url, "token": "t0ken-of-the-caller"}
        said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "talk"}]}
        sent = {"message": said, "configuration": {"taskPushNotificationConfig": config}}
        task = (await peer.call("SendMessage", sent))["task"]
        first, working, *chunks, ended = await hook.received(CHUNKS + 3)
        assert first["task"]["id"] == task["id"]
        assert working["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
        texts = [chunk["artifactUpdate"]["artifact"]["parts"][0]["text"] for chunk in chunks]
        assert texts == [str(number) for number in range(CHUNKS)]
        assert ended["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert {*hook.tokens} == {"t0ken-of-the-caller"}


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
        bodies = await hook.received(3)
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
        assert await hook.received(0) == []
