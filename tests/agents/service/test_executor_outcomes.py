"""How a task ends whose executor raises, ends without an end, or publishes what it must not."""

from __future__ import annotations

import pytest

from discreet.a2a.errors import InvalidStateTransition
from discreet.a2a.types import TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.stores.interface import TaskStore
from discreet.errors import InvalidAgentResponse, OperationError
from support.executors import ME, Scripted, failure_of, request, task_of

pytestmark = pytest.mark.anyio


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
