"""How a task ends whose executor raises, ends without an end, or publishes what it must not."""

from __future__ import annotations

from contextvars import ContextVar

import anyio
import pytest

from discreet.a2a.errors import InvalidStateTransition
from discreet.a2a.types import TaskQuery, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.stores.interface import TaskStore
from discreet.errors import InvalidAgentResponse, OperationError
from support.executors import ME, Scripted, failure_of, request, task_of

pytestmark = pytest.mark.anyio


WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Refused(OperationError, code="REFUSED", http_status=409):
    """The agent declines"""

    because: str


@pytest.mark.parametrize("fault", [RuntimeError("secret"), SystemExit(3), Refused(because="no time")], ids=repr)
async def test_a_task_whose_executor_raises_has_failed_with_declared_facts_only(
    serving, store: TaskStore, fault: BaseException
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        raise fault

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request())
        assert task.status.state is TaskState.FAILED
        assert task.status.message is not None
        parts = task.status.message.parts
        if isinstance(fault, Refused):
            assert parts[0].text == "The agent declines"
            assert parts[1].data["data"] == {
                "code": "REFUSED",
                "retryable": False,
                "details": {"because": "no time"},
            }
        else:
            assert [part.text for part in parts] == ["The agent has failed."]


async def test_an_executor_that_goes_on_after_the_end_is_stopped_by_the_table(serving) -> None:
    refused: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.complete()
        assert events.ended
        for step in (events.working, events.fail, lambda: events.artifact("x")):
            with pytest.raises(InvalidStateTransition):
                await step()
            refused.append("once")

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request())
        assert task.status.state is TaskState.COMPLETED
        assert len(refused) == 3


async def test_what_an_agent_publishes_has_to_be_json(serving, store: TaskStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.artifact("\ud800")
        await events.complete()

    async with serving(Scripted(execute), store) as handler:
        assert isinstance(await failure_of(handler.send(request(), ME)), InvalidAgentResponse)


async def test_what_an_executors_check_returns_is_in_the_context_of_that_message_only(
    serving, store: TaskStore
) -> None:
    class Numbers(Scripted):
        def check(self, context: RequestContext) -> int:
            return int(context.text)

    seen: list[object] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.checked)
        await events.require_input()

    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.checked)

    async with serving(Numbers(execute, cancel), store) as handler:
        task = await task_of(handler, request("1"))
        await task_of(handler, request("2", task_id=task.id))
        await handler.cancel(task.id, None, ME)
    assert seen == [1, 2, None]


async def test_what_an_execution_leaves_behind_reaches_neither_its_sender_nor_the_next_one(serving) -> None:
    seen: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        seen.append(WHO.get())
        WHO.set(context.text)
        left_open = anyio.CancelScope()
        left_open.__enter__()
        left_open.cancel()
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        for text in ("one", "two", "three"):
            task = await task_of(handler, request(text))
            assert task.status.state is TaskState.COMPLETED
            await anyio.lowlevel.checkpoint()  # raises where the scope was left in this task
            assert WHO.get() == "nobody"
    assert seen == ["nobody"] * 3


async def test_an_execution_that_waits_is_cancelled_as_the_one_that_it_began_as(serving) -> None:
    """The sender's own cancellation ends its waiting, and the task's that of the executor."""
    ended: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "quick":
            return await events.complete()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(context.text)

    async with serving(Scripted(execute)) as handler:
        for _ in range(3):  # so that there is a task to run it at once
            await task_of(handler, request("quick"))
        async with anyio.create_task_group() as senders:
            senders.start_soon(task_of, handler, request("slow", context_id="talk"))
            await anyio.wait_all_tasks_blocked()
            senders.cancel_scope.cancel()
        assert not ended
        (slow,) = (await handler.list(TaskQuery(scope="me", context_id="talk"))).tasks
        assert slow.status.state is TaskState.SUBMITTED
        assert (await handler.cancel(slow.id, None, ME)).status.state is TaskState.CANCELED
        await anyio.wait_all_tasks_blocked()
        assert ended == ["slow"]
        assert (await task_of(handler, request("quick"))).status.state is TaskState.COMPLETED
