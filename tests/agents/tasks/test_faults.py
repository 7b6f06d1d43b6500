"""Faults of an executor, its store or a task: the task gets a final state, the others and the daemon go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from discreet import Identity
from discreet.a2a.task import MAX_JSON_DEPTH, is_within_max_depth
from discreet.a2a.types import new_id
from discreet.agents import (
    Agent,
    Message,
    NotCancelable,
    Part,
    RequestContext,
    Task,
    TaskEvents,
    TaskState,
)
from discreet.agents.stores.interface import CommitConflict, CommitRefusal, StoreError, TaskChange
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.stores.serialization import check_changes
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.client import InvalidParams, Peer
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Internal
from discreet.testing import in_memory
from support.daemons import Resumer
from support.executors import ME, Scripted, for_ever, request, task_of
from support.roles import AlteredStore
from support.task_changes import a_task, change
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


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
        async with serving(Scripted(untidy)) as handler, anyio.create_task_group() as tasks:
            tasks.start_soon(handler.send, request("hello"), ME)
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

    async with serving(Scripted(talk), store, replies_without_task=True) as handler:  # else it waits for the commit
        with anyio.fail_after(DEADLINE_SECONDS):
            with pytest.raises(FailureError) as error:
                await handler.send(request("hello"), ME)
            assert error.value.failure == Internal()
            task = await handler.send(request("hello"), ME)
        assert task.status.state is TaskState.COMPLETED


async def test_a_task_that_another_daemon_changes_while_it_is_got_is_got_as_the_store_has_it(serving: Any) -> None:
    class Losing(AlteredStore):
        async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
            if changes[0].state is not TaskState.WORKING:
                refusals: Sequence[CommitRefusal | None] = await self._inner.commit(changes)
                return refusals
            committing.set()
            await may_fail.wait()
            return [CommitConflict(2, "another")]

    async def work(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await anyio.sleep_forever()

    got, committing, may_fail = list[Task](), anyio.Event(), anyio.Event()

    async def get(task_id: str) -> None:
        got.append(await handler.get(task_id, ME))

    with anyio.fail_after(DEADLINE_SECONDS):
        async with serving(Scripted(work), Losing(MemoryStore())) as handler, anyio.create_task_group() as tasks:
            task = await task_of(handler, request("hello", at_once=True))
            await committing.wait()
            tasks.start_soon(get, task.id)
            await anyio.wait_all_tasks_blocked()
            may_fail.set()
    assert [task.status.state for task in got] == [TaskState.SUBMITTED]


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
        answers.append(await handler.send(request(text, task_id=task_id), ME))

    async with serving(Scripted(ask)) as handler:
        task = await handler.send(request("hello"), ME)
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
        message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
        return {"message": message, "configuration": {"taskPushNotificationConfig": config}}

    async with in_memory(Agent(Scripted(odd), name="odd", description="Odd."), push_private=True) as peer:
        answer = await peer.call("SendMessage", send("odd"))
        assert answer["task"]["status"]["state"] == "TASK_STATE_FAILED"
        answer = await peer.call("SendMessage", send("even"))
        assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_resumed_task_has_its_new_owner_before_its_first_event(
    daemon_on: Any, killable: Any, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    store = killable(path)
    await store.open()
    await store.commit([change(a_task("a", TaskState.WORKING), owner=store.owner_id, snapshot=True)])
    store.killed = True
    await store.close()
    executor, other = Resumer(for_ever), SqliteStore(str(path))
    executor.may_end = anyio.Event()
    async with daemon_on(path, executor):
        with anyio.fail_after(DEADLINE_SECONDS):
            await executor.are_asked(1)
            await other.open()
            while await other.list_orphans():
                await anyio.lowlevel.checkpoint()
    await other.close()


Work = Callable[[], Awaitable[None]]


def message(text: str, *, at_once: bool = False) -> dict[str, Any]:
    said = {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}}
    return {**said, "configuration": {"returnImmediately": at_once}}


class Faulty:
    """Runs its fault for the message `fault`, completes for `echo`, and never ends for any other."""

    def __init__(self, work: Work, *, in_cancel: bool = False) -> None:
        self._work = work
        self._in_cancel = in_cancel

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        if context.text == "echo":
            return await events.complete()
        await events.working()
        if context.text == "fault" and not self._in_cancel:
            await self._work()
        await anyio.sleep_forever()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        if self._in_cancel:
            await self._work()


def faulty(work: Work, *, in_cancel: bool = False) -> Agent:
    return Agent(Faulty(work, in_cancel=in_cancel), name="faulty", description="Goes wrong.")


async def state_of(peer: Peer, task_id: str) -> str:
    task = await peer.call("GetTask", {"id": task_id})
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


async def begun(peer: Peer, text: str) -> str:
    sent = await peer.call("SendMessage", message(text, at_once=True))
    return str(sent["task"]["id"])


async def the_others_go_on(peer: Peer, bystander: str) -> None:
    sent = await peer.call("SendMessage", message("echo"))
    assert sent["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert await state_of(peer, bystander) == "WORKING"


async def cancelled_job() -> None:
    job = asyncio.ensure_future(asyncio.sleep(60))
    job.cancel()
    await job


async def cancel_itself() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(60)


def raising(fault: BaseException) -> Work:
    async def work() -> None:
        raise fault

    return work


ANYWHERE = [
    raising(fault) for fault in (BaseException(), BaseExceptionGroup("two", [KeyboardInterrupt(), SystemExit()]))
]

ON_ASYNCIO = [cancelled_job, cancel_itself, raising(asyncio.CancelledError())]


def faults_for(backend: str) -> Sequence[Work]:
    return [*ANYWHERE, *(ON_ASYNCIO if backend == "asyncio" else ())]


async def test_whatever_an_executor_raises_only_its_own_task_fails(anyio_backend: str) -> None:
    for work in faults_for(anyio_backend):
        async with in_memory(faulty(work), drain_timeout=0.1) as peer:
            bystander = await begun(peer, "stay")
            sent = await peer.call("SendMessage", message("fault"))
            assert sent["task"]["status"]["state"] == "TASK_STATE_FAILED"
            await the_others_go_on(peer, bystander)


async def test_whatever_its_cancel_raises_the_task_is_canceled(anyio_backend: str) -> None:
    for work in faults_for(anyio_backend):
        async with in_memory(faulty(work, in_cancel=True), drain_timeout=0.1) as peer:
            bystander = await begun(peer, "stay")
            canceled = await peer.call("CancelTask", {"id": await begun(peer, "fault")})
            assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
            await the_others_go_on(peer, bystander)


async def test_an_executor_that_refuses_a_cancellation_goes_on() -> None:
    async with in_memory(faulty(raising(NotCancelable()), in_cancel=True), drain_timeout=0.1) as peer:
        task = await begun(peer, "fault")
        with pytest.raises(Exception, match="TASK_NOT_CANCELABLE"):
            await peer.call("CancelTask", {"id": task})
        assert await state_of(peer, task) == "WORKING"


# -- depth --------------------------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_value_is_shallow_up_to_the_limit_and_what_contains_itself_is_not() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert is_within_max_depth(nested(MAX_JSON_DEPTH))
    assert not is_within_max_depth(nested(MAX_JSON_DEPTH + 1))
    assert not is_within_max_depth(loop)
    assert all(map(is_within_max_depth, (None, 1, "x", {}, {"a": [1, {"b": ()}]})))


@pytest.mark.parametrize("levels", [MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 800])
async def test_deep_json_is_refused_by_its_path_before_there_is_a_task(levels: int) -> None:
    async with in_memory(faulty(raising(RuntimeError()))) as peer:
        for place in ("message.metadata", "metadata", "message.parts[0].metadata"):
            params = message("echo")
            where: dict[str, Any] = params
            if place != "metadata":
                where = params["message"] if place == "message.metadata" else params["message"]["parts"][0]
            where["metadata"] = {"a": nested(levels - 1)}
            if levels <= MAX_JSON_DEPTH:
                assert "task" in await peer.call("SendMessage", params)
            else:
                with pytest.raises(InvalidParams) as refused:
                    await peer.call("SendMessage", params)
                assert refused.value.failure.param == place
        listed = await peer.call("ListTasks", {})
        assert listed["totalSize"] == (3 if levels <= MAX_JSON_DEPTH else 0)


async def test_an_executor_that_publishes_too_deep_json_fails_its_task_and_the_list_stays_readable() -> None:
    class Deep:
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            await events.artifact(Part(data=nested(int(context.text))))
            await events.complete()

        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            """There is nothing to clean up."""

    async with in_memory(Agent(Deep(), name="deep", description="Nests.")) as peer:
        states: list[str] = []
        for levels in (MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 970):
            sent = await peer.call("SendMessage", message(str(levels)))
            states.append(sent["task"]["status"]["state"])
        assert states == ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_FAILED"]
        assert (await peer.call("ListTasks", {"includeArtifacts": True}))["totalSize"] == 3


# -- secrets ------------------------------------------------------------------------------------------------------


async def test_accepted_credentials_are_never_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Doors:
        schemes: Sequence[str] = ("bearer",)
        realm = "house"

        def resolve(self, authorization: str) -> Identity | None:
            return Identity("ann") if authorization == "Bearer Kx7pQ2zM9wT4vBn8Lc" else None

    async def tell() -> None:
        raise RuntimeError("it was Kx7pQ2zM9wT4vBn8Lc who came")

    async with in_memory(faulty(tell), provider=Doors(), drain_timeout=0.1) as peer:
        params = {"authorization": "Bearer Kx7pQ2zM9wT4vBn8Lc"}
        sent = await peer.call("SendMessage", message("fault"), service_params=params)
        assert sent["task"]["status"]["state"] == "TASK_STATE_FAILED"
    told = capsys.readouterr().err
    assert "it was" in told
    assert "Kx7pQ2zM9w" not in told
