"""Each store compared with a naive model: any sequence of calls has the same results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.a2a.task import apply_events
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    PushConfig,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskQuery,
    TaskState,
    TaskStatus,
)
from discreet.agents.stores.interface import (
    CANCEL,
    CommitConflict,
    LogTruncatedError,
    OwnerRequest,
    PushTarget,
    TaskChange,
    TaskStore,
)
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.stores.sqlite.store import SqliteStore
from support.postgres import Server
from support.redis import Server as RedisServer

IDS = st.sampled_from(["a", "b", "c", "d"])
SCOPES = st.sampled_from(["me", "you"])
CONTEXTS = st.sampled_from(["c1", "c2"])
TIMES = st.integers(0, 9).map(lambda second: f"2026-01-01T00:00:0{second}.000Z")
STATES = st.sampled_from([TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.COMPLETED])
EVENTS = st.lists(
    st.one_of(
        st.builds(lambda n: MessageAdded(Message(f"{n}", Role.USER, (Part(text="x"),))), st.integers(0, 99)),
        st.builds(
            lambda n: ArtifactChanged(Artifact(f"{n % 3}", (Part(data=n),)), append=n % 2 == 0), st.integers(0, 99)
        ),
        st.builds(lambda state, time: StatusChanged(TaskStatus(state, timestamp=time)), STATES, TIMES),
    ),
    max_size=4,
)


class Write(msgspec.Struct, frozen=True):
    """A change: how far its expected generation is off, and the previous owner that it names."""

    task_id: str
    off: int
    events: list[TaskEvent]
    scope: str
    context_id: str
    snapshot: bool
    owned: bool
    previous_owner: str | None


class Look(msgspec.Struct, frozen=True):
    scope: str
    context_id: str | None
    state: TaskState | None
    after: str | None
    size: int
    artifacts: bool


class Read(msgspec.Struct, frozen=True):
    task_id: str
    after: int
    limit: int


class Target(msgspec.Struct, frozen=True):
    task_id: str
    config_id: str
    put: bool


class Ask(msgspec.Struct, frozen=True):
    task_id: str | None


class Reopen(msgspec.Struct, frozen=True):
    pass


Step: TypeAlias = Write | Look | Read | Target | Ask | Reopen

STEPS = st.lists(
    st.one_of(
        st.builds(
            Write, IDS, st.sampled_from([0, 0, 0, 0, 1, -1]), EVENTS, SCOPES, CONTEXTS, st.booleans(), st.booleans(),
            st.sampled_from([None, None, None, "somebody"]),
        ),
        st.builds(
            Look, SCOPES, st.none() | CONTEXTS, st.none() | STATES, st.none() | TIMES, st.integers(1, 3), st.booleans()
        ),
        st.builds(Read, IDS, st.integers(0, 12), st.integers(1, 5)),
        st.builds(Target, IDS, st.sampled_from(["p", "q"]), st.booleans()),
        st.builds(Ask, st.none() | IDS),
        st.just(Reopen()),
    ),
    max_size=30,
)  # fmt: skip


class ModelTask(msgspec.Struct):
    scope: str
    context_id: str
    state: TaskState
    updated: str
    number: int
    log: list[TaskEvent]
    snapshot_generation: int
    owned: bool
    targets: dict[str, PushTarget]

    def task(self) -> Task:
        created, *later = self.log
        assert isinstance(created, TaskCreated)
        return apply_events(created.task, later)


class Model:
    """The behaviour of a store, as simple as possible."""

    def __init__(self) -> None:
        self.tasks: dict[str, ModelTask] = {}
        self.requests: dict[OwnerRequest, None] = {}
        self.number = 0

    def write(self, change: TaskChange, owner: str) -> bool:
        known = self.tasks.get(change.task_id)
        held = None if known is None or not known.owned else owner
        if change.expected_generation != (0 if known is None else len(known.log)):
            return False
        if change.previous_owner is not None and held != change.previous_owner:
            return False
        if known is None:
            snapshot_generation = len(change.events) if change.snapshot else 1
            known = ModelTask("", "", change.state, "", 0, [], snapshot_generation, False, {})
            self.tasks[change.task_id] = known
            known.scope, known.context_id = change.scope, change.context_id
        elif change.snapshot is not None:
            known.snapshot_generation = change.generation
        known.log += change.events
        known.owned = change.owner is not None
        if change.events:
            self.number += 1
            known.number, known.state, known.updated = self.number, change.state, change.status_timestamp
        if not known.owned:
            self.requests = {request: None for request in self.requests if request.task_id != change.task_id}
        return True

    def look(self, query: TaskQuery) -> list[Task]:
        found = [
            known
            for known in self.tasks.values()
            if known.scope == query.scope
            and query.context_id in (None, known.context_id)
            and query.state in (None, known.state)
            and (query.status_timestamp_after is None or known.updated >= query.status_timestamp_after)
        ]
        tasks = [known.task() for known in sorted(found, key=lambda known: -known.number)]
        return tasks if query.include_artifacts else [msgspec.structs.replace(task, artifacts=()) for task in tasks]


class Compared:
    """A store and the model, on which the same steps are run."""

    def __init__(self, store: TaskStore, reopened: Callable[[], TaskStore] | None = None) -> None:
        self.store = store
        self.reopened = reopened
        self.model = Model()

    async def step(self, step: Step) -> None:
        match step:
            case Write():
                await self.write(step)
            case Look(scope, context_id, state, after, size, artifacts):
                await self.look(
                    TaskQuery(
                        scope=scope,
                        context_id=context_id,
                        state=state,
                        status_timestamp_after=after,
                        page_size=size,
                        include_artifacts=artifacts,
                    )
                )
            case Read():
                await self.read(step)
            case Target():
                await self.target(step)
            case Ask(None):
                assert list(await self.store.take_owner_requests()) == [*self.model.requests]
                self.model.requests.clear()
            case Ask(str(task_id)):
                known = self.model.tasks.get(task_id)
                assert await self.store.send_owner_request(OwnerRequest(task_id, CANCEL)) == (
                    known is not None and known.owned
                )
                if known is not None and known.owned:
                    self.model.requests.setdefault(OwnerRequest(task_id, CANCEL))
            case Reopen():
                await self.reopen()

    async def write(self, step: Write) -> None:
        known = self.model.tasks.get(step.task_id)
        if known is None:
            task = Task(step.task_id, step.context_id, TaskStatus(TaskState.SUBMITTED, timestamp=""))
            events: list[TaskEvent] = [TaskCreated(task), *step.events]
            after = apply_events(task, step.events)
        else:
            events = step.events
            after = apply_events(known.task(), events)
        change = TaskChange(
            task_id=step.task_id,
            expected_generation=max(0 if known is None else 1, (0 if known is None else len(known.log)) + step.off),
            events=tuple(events),
            scope=step.scope if known is None else known.scope,
            context_id=after.context_id,
            state=after.status.state,
            status_timestamp=after.status.timestamp or "",
            owner=self.store.owner_id if step.owned else None,
            snapshot=after if step.snapshot else None,
            previous_owner=step.previous_owner,
        )
        (refusal,) = await self.store.commit([change])
        assert (refusal is None) == self.model.write(change, self.store.owner_id)
        await self.load(step.task_id)
        await self.read(Read(step.task_id, 1, 100))
        if refusal is not None:
            known = self.model.tasks.get(step.task_id)
            assert isinstance(refusal, CommitConflict)
            assert refusal.generation == (0 if known is None else len(known.log))

    async def load(self, task_id: str) -> None:
        stored, known = await self.store.load(task_id), self.model.tasks.get(task_id)
        if stored is None or known is None:
            assert stored is known
            return
        assert (stored.scope, stored.owner is not None) == (known.scope, known.owned)
        assert (stored.snapshot_generation, stored.generation) == (known.snapshot_generation, len(known.log))
        assert [logged.event for logged in stored.later_events] == known.log[stored.snapshot_generation :]
        assert apply_events(stored.snapshot, [logged.event for logged in stored.later_events]) == known.task()

    async def look(self, query: TaskQuery) -> None:
        expected = self.model.look(query)
        found: list[Task] = []
        while True:
            listed = await self.store.list(query)
            assert listed.total_size == len(expected)
            assert len(listed.tasks) == min(query.page_size, len(expected) - len(found))
            found += listed.tasks
            query = msgspec.structs.replace(query, page_token=listed.next_page_token)
            if not listed.next_page_token:
                break
        assert found == expected

    async def read(self, step: Read) -> None:
        known = self.model.tasks.get(step.task_id)
        try:
            read = await self.store.event_log.read(step.task_id, after=step.after, limit=step.limit)
        except LogTruncatedError as moved:
            assert moved.generation == (0 if known is None else len(known.log))
            assert known is None or step.after == 0
            return
        assert known is not None
        expected = known.log[step.after : step.after + step.limit]
        assert [logged.event for logged in read] == expected
        assert [logged.generation for logged in read] == [*range(step.after + 1, step.after + 1 + len(expected))]

    async def target(self, step: Target) -> None:
        known = self.model.tasks.get(step.task_id)
        targets = {} if known is None else known.targets
        if step.put:
            target = PushTarget(PushConfig("https://example.org", step.config_id, token=f"{len(targets)}"), "1.0")
            assert await self.store.put_push_target(step.task_id, target) == (known is not None)
            targets[step.config_id] = target
        else:
            gone = targets.pop(step.config_id, None)
            assert await self.store.delete_push_target(step.task_id, step.config_id) == (gone is not None)
        expected: list[Any] = [] if known is None else [*targets.values()]
        assert list(await self.store.load_push_targets(step.task_id)) == expected

    async def reopen(self) -> None:
        """Reopen as another daemon, which takes over the tasks of the previous one."""
        if self.reopened is None:
            return
        dead = self.store.owner_id
        await self.store.close()
        self.store = self.reopened()
        await self.store.open()
        orphans = sorted(await self.store.list_orphans())
        owned = {name: known for name, known in self.model.tasks.items() if known.owned}
        assert orphans == sorted(name for name, known in owned.items() if known.state is not TaskState.COMPLETED)
        for task_id, known in owned.items():
            change = TaskChange(
                task_id=task_id,
                expected_generation=len(known.log),
                events=(),
                scope="",
                context_id="",
                state=TaskState.FAILED,
                status_timestamp="",
                owner=self.store.owner_id,
                previous_owner=dead,
            )
            assert await self.store.commit([change]) == [None]


@given(STEPS)
def test_the_memory_store_behaves_as_the_model(steps: list[Step]) -> None:
    async def run() -> None:
        compared = Compared(MemoryStore())
        for step in steps:
            await compared.step(step)

    anyio.run(run)


async def compare(store: Callable[[], TaskStore], steps: list[Step]) -> None:
    compared = Compared(store(), store)
    await compared.store.open()
    try:
        for step in steps:
            await compared.step(step)
    finally:
        await compared.store.close()


@settings(max_examples=60)
@given(STEPS)
def test_the_sqlite_store_behaves_as_the_model(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(compare, lambda: SqliteStore(f"{folder}/tasks.db"), steps)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_the_postgres_store_behaves_as_the_model(postgres: Server, steps: list[Step]) -> None:
    from discreet.agents.stores.postgres.store import PostgresStore

    url = postgres.new_database()
    anyio.run(compare, lambda: PostgresStore(url), steps)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_the_redis_store_behaves_as_the_model(redis_server: RedisServer, steps: list[Step]) -> None:
    from discreet.agents.stores.redis.store import RedisStore

    url = redis_server.new_store()
    anyio.run(compare, lambda: RedisStore(url), steps)
