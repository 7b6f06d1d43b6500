"""Faults of an executor, its store or a task: the task gets a final state, and the daemon goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from discreet.a2a.types import SendRequest, TaskCreated
from discreet.agents import Agent, Message, Part, RequestContext, Role, Task, TaskEvents, TaskState, TaskStatus
from discreet.agents.request_handler import Caller
from discreet.agents.stores.checks import check_changes
from discreet.agents.stores.interface import CommitRefusal, StoreError, TaskChange
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Internal
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

ALICE = Caller("alice", "1.0")
HELLO = SendRequest(Message("m", Role.USER, (Part(text="hello"),)))


class Executor:
    """An executor whose work is a function."""

    def __init__(self, execute: Callable[[RequestContext, TaskEvents], Any]) -> None:
        self.execute = execute

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


async def test_an_executor_whose_clean_up_fails_does_not_end_the_daemon(serving: Any) -> None:
    begun = anyio.Event()

    async def fail_at_last() -> None:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            raise ValueError

    async def untidy(context: RequestContext, events: TaskEvents) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_at_last)
            await anyio.sleep_forever()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with serving(Executor(untidy)) as handler, anyio.create_task_group() as tasks:
            tasks.start_soon(handler.send, HELLO, ALICE)
            await begun.wait()
            tasks.cancel_scope.cancel()


async def test_a_store_that_fails_while_a_new_task_publishes_more_loses_that_task_only(serving: Any) -> None:
    class Failing:
        """Its first commit fails, after the executor has published more."""

        def __init__(self) -> None:
            self.inner = MemoryStore()
            self.said_more = anyio.Event()
            self.failed = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
            check_changes(changes)
            if self.failed:
                return await self.inner.commit(changes)
            await self.said_more.wait()
            self.failed = True
            raise StoreError("the disk is full")

    store = Failing()

    async def talk(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await anyio.lowlevel.checkpoint()
        await events.artifact("more")
        store.said_more.set()
        await events.complete()

    async with serving(Executor(talk), store, replies_without_task=True) as handler:  # else it waits for the commit
        with anyio.fail_after(DEADLINE_SECONDS):
            with pytest.raises(FailureError) as error:
                await handler.send(HELLO, ALICE)
            assert error.value.failure == Internal()
            task = await handler.send(HELLO, ALICE)
        assert task.status.state is TaskState.COMPLETED


async def test_a_sender_gets_its_task_as_it_stopped_though_the_next_message_has_it_working_again(serving: Any) -> None:
    async def ask(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "hello again":
            begun.set()
            await queued.wait()
        if context.text == "for long":
            await anyio.sleep_forever()
        await events.require_input()

    answers: list[Task | Message] = []
    begun, queued = anyio.Event(), anyio.Event()

    async def say(text: str, task_id: str) -> None:
        answers.append(
            await handler.send(SendRequest(Message("m", Role.USER, (Part(text=text),), task_id=task_id)), ALICE)
        )

    async with serving(Executor(ask)) as handler:
        task = await handler.send(HELLO, ALICE)
        assert isinstance(task, Task)
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(say, "hello again", task.id)
                await begun.wait()
                tasks.start_soon(say, "for long", task.id)
                await anyio.lowlevel.checkpoint()
                queued.set()
                while not answers:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
    (answer,) = answers
    assert isinstance(answer, Task) and answer.status.state is TaskState.INPUT_REQUIRED


async def test_an_event_that_no_version_can_write_is_refused_and_fails_its_task() -> None:
    async def odd(context: RequestContext, events: TaskEvents) -> None:
        await events.complete(Part(data=msgspec.msgpack.Ext(1, b"")) if context.text == "odd" else None)

    def send(text: str) -> dict[str, Any]:
        config = {"url": "http://127.0.0.1:1/"}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
        return {"message": message, "configuration": {"taskPushNotificationConfig": config}}

    async with in_memory(Agent(Executor(odd), name="odd", description="Odd."), push_private=True) as peer:
        answer = await peer.call("SendMessage", send("odd"))
        assert answer["task"]["status"]["state"] == "TASK_STATE_FAILED"
        answer = await peer.call("SendMessage", send("even"))
        assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def created(task_id: str, owner: str) -> TaskChange:
    task = Task(task_id, "c", TaskStatus(TaskState.WORKING))
    return TaskChange(
        task_id=task_id,
        expected_generation=0,
        events=(TaskCreated(task),),
        scope="",
        context_id="c",
        state=TaskState.WORKING,
        status_timestamp="",
        owner=owner,
        snapshot=task,
    )


async def test_a_resumed_task_has_its_new_owner_before_its_first_event(
    daemon_on: Any, killable: Any, tmp_path: Path
) -> None:
    class Resuming:
        def __init__(self) -> None:
            self.resumed = anyio.Event()

        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            """Never called."""

        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            """There is nothing to clean up."""

        async def resume(self, context: RequestContext, events: TaskEvents) -> None:
            self.resumed.set()
            await anyio.sleep_forever()

    path = tmp_path / "tasks.db"
    store = killable(path)
    await store.open()
    await store.commit([created("a", store.owner_id)])
    store.killed = True
    await store.close()
    executor, other = Resuming(), SqliteStore(str(path))
    async with daemon_on(path, executor):
        with anyio.fail_after(DEADLINE_SECONDS):
            await executor.resumed.wait()
            await other.open()
            while await other.list_orphans():
                await anyio.lowlevel.checkpoint()
    await other.close()
