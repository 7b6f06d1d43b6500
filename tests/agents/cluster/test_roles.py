"""Fronts take calls and execute nothing; workers do what they leave."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.errors import UnknownSkill
from discreet.a2a.types import PushConfig, SendConfiguration, SendRequest, TaskEvent, TaskQuery, TaskState, TaskUpdate
from discreet.agents import runtime
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.live_task import LiveTask
from discreet.agents.notifier import PushNotifier
from discreet.agents.request_handler import Caller
from discreet.agents.runtime import Role, Runtime
from discreet.agents.stores.interface import Changes
from discreet.daemon.operations.identity import Identity
from discreet.errors import FailureError
from support.daemons import Watching, watching
from support.executors import (
    ME,
    Scripted,
    ask_then_echo,
    echo,
    failure_of,
    for_ever,
    request,
    shape,
    task_of,
    until_state,
)
from support.places import NewStore
from support.roles import FRONT, WORKER, AlteredStore, Counting, Idle, begun
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


async def test_a_stream_at_a_front_shows_every_event_of_the_worker_once_and_in_order(
    serving: Any, new_store: NewStore
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        for number in range(300):
            await events.artifact(str(number), artifact_id="a", append=True)
        await events.complete()

    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(execute), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            first, *updates = [each async for each in front.stream(request("go"), ME)]
        assert shape(first) == "Task"
        assert [each.generation for each in updates if isinstance(each, TaskUpdate)] == [*range(2, 305)]
        assert len(updates) == 303


async def test_who_has_seen_more_elsewhere_goes_on_at_a_replica_that_has_not_heard_of_it_yet(
    serving: Any, new_store: NewStore
) -> None:
    class Deaf(AlteredStore):
        async def wait_for_changes(self, poll_seconds: float) -> Changes:
            return await anyio.sleep_forever()

    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        for number in range(5):
            await events.artifact(str(number))
        await events.complete()

    watcher = Watching()
    async with serving(Scripted(execute), new_store()) as one, serving(Idle(), Deaf(new_store()), role=FRONT) as other:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                task = await task_of(one, request("one", at_once=True))
                watchers.start_soon(watcher.run, other, task.id)
                await watcher.first.wait()
                async with watching(one, task.id) as seen:
                    await seen.first.wait()
                    may_end.set()
                last = seen.seen[-1]
                assert isinstance(last, TaskUpdate)
                rest = [each async for each in other.subscribe(task.id, ME, after=last.generation - 1)]
        assert [each.generation for each in rest if isinstance(each, TaskUpdate)] == [last.generation]
        with pytest.raises(FailureError):
            await anext(other.subscribe(task.id, ME, after=last.generation + 1))


async def test_a_message_is_acknowledged_without_a_worker_and_executed_when_one_comes(
    serving: Any, new_store: NewStore
) -> None:
    store = new_store()
    async with serving(Idle(), store, role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            assert task.status.state is TaskState.SUBMITTED
            assert await store.count_queued() == 1
            async with serving(Scripted(echo), new_store(), role=WORKER):
                await until_state(front, task.id, TaskState.COMPLETED)
            assert await store.count_queued() == 0


async def test_a_worker_takes_the_oldest_first_and_no_more_than_it_may(serving: Any, new_store: NewStore) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        await events.complete()

    worker, store = Counting(execute), new_store()
    async with serving(Idle(), store, role=FRONT) as front:
        tasks = [await task_of(front, request(str(number), at_once=True)) for number in range(5)]
        role = Role(queues=True, max_runs=2)
        async with serving(worker, new_store(), role=role):
            with anyio.fail_after(DEADLINE_SECONDS):
                for task in tasks[:2]:
                    await until_state(front, task.id, TaskState.WORKING)
                assert await store.count_queued() == 3
                assert sorted(worker.texts) == ["0", "1"]
                may_end.set()
                for task in tasks:
                    await until_state(front, task.id, TaskState.COMPLETED)
    assert sorted(worker.texts) == ["0", "1", "2", "3", "4"]
    # Two that are claimed at once begin in any order.
    assert all(abs(int(text) - place) <= 1 for place, text in enumerate(worker.texts))


async def test_what_one_worker_has_no_room_for_another_one_does(serving: Any, new_store: NewStore) -> None:
    role = Role(queues=True, max_runs=1)
    busy, free = Counting(for_ever), Counting(echo)
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(busy, new_store(), role=role):
        with anyio.fail_after(DEADLINE_SECONDS):
            await begun(front, "stuck")
            async with serving(free, new_store(), role=role):
                for _ in range(3):
                    assert (await task_of(front, request("more"))).status.state is TaskState.COMPLETED
    assert (busy.texts, free.texts) == (["stuck"], ["more"] * 3)


async def test_a_worker_leaves_calls_of_its_own_to_whoever_has_room(serving: Any, new_store: NewStore) -> None:
    role = Role(queues=True, max_runs=1)
    async with serving(Scripted(for_ever), new_store(), role=role) as busy:
        with anyio.fail_after(DEADLINE_SECONDS):
            await begun(busy, "stuck")
            async with serving(Scripted(echo), new_store(), role=role):
                assert (await task_of(busy, request("more"))).status.state is TaskState.COMPLETED


async def test_an_executor_is_told_all_of_the_call_but_its_credentials(serving: Any, new_store: NewStore) -> None:
    told: list[RequestContext] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        told.append(context)
        await events.complete()

    caller = Caller(
        "me", "1.0", Identity("me", frozenset({"bake"})), ("https://example.org/e",), {"authorization": "Bearer x"}
    )
    sent = request("one")
    configuration = SendConfiguration(accepted_output_modes=("text/plain",))
    sent = SendRequest(sent.message, configuration, {"big": 2**70, "why": None})
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(execute), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, sent, caller)
    (context,) = told
    assert (context.task.id, context.text, context.metadata) == (task.id, "one", {"big": 2**70, "why": None})
    assert context.accepted_output_modes == ("text/plain",)
    assert (context.identity, context.extensions) == (caller.identity, caller.extensions)
    assert context.service_params == {}


async def test_a_refusal_is_told_by_the_front_and_nothing_is_stored(serving: Any, new_store: NewStore) -> None:
    class Strict(Idle):
        def check(self, context: RequestContext) -> object:
            raise UnknownSkill()

    async with serving(Strict(), new_store(), role=FRONT) as front:
        failure = await failure_of(front.send(request("bake"), ME))
        assert getattr(failure, "code", "") == "UNKNOWN_SKILL"
        assert (await front.list(TaskQuery(scope="me"))).total_size == 0


async def test_a_worker_that_refuses_what_a_front_has_accepted_fails_the_task_with_the_refusal(
    serving: Any, new_store: NewStore
) -> None:
    class Strict(Scripted):
        def check(self, context: RequestContext) -> object:
            raise UnknownSkill()

    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Strict(echo), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("bake"))
        assert task.status.state is TaskState.FAILED
        assert task.status.message is not None and task.status.message.parts[1].data["data"]["code"] == "UNKNOWN_SKILL"


async def test_a_worker_pushes_from_its_first_event_on_to_a_config_that_came_with_the_message(
    serving: Any, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[tuple[str, str]] = []

    def note(live: LiveTask, event: TaskEvent, version: str) -> bytes | None:
        pushed.append((version, type(event).__name__))
        return None

    monkeypatch.setattr(runtime, "push_body", note)

    hook = PushConfig("https://hooks.example.com/a")
    sent = SendRequest(request("one").message, SendConfiguration(task_push_notification_config=hook))
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            fronts = Runtime(tasks.start_soon, new_store(), Idle(), PushNotifier(), role=FRONT)
            workers = Runtime(tasks.start_soon, new_store(), Scripted(echo), PushNotifier(), role=WORKER)
            front, _ = await fronts.handler.ready(), await workers.handler.ready()
            task = await task_of(front, sent)
            assert [each.url for each in await front.push_configs.list(task.id, scope="me")] == [hook.url]
            await until(lambda: len(pushed) >= 3)
            tasks.cancel_scope.cancel()
    assert pushed == [("1.0", name) for name in ("ExecutionBegun", "StatusChanged", "ArtifactChanged", "StatusChanged")]


async def test_push_configs_are_the_same_at_every_daemon_also_of_a_task_that_it_has_in_memory(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[str] = []

    def note(live: LiveTask, event: TaskEvent, version: str) -> bytes | None:
        pushed.append(type(event).__name__)
        return None

    monkeypatch.setattr(runtime, "push_body", note)

    hooks = [PushConfig(f"https://hooks.example.com/{each}", id=each) for each in "ab"]
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            one, other = [
                await Runtime(tasks.start_soon, new_store(), Idle(), PushNotifier(), role=FRONT).handler.ready()
                for _ in range(2)
            ]
            worker = await Runtime(
                tasks.start_soon,
                new_store(),
                Scripted(ask_then_echo),
                PushNotifier(),
                role=WORKER,
            ).handler.ready()
            asked = await task_of(one, request("one"))
            watchers = [Watching(), Watching()]
            for handler, watcher in zip((other, worker), watchers, strict=True):  # which keep it in memory
                tasks.start_soon(watcher.run, handler, asked.id)
                await watcher.first.wait()
            for hook in hooks:
                await one.push_configs.put(asked.id, hook, scope="me", version="1.0")
            await one.push_configs.delete(asked.id, "a", scope="me")
            for handler in (one, other):
                assert [each.id for each in await handler.push_configs.list(asked.id, scope="me")] == ["b"]
            assert not pushed
            await task_of(
                other, request("two", task_id=asked.id)
            )  # the worker has read no configs before it takes the task
            await until(lambda: "ArtifactChanged" in pushed and pushed[-1] == "StatusChanged")
            assert [each.id for each in await worker.push_configs.list(asked.id, scope="me")] == ["b"]
            tasks.cancel_scope.cancel()
    assert pushed[-2:] == ["ArtifactChanged", "StatusChanged"]
