"""What an operator changes in a store while daemons work on it: tasks are cancelled, and begun again from their messages."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.a2a.types import Message, Part, Role, Task, TaskState, TaskStatus
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.operating import NotCancelledError, UnknownTaskError, WrongStateError, cancel, fork, retry
from discreet.agents.request_handler import Caller
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.agents.timeline import MAX_OPERATION, current_task, summary_of
from discreet.daemon.operations.identity import Identity
from support.executors import Scripted, ask_then_echo, for_ever, request, task_of, until_state
from support.places import NewStore
from support.roles import begun
from support.sqlite_files import opened
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


def test_a_list_shows_names_that_a_caller_made_up_scrubbed_and_cut() -> None:
    message = Message("m", Role.USER, (Part(data={"skill": "password=hunter2-secret " + "x" * 10_000}),))
    summary = summary_of(Task("t", "c", TaskStatus(TaskState.FAILED), history=(message,)), "token=hunter2-secret", None)
    assert "hunter2" not in f"{summary.operation}{summary.caller}" and len(summary.operation) <= MAX_OPERATION + 20


async def test_the_owner_of_a_task_cancels_it_when_an_operator_asks(serving, new_store: NewStore) -> None:
    async with serving(Scripted(for_ever), new_store()) as handler, opened(new_store()) as operator:
        task = await begun(handler)
        assert (await cancel(operator, task.id, DEADLINE_SECONDS)).status.state is TaskState.CANCELED
        await until_state(handler, task.id, TaskState.CANCELED)
        with pytest.raises(WrongStateError, match="canceled"):
            await cancel(operator, task.id, 1)


async def test_a_task_without_an_owner_is_cancelled_by_the_operator_and_daemons_hear_of_it(
    serving, new_store: NewStore
) -> None:
    async with serving(Scripted(ask_then_echo), new_store()) as handler, opened(new_store()) as operator:
        task = await task_of(handler, request())
        await cancel(operator, task.id, 0)
        await until_state(handler, task.id, TaskState.CANCELED)


async def test_a_task_of_a_dead_daemon_is_cancelled_by_the_operator(daemon_on, tmp_path: Path) -> None:
    async with daemon_on(tmp_path / "tasks.db", Scripted(for_ever), killed=True) as handler:
        task = await begun(handler)
    async with opened(SqliteStore(str(tmp_path / "tasks.db"))) as operator:
        assert (await cancel(operator, task.id, DEADLINE_SECONDS)).status.state is TaskState.CANCELED


async def test_an_owner_that_does_not_cancel_in_time_is_named(daemon_on, tmp_path: Path) -> None:
    async def never(context: RequestContext, events: TaskEvents) -> None:
        await anyio.sleep_forever()

    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(for_ever, never)) as handler, opened(SqliteStore(str(path))) as operator:
        task = await begun(handler)
        with pytest.raises(NotCancelledError, match=task.id):
            await cancel(operator, task.id, 0.3)
        with pytest.raises(UnknownTaskError):
            await cancel(operator, "unknown", 1)


class Seen:
    """An executor that fails what says so, and tells what it was given."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.contexts.append(context)
        if len(self.contexts) == 1:
            await events.fail("Out of flour.")
        elif len(context.task.history) == 1:
            await events.require_input("How many?")
        else:
            await events.complete()


async def test_a_failed_task_is_tried_again_as_a_new_one_of_its_caller_without_scopes_that_are_not_given(
    serving, new_store: NewStore
) -> None:
    seen = Seen()
    ada = Caller("ada", "1.0", Identity("ada", frozenset({"bread", "cake"})))
    async with serving(seen, new_store()) as handler, opened(new_store()) as operator:
        task = await handler.send(request("rolls", message_id="m"), ada)
        assert isinstance(task, Task)
        again = await retry(operator, task.id, ["bread"])
        await until_state_of(handler, again.id, TaskState.INPUT_REQUIRED, ada)
        with pytest.raises(WrongStateError, match="input-required"):
            await retry(operator, again.id)
    first, second = seen.contexts
    assert second.text == first.text == "rolls"
    assert second.identity == Identity("ada", frozenset({"bread"}))
    assert second.message is not None and second.message.message_id != "m"
    assert (second.message.reference_task_ids, second.task.context_id) == ((task.id,), task.context_id)
    assert again.id != task.id


async def test_a_fork_has_the_history_up_to_a_message_and_leaves_the_task_alone(serving, new_store: NewStore) -> None:
    seen = Seen()
    seen.contexts = [RequestContext(Task("", "", None))]  # type: ignore[arg-type, list-item]  # none fails
    async with serving(seen, new_store()) as handler, opened(new_store()) as operator:
        asked = await task_of(handler, request("rolls"))
        done = await task_of(handler, request("six", task_id=asked.id))
        first, question, answer = done.history
        forked = await fork(operator, done.id, question.message_id, "seven")
        await until_state(handler, forked.id, TaskState.COMPLETED)
        assert [part.text for message in forked.history for part in message.parts] == ["rolls", "How many?", "seven"]
        last = await fork(operator, done.id, "")
        assert [part.text for message in last.history for part in message.parts] == ["rolls", "How many?", "six"]
        assert {message.task_id for message in last.history} == {last.id}
        for message_id, says in ((question.message_id, "agent's"), ("unknown", "no message unknown")):
            with pytest.raises(WrongStateError, match=says):
                await fork(operator, done.id, message_id)
        stored = await operator.load(done.id)
        assert stored is not None and current_task(stored) == done
        assert (first.role, answer.role) == (Role.USER, Role.USER)


async def until_state_of(handler, task_id: str, state: TaskState, caller: Caller) -> None:
    async def has_it() -> bool:
        return (await handler.get(task_id, caller)).status.state is state

    await until(has_it)
