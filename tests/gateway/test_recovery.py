"""Errors of A2A say what to do instead, in both versions, over stdio and over each binding of HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from discreet.a2a.errors import public_card_hint
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.http import asgi
from discreet.testing import in_memory
from support.a2a_bindings import PATHS
from support.asgi_client import JSON, AsgiClient
from support.pages import Page
from support.works import Works, refused, v03, v1

pytestmark = pytest.mark.anyio

HOOK: Final = {"url": "https://example.com/hook"}
POLL: Final = "Poll the task with GetTask, every 1 s, until it has ended or waits for you."
READ: Final = "Read the task with GetTask: nothing more happens to it."


class Case(NamedTuple):
    """What is called, by its name in 1.0 and with params that hold for both versions, about a task in this state; and what the
    error says. `old_code` is that of 0.3 where it is another."""

    method: str
    state: str
    code: int
    suggestion: str
    reason: str = ""
    old_code: int = 0


ENDED: Final = "The task has ended."
CASES: Final = {
    "a config is made": Case(
        "CreateTaskPushNotificationConfig", "open", -32003, POLL, "The agent sends no push notifications."
    ),
    "configs are listed": Case(
        "ListTaskPushNotificationConfigs", "open", -32003, POLL, "The agent sends no push notifications."
    ),
    "a config comes with a message": Case(
        "SendMessage", "config", -32003, POLL, "The agent sends no push notifications."
    ),
    "a message is streamed": Case(
        "SendStreamingMessage",
        "no stream",
        -32004,
        "Send the message with SendMessage, which waits for its task.",
        "The agent does not stream.",
    ),
    "a task is followed": Case("SubscribeToTask", "no stream", -32004, POLL, "The agent does not stream."),
    "an ended task is followed": Case("SubscribeToTask", "ended", -32004, READ, ENDED),
    "an ended task gets a message": Case(
        "SendMessage", "ended", -32004, "Send a message without a task id to begin a new task.", ENDED
    ),
    "an ended task is canceled": Case("CancelTask", "ended", -32002, READ, ENDED),
    "a task is canceled that can't be": Case("CancelTask", "open", -32002, POLL, "The agent does not cancel the task."),
    "there is no extended card": Case(
        "GetExtendedAgentCard", "open", -32004, "", "The agent has no extended card.", -32007
    ),
}

OLD_NAMES: Final = {
    "CreateTaskPushNotificationConfig": "tasks/pushNotificationConfig/set",
    "ListTaskPushNotificationConfigs": "tasks/pushNotificationConfig/list",
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "SubscribeToTask": "tasks/resubscribe",
    "CancelTask": "tasks/cancel",
    "GetExtendedAgentCard": "agent/getAuthenticatedExtendedCard",
}
OLD_PATHS: Final = {
    "CreateTaskPushNotificationConfig": ("POST", "/v1/tasks/{id}/pushNotificationConfigs"),
    "ListTaskPushNotificationConfigs": ("GET", "/v1/tasks/{id}/pushNotificationConfigs"),
    "SendMessage": ("POST", "/v1/message:send"),
    "SendStreamingMessage": ("POST", "/v1/message:stream"),
    "SubscribeToTask": ("GET", "/v1/tasks/{id}:subscribe"),
    "CancelTask": ("POST", "/v1/tasks/{id}:cancel"),
    "GetExtendedAgentCard": ("GET", "/v1/card"),
}


def params_of(case: Case, task_id: str, *, old: bool) -> dict[str, Any]:
    message = (v03 if old else v1)("end", task_id if case.state == "ended" else None)
    match case.method:
        case "SendMessage" if case.state == "config":
            name = "pushNotificationConfig" if old else "taskPushNotificationConfig"
            return {**message, "configuration": {name: HOOK}}
        case "SendMessage" | "SendStreamingMessage":
            return message
        case "CreateTaskPushNotificationConfig":
            return {"taskId": task_id, "pushNotificationConfig": HOOK} if old else {"taskId": task_id, **HOOK}
        case "ListTaskPushNotificationConfigs":
            return {"id" if old else "taskId": task_id}
        case "GetExtendedAgentCard":
            return {}
        case _:
            return {"id": task_id}


class KeepsOn:
    """Works, and has no `cancel`."""

    def __init__(self) -> None:
        self._works = Works()

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await self._works.execute(context, events)


def agent_of(case: Case) -> Agent:
    streaming = case.state != "no stream"
    return Agent(KeepsOn(), name="A", description="A.", push_notifications=False, streaming=streaming)


Ask = Callable[[Case, str], Awaitable[Any]]
"""Calls, and returns the error."""

Begin = Callable[[str], Awaitable[Any]]
"""Sends a text, and returns the task of it."""


@asynccontextmanager
async def stdio(agent: Agent, *, old: bool) -> AsyncGenerator[tuple[Begin, Ask]]:
    async with in_memory(agent) as peer:

        async def ask(case: Case, task_id: str) -> Any:
            method, params = OLD_NAMES[case.method] if old else case.method, params_of(case, task_id, old=old)

            async def call() -> None:
                if case.method in ("SendStreamingMessage", "SubscribeToTask"):
                    async with peer.subscribe(method, params) as events:
                        await anext(events)
                else:
                    await peer.call(method, params)

            return await refused(call())

        async def begin(text: str) -> Any:
            return (await peer.call("SendMessage", v1(text)))["task"]

        yield begin, ask


async def begin_by_http(client: AsgiClient, text: str) -> Any:
    return (await client.call("SendMessage", v1(text), a2a_version="1.0"))["result"]["task"]


@asynccontextmanager
async def jsonrpc(agent: Agent, *, old: bool) -> AsyncGenerator[tuple[Begin, Ask]]:
    served = asgi(agent, isolated=True)
    async with served.lifespan():
        client = AsgiClient(served)

        async def ask(case: Case, task_id: str) -> Any:
            method, version = (OLD_NAMES[case.method], "0.3") if old else (case.method, "1.0")
            async with client.stream(method, params_of(case, task_id, old=old), a2a_version=version) as reply:
                if not reply.headers["content-type"].startswith("text/event-stream"):
                    return (await reply.json())["error"]
                ((_, message),) = [event async for event in reply.events()]
                return message["error"]

        yield lambda text: begin_by_http(client, text), ask


@asynccontextmanager
async def rest(agent: Agent, *, old: bool) -> AsyncGenerator[tuple[Begin, Ask]]:
    served = asgi(agent, isolated=True)
    async with served.lifespan():
        client = AsgiClient(served)

        async def ask(case: Case, task_id: str) -> Any:
            verb, path = (OLD_PATHS if old else PATHS)[case.method]
            params = params_of(case, task_id, old=False)
            if old and "message" in params:
                message = {**params["message"], "content": params["message"].pop("parts")}
                params = {
                    "request": message,
                    "configuration": {"pushNotification": HOOK} if "config" in case.state else {},
                }
            if old and "url" in params:
                params = {"config": {"pushNotificationConfig": HOOK}}
            for name in ("id", "taskId"):
                path = path.replace(f"{{{name}}}", task_id)
            body = msgspec.json.encode({} if "message" not in params and case.method == "CancelTask" else params)
            body = b"" if verb == "GET" or case.method == "SubscribeToTask" else body
            headers = {"a2a-version": "0.3" if old else "1.0", **(JSON if body else {})}
            _, _, answer = await client.request(verb, path, body, headers)
            return msgspec.json.decode(answer)["error"]

        yield lambda text: begin_by_http(client, text), ask


@pytest.mark.parametrize("old", [False, True], ids=["1.0", "0.3"])
@pytest.mark.parametrize("connect", [stdio, jsonrpc, rest])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_error_says_what_to_do_instead(case: Case, connect: Any, old: bool) -> None:
    async with connect(agent_of(case), old=old) as (begin, ask):
        task = await begin("end" if case.state == "ended" else "ask")
        error = await ask(case, task["id"])
    suggestion = case.suggestion
    if case.method == "GetExtendedAgentCard":
        how = "`discreet card` prints it" if connect is stdio else "get it from /.well-known/agent-card.json"
        suggestion = f"Work with the public agent card: {how}."
    if old:
        suggestion = suggestion.replace("GetTask", "tasks/get").replace("SendMessage", "message/send")
    data = error.get("data", error.get("details"))
    facts = data if isinstance(data, dict) else data[0]["metadata"]
    if connect is not rest:
        assert error["code"] == (case.old_code if old and case.old_code else case.code)
    assert (facts["reason"], facts["suggestion"]) == (case.reason, suggestion)
    if case.state == "ended":
        assert facts["completedAt"] == task["status"]["timestamp"]
        assert facts["taskId"] == task["id"]


def test_the_page_on_errors_lists_what_to_do_instead() -> None:
    listed = {row[2] for row in Page("docs/errors.md").rows("What an agent does not do")}
    said = {case.suggestion for case in CASES.values() if case.suggestion}
    said |= {public_card_hint(url) for url in ("", "http://a/")}
    assert said <= listed
