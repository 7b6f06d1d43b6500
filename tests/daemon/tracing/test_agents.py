"""The spans of an agent: the work on a task, what it stores, and what it sends to its caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from discreet import Context, OperationError, Service
from discreet.a2a.types import new_id
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.testing import in_memory
from support.executors import Execute, Scripted
from support.spans import Spans, attributes
from support.waits import DEADLINE_SECONDS, until
from support.webhooks import hooked, status

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry"


class Refused(OperationError, code="REFUSED"):
    """The agent does not do that."""


async def work(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    await events.complete("done")


def agent_of(execute: Execute = work) -> Agent:
    return Agent(Scripted(execute), name="Worker", description="Works.")


def message(text: str = CANARY, **configuration: Any) -> dict[str, Any]:
    said = {"messageId": f"{CANARY}{new_id()}", "contextId": CANARY, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": said, "configuration": configuration, "metadata": {CANARY: CANARY}}


async def test_a_task_is_stored_and_pushed_for_the_request_that_began_it(spans: Spans, tmp_path: Path) -> None:
    pytest.importorskip("h11")
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with hooked() as hook, in_memory(agent_of(), otel=True, push_private=True, store=store) as peer:
        hooks = {"url": f"{hook.url}/{CANARY}?{CANARY}", "token": CANARY}
        sent = message(taskPushNotificationConfig=hooks)
        task = (await peer.call("SendMessage", sent, service_params={"a2a-version": "1.0"}))["task"]
        await hook.received(3)
    tree = spans.tree()
    assert tree[:2] == ["CLIENT SendMessage", "  SERVER SendMessage"]
    assert "    INTERNAL invoke_agent Worker" in tree
    pushes = [span for span in spans.all() if span.name == "POST"]
    commits = [span for span in spans.all() if span.name == "commit"]
    assert len(pushes) == 3
    assert {(span.kind, attributes(span).get("db.system.name")) for span in commits} == {(SpanKind.CLIENT, "sqlite")}
    (first,) = {span.context.trace_id for span in spans.all() if span.context is not None}
    assert {span.kind for span in pushes} == {SpanKind.CLIENT}
    sent_for = [request.headers["traceparent"].split("-")[1:3] for request in hook.requests]
    assert sent_for == [
        [trace.format_trace_id(first), trace.format_span_id(span.context.span_id)]  # type: ignore[union-attr]
        for span in pushes
    ]
    run = spans.named("invoke_agent Worker")
    assert attributes(run) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Worker",
        "discreet.task.id": task["id"],
        "discreet.task.state": "completed",
    }
    assert run.context is not None
    assert run.context.span_id in {span.parent.span_id for span in (*commits, *pushes) if span.parent is not None}
    assert CANARY not in spans.text()


async def test_each_attempt_of_a_notification_is_a_span_and_tells_what_was_answered(spans: Spans) -> None:
    pytest.importorskip("h11")
    async with hooked(status(400)) as hook, in_memory(agent_of(), otel=True, push_private=True) as peer:
        await peer.call("SendMessage", message(taskPushNotificationConfig={"url": hook.url}))
        await hook.received(3)
    refused, *others = [span for span in spans.all() if span.name == "POST"]
    assert attributes(refused) == {"http.request.method": "POST", "http.response.status_code": 400, "error.type": "400"}
    assert refused.status.status_code is StatusCode.ERROR
    assert [attributes(span) for span in others] == [{"http.request.method": "POST"}] * 2


async def fail(context: RequestContext, events: TaskEvents) -> None:
    raise RuntimeError(CANARY)


async def refuse(context: RequestContext, events: TaskEvents) -> None:
    raise Refused


async def forget(context: RequestContext, events: TaskEvents) -> None:
    await events.working()


async def give_up(context: RequestContext, events: TaskEvents) -> None:
    await events.fail(CANARY)


async def ask(context: RequestContext, events: TaskEvents) -> None:
    await events.require_input(CANARY)


@pytest.mark.parametrize(
    ("execute", "state", "error", "expected"),
    [
        (work, "completed", None, StatusCode.UNSET),
        (ask, "input_required", None, StatusCode.UNSET),
        (give_up, "failed", None, StatusCode.UNSET),
        (refuse, "failed", "REFUSED", StatusCode.UNSET),
        (fail, "failed", "RuntimeError", StatusCode.ERROR),
        (forget, "failed", "unfinished", StatusCode.ERROR),
    ],
)
async def test_the_work_on_a_task_tells_its_state_and_is_an_error_where_the_agent_has_failed(
    spans: Spans, execute: Execute, state: str, error: str | None, expected: StatusCode
) -> None:
    async with in_memory(agent_of(execute), otel=True) as peer:
        await peer.call("SendMessage", message())
    run = spans.named("invoke_agent Worker")
    assert (attributes(run)["discreet.task.state"], attributes(run).get("error.type")) == (state, error)
    assert run.status.status_code is expected
    assert CANARY not in spans.text()


async def test_each_message_to_a_task_is_worked_on_for_its_own_request(spans: Spans) -> None:
    async def answer(context: RequestContext, events: TaskEvents) -> None:
        await (events.require_input() if context.text == "first" else events.complete())

    async with in_memory(agent_of(answer), otel=True) as peer:
        task = (await peer.call("SendMessage", message("first")))["task"]
        second = message("second")
        second["message"] |= {"taskId": task["id"]}
        await peer.call("SendMessage", second)
    requests = [span for span in spans.all() if span.kind is SpanKind.SERVER]
    runs = [span for span in spans.all() if span.name == "invoke_agent Worker"]
    assert [span.parent and span.parent.span_id for span in runs] == [
        span.context.span_id  # type: ignore[union-attr]
        for span in requests
    ]
    assert len({span.context.trace_id for span in spans.all()}) == 2  # type: ignore[union-attr]


async def test_a_commit_of_several_tasks_is_linked_with_the_work_on_each(spans: Spans, tmp_path: Path) -> None:
    both, may_end = anyio.Event(), anyio.Event()
    count = 0

    async def together(context: RequestContext, events: TaskEvents) -> None:
        nonlocal count
        count += 1
        if count == 2:
            both.set()
        await may_end.wait()
        await events.complete()

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with in_memory(agent_of(together), otel=True, store=store) as peer, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(peer.call, "SendMessage", message())
        await both.wait()
        may_end.set()
    runs = {span.context.span_id for span in spans.all() if span.name.startswith("invoke_agent") and span.context}
    last = [span for span in spans.all() if span.name == "commit"][-1]
    assert (last.parent, attributes(last)) == (
        None,
        {"db.system.name": "sqlite", "db.operation.name": "commit", "db.operation.batch.size": 2},
    )
    assert {link.context.span_id for link in last.links} == runs


async def test_a_skill_is_a_child_of_the_work_on_its_task(spans: Spans) -> None:
    shop = Service("shop", uses=["shop/price"])

    @shop.query
    async def ask(ctx: Context) -> int:
        result: int = await ctx.call("shop/price")
        return result

    @shop.query(inline=True)
    def price() -> int:
        return 1

    async with in_memory(shop, otel=True) as peer:
        data = {"data": {"skill": "shop/ask"}, "mediaType": "application/json"}
        said = {"messageId": "m", "role": "ROLE_USER", "parts": [data]}
        answer = await peer.call("SendMessage", {"message": said})
    assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert spans.tree() == [
        "CLIENT SendMessage",
        "  SERVER SendMessage",
        "    INTERNAL invoke_agent operations",
        "      INTERNAL shop/ask",
        "        INTERNAL shop/price",
    ]


@pytest.mark.parametrize("queued", [True, False], ids=["from the queue", "left to the owner"])
async def test_what_another_daemon_executes_is_a_child_of_the_request_that_asked_for_it(
    spans: Spans, tmp_path: Path, queued: bool
) -> None:
    may_end = anyio.Event()

    async def answer(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "first" and not queued:
            await events.working()
            await may_end.wait()
            await events.require_input()
        else:
            await events.complete()

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with (
        in_memory(agent_of(answer), otel=True, role="front", store=store) as front,
        in_memory(agent_of(answer), otel=True, role="worker", store=store),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = (await front.call("SendMessage", message("first", returnImmediately=not queued)))["task"]
            if not queued:

                async def works() -> bool:
                    found = await front.call("GetTask", {"id": task["id"]})
                    return bool(found["status"]["state"] == "TASK_STATE_WORKING")

                await until(works)
                second = message("second", returnImmediately=True)
                second["message"] |= {"taskId": task["id"]}
                await front.call("SendMessage", second)
                may_end.set()
                await until(lambda: len([each for each in spans.all() if each.name.startswith("invoke_agent")]) == 2)
    asked = [span for span in spans.all() if span.kind is SpanKind.SERVER and span.name == "SendMessage"]
    runs = [span for span in spans.all() if span.name == "invoke_agent Worker"]
    assert len(runs) == len(asked) == (1 if queued else 2)
    for run, request in zip(runs, asked, strict=True):
        assert run.parent is not None and request.context is not None
        assert (run.parent.trace_id, run.parent.span_id) == (request.context.trace_id, request.context.span_id)
        assert run.parent.is_remote
