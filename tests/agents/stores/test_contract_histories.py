"""Any history of two daemons on one store, as a naive model has it. No acknowledged event is lost or there twice, a task has one
owner, each request is taken once, by the owner, or deleted with the last one, and lists show what is there. Tested on every store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.a2a.task import apply_events
from discreet.a2a.types import PushConfig, Task, TaskCreated, TaskEvent, TaskQuery, TaskState
from discreet.agents.stores.interface import (
    MESSAGE,
    QUEUED,
    CommitConflict,
    LogTruncatedError,
    OwnerRequest,
    PushTarget,
    TaskChange,
    TaskStore,
)
from discreet.agents.stores.memory import MemoryStore
from support.task_changes import a_task, at, change_to, chunk, current, said, status_changed

NAMES = ["a", "b", "c"]
SCOPES = st.sampled_from(["me", "me", "you"])
CONTEXTS = st.sampled_from(["c1", "c2"])
OWN = "own"
"""Stands for the daemon that makes the change."""


class Change(msgspec.Struct, frozen=True):
    """A commit, of a new task with this scope and context if there is none. `stale`: of a task as it was an event before. `wrong`: by
    any daemon, and with any idea of who owns the task; else by its owner, if that is not dead."""

    name: str
    scope: str
    context_id: str
    events: int
    state: TaskState
    minute: int
    owner: str | None
    snapshot: bool
    stale: bool
    wrong: bool
    bodies: tuple[bytes, ...]


class Look(msgspec.Struct, frozen=True):
    scope: str
    context_id: str | None
    state: TaskState | None
    after: int | None
    size: int
    artifacts: bool


class Read(msgspec.Struct, frozen=True):
    name: str
    after: int
    limit: int


class Target(msgspec.Struct, frozen=True):
    name: str
    config_id: str
    put: bool


class Send(msgspec.Struct, frozen=True):
    name: str
    body: bytes


class Claim(msgspec.Struct, frozen=True):
    limit: int


class Take(msgspec.Struct, frozen=True):
    pass


class TakeOver(msgspec.Struct, frozen=True):
    """Of every orphan."""


class Reopen(msgspec.Struct, frozen=True):
    """Ends a daemon, and begins another one in its place. `kill`: the first one does not close its store."""

    kill: bool


Act: TypeAlias = Change | Look | Read | Target | Send | Claim | Take | TakeOver | Reopen
Step: TypeAlias = tuple[int, Act]
"""Which of the two daemons does it, or 2 for the one that was killed last."""

IDS = st.sampled_from(NAMES)
BODIES = st.sampled_from([b"", b"1", b"2", b"\x00"])
OWNERS = [OWN, QUEUED, None]
STATES = st.sampled_from([TaskState.WORKING, TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.COMPLETED])
MINUTES = st.integers(0, 9)
CHANGES = st.builds(
    Change,
    IDS,
    SCOPES,
    CONTEXTS,
    st.integers(0, 3),
    STATES,
    MINUTES,
    st.sampled_from(OWNERS),
    st.booleans(),
    st.sampled_from([False, False, False, False, True]),
    st.sampled_from([False, False, False, True]),
    st.lists(BODIES, max_size=2).map(tuple),
)
LOOKS = st.builds(
    Look, SCOPES, st.none() | CONTEXTS, st.none() | STATES, st.none() | MINUTES, st.integers(1, 3), st.booleans()
)
STEPS = st.tuples(
    st.sampled_from([0, 0, 1, 1, 2]),
    st.one_of(
        *[CHANGES] * 4,
        *[st.builds(Send, IDS, BODIES), st.builds(Claim, st.integers(1, 3)), st.just(Take())] * 2,
        LOOKS,
        st.builds(Read, IDS, st.integers(0, 12), st.integers(1, 5)),
        st.builds(Target, IDS, st.sampled_from(["p", "q"]), st.booleans()),
        st.just(TakeOver()),
        st.builds(Reopen, st.booleans()),
    ),
)
HISTORIES = st.lists(STEPS, min_size=30, max_size=60)
"""Long ones: a short one has no claim of what was queued, and no end of a daemon that was asked for something."""


def changed(name: str, owner: str | None = OWN, *bodies: bytes, **more: Any) -> Change:
    """A change by two events, unless `more` says something else."""
    usual = Change(name, "me", "c1", 2, TaskState.WORKING, 1, owner, False, False, False, bodies)
    return msgspec.structs.replace(usual, **more)


EVERYTHING: list[Step] = [
    (0, Send("a", b"1")),  # there is no task yet
    (0, Target("a", "p", put=True)),
    (0, changed("a", QUEUED, b"1", b"2", b"1")),
    (1, changed("b", QUEUED, b"", scope="you")),
    (1, changed("c", OWN, b"1", snapshot=True, context_id="c2")),
    (0, Send("a", b"2")),
    (1, Send("a", b"\x00")),
    (0, changed("a", QUEUED, b"3", b"1", minute=5)),  # which puts it behind the others
    (0, changed("c", OWN, b"4", wrong=True)),
    (0, changed("a", OWN, b"4", wrong=True)),
    (1, changed("c", stale=True, snapshot=True)),
    (1, Take()),
    (0, Claim(1)),
    (0, changed("b", QUEUED, events=0)),  # given back, it keeps its place and its requests
    (1, Claim(3)),
    (1, Claim(1)),
    (0, Take()),
    (0, Send("a", b"2")),
    (1, Take()),
    (1, Send("b", b"1")),
    (1, changed("b", None)),  # its requests go
    (1, Send("b", b"1")),
    (1, changed("b", OWN)),
    (1, Take()),
    (0, changed("b", OWN, events=0, snapshot=True)),
    *(
        (1, Target("b", name, put=put))
        for name, put in (("q", True), ("p", True), ("q", True), ("p", False), ("p", False))
    ),
    (0, Look("me", None, None, None, 1, artifacts=True)),
    (0, Look("me", "c2", TaskState.WORKING, 1, 3, artifacts=False)),
    (1, Look("you", None, TaskState.COMPLETED, None, 2, artifacts=True)),
    *((0, Read(name, after, 2)) for name, after in (("a", 0), ("a", 1), ("c", 9))),
    (0, Send("a", b"1")),
    (1, Reopen(kill=True)),  # its tasks are orphans, with their requests
    (2, changed("a", OWN, b"2", wrong=True)),
    (0, TakeOver()),
    (0, Take()),
    (0, changed("a", QUEUED, b"1")),
    (0, changed("a", None, state=TaskState.COMPLETED)),  # it ends in the queue
    (0, changed("c", OWN, state=TaskState.COMPLETED)),  # it ends, with an owner
    (0, Reopen(kill=False)),
    (1, Claim(3)),
]
"""What each call promises, once. Each line is there for a rule that a store could break."""


class ModelTask(msgspec.Struct):
    log: list[TaskEvent] = []
    owner: str | None = None
    state: TaskState = TaskState.SUBMITTED
    scope: str = ""
    updated: str = ""
    changed: int = 0
    snapshot_generation: int = 1
    targets: dict[str, PushTarget] = {}

    def task(self) -> Task:
        created, *later = self.log
        assert isinstance(created, TaskCreated)
        return apply_events(created.task, later)


class Model:
    """What is stored, as simple as possible."""

    def __init__(self) -> None:
        self.tasks: dict[str, ModelTask] = {}
        self.requests: dict[OwnerRequest, None] = {}
        self.changes = 0

    def commit(self, change: TaskChange, owner_id: str) -> CommitConflict | None:
        known = self.tasks.get(change.task_id) or ModelTask()
        allowed = (None, owner_id) if change.previous_owner is None else (change.previous_owner,)
        if change.expected_generation != len(known.log) or known.owner not in allowed:
            return CommitConflict(len(known.log), known.owner)
        if change.task_id not in self.tasks:
            self.tasks[change.task_id], known.scope = known, change.scope
        known.log = [*known.log, *change.events]
        known.owner = change.owner
        if change.snapshot is not None:
            known.snapshot_generation = change.generation
        if change.events:
            self.changes += 1
            known.state, known.updated, known.changed = change.state, change.status_timestamp, self.changes
        if change.owner is None:
            self.requests = {request: None for request in self.requests if request.task_id != change.task_id}
        self.requests |= dict.fromkeys(change.requests)
        return None

    def claim(self, limit: int, owner_id: str) -> list[str]:
        queued = [name for name, known in self.tasks.items() if known.owner == QUEUED]
        claimed = sorted(queued, key=lambda name: self.tasks[name].changed)[:limit]
        for name in claimed:
            self.tasks[name].owner = owner_id
        return claimed

    def send(self, request: OwnerRequest) -> bool:
        known = self.tasks.get(request.task_id)
        if known is None or known.owner is None:
            return False
        self.requests |= {request: None}
        return True

    def take(self, owner_id: str) -> list[OwnerRequest]:
        taken = [request for request in self.requests if self.tasks[request.task_id].owner == owner_id]
        self.requests = {request: None for request in self.requests if request not in taken}
        return taken

    def look(self, query: TaskQuery) -> list[Task]:
        found = [
            known
            for known in self.tasks.values()
            if known.scope == query.scope
            and query.context_id in (None, known.task().context_id)
            and query.state in (None, known.state)
            and (query.status_timestamp_after is None or known.updated >= query.status_timestamp_after)
        ]
        tasks = [known.task() for known in sorted(found, key=lambda known: -known.changed)]
        return tasks if query.include_artifacts else [msgspec.structs.replace(task, artifacts=()) for task in tasks]

    def owned(self, owner_id: str) -> list[str]:
        return sorted(
            name
            for name, known in self.tasks.items()
            if known.owner == owner_id and known.state is not TaskState.COMPLETED
        )

    def orphans(self, alive: set[str]) -> list[str]:
        return sorted(
            name
            for name, known in self.tasks.items()
            if known.owner not in (None, QUEUED, *alive) and known.state is not TaskState.COMPLETED
        )


class History:
    """Two daemons, the one that was killed last, and the model. In memory, one daemon."""

    def __init__(self, place: Any) -> None:  # Any: `conftest` can't be imported
        self.place = place
        self.model = Model()
        self.daemons: list[TaskStore] = []
        self.said = 0

    async def run(self, steps: list[Step]) -> None:
        try:
            self.daemons.append(await self.new())
            if not isinstance(self.daemons[0], MemoryStore):
                self.daemons.append(await self.new())
            for number, (who, act) in enumerate(steps):
                if who < len(self.daemons):
                    await self.do(who, act)
                if number % 4 == 0:
                    await self.compare(self.daemons[(who + 1) % min(len(self.daemons), 2)])
            for daemon in self.daemons[:2]:  # whatever waits for an owner is claimed or taken over, and taken
                await self.do(self.daemons.index(daemon), Take())
                await self.take_over(daemon)
                await self.do(self.daemons.index(daemon), Claim(len(NAMES)))
                await self.do(self.daemons.index(daemon), Take())
                await self.compare(daemon)
        finally:
            for daemon in self.daemons:
                await daemon.close()

    async def new(self) -> TaskStore:
        store: TaskStore = self.place.new_store()
        await store.open()
        return store

    async def do(self, who: int, act: Act) -> None:
        store, model = self.daemons[who], self.model
        if isinstance(act, Change) and not act.wrong and (known := model.tasks.get(act.name)) is not None:
            store = next((daemon for daemon in self.daemons[:2] if daemon.owner_id == known.owner), store)
        match act:
            case Change():
                change = self.change_of(act, store.owner_id)
                assert await store.commit([change]) == [model.commit(change, store.owner_id)]
            case Send(name, body):
                request = OwnerRequest(name, MESSAGE, body)
                assert await store.send_owner_request(request) == model.send(request)
            case Claim(limit):
                assert [*await store.claim(limit)] == model.claim(limit, store.owner_id)
            case Take():
                assert [*await store.take_owner_requests()] == model.take(store.owner_id)
            case Look():
                await self.look(store, act)
            case Read(name, after, limit):
                await self.read(store, name, after, limit)
            case Target():
                await self.target(store, act)
            case TakeOver():
                await self.take_over(store)
            case Reopen(kill):
                await self.reopen(who, kill=kill)

    def change_of(self, act: Change, owner_id: str) -> TaskChange:
        known = self.model.tasks.get(act.name)
        owner = owner_id if act.owner == OWN else act.owner
        if known is None:
            before = a_task(act.name, context_id=act.context_id, minute=act.minute)
            events: list[TaskEvent] = [TaskCreated(before)]
        else:
            before, events = known.task(), []
        later: list[TaskEvent] = []
        for n in range(act.events):
            self.said += 1
            later.append(chunk(f"{self.said}", append=self.said % 2 == 0) if n == 1 else said(f"{self.said}"))
        if later and act.state is not before.status.state:
            later.append(status_changed(act.state, act.minute))
        generation = 0 if known is None else len(known.log)
        return change_to(
            apply_events(before, later),
            max(generation - act.stale, min(generation, 1)),
            [*events, *later],
            scope=act.scope if known is None else known.scope,
            owner=owner,
            snapshot=act.snapshot,
            previous_owner=QUEUED if known is not None and (known.owner == QUEUED) != act.wrong else None,
            requests=() if owner is None else tuple(OwnerRequest(act.name, MESSAGE, body) for body in act.bodies),
        )

    async def look(self, store: TaskStore, act: Look) -> None:
        query = TaskQuery(
            scope=act.scope,
            context_id=act.context_id,
            state=act.state,
            status_timestamp_after=None if act.after is None else at(act.after),
            page_size=act.size,
            include_artifacts=act.artifacts,
        )
        expected = self.model.look(query)
        found: list[Task] = []
        while True:
            listed = await store.list(query)
            assert listed.total_size == len(expected)
            assert len(listed.tasks) == min(query.page_size, len(expected) - len(found))
            found += listed.tasks
            query = msgspec.structs.replace(query, page_token=listed.next_page_token)
            if not listed.next_page_token:
                break
        assert found == expected

    async def read(self, store: TaskStore, name: str, after: int, limit: int) -> None:
        known = self.model.tasks.get(name)
        try:
            read = await store.event_log.read(name, after=after, limit=limit)
        except LogTruncatedError as moved:
            assert moved.generation == (0 if known is None else len(known.log))
            assert known is None or after == 0
            return
        assert known is not None
        expected = [*enumerate(known.log, 1)][after : after + limit]
        assert [(logged.generation, logged.event) for logged in read] == expected

    async def target(self, store: TaskStore, act: Target) -> None:
        known = self.model.tasks.get(act.name)
        targets = {} if known is None else known.targets
        if act.put:
            target = PushTarget(PushConfig("https://example.org", act.config_id, token=f"{len(targets)}"), "1.0")
            assert await store.put_push_target(act.name, target) == (known is not None)
            targets[act.config_id] = target
        else:
            gone = targets.pop(act.config_id, None)
            assert await store.delete_push_target(act.name, act.config_id) == (gone is not None)
        expected = [] if known is None else [*targets.values()]
        assert [*await store.load_push_targets(act.name)] == expected

    async def take_over(self, store: TaskStore) -> None:
        alive = {daemon.owner_id for daemon in self.daemons[:2]}
        orphans = self.model.orphans(alive | {store.owner_id})
        assert sorted(await store.list_orphans()) == orphans
        for name in orphans:
            known = self.model.tasks[name]
            previous = known.owner
            task = known.task()
            change = change_to(task, len(known.log), owner=store.owner_id, previous_owner=previous)
            assert await store.commit([change]) == [self.model.commit(change, store.owner_id)] == [None]

    async def reopen(self, who: int, *, kill: bool) -> None:
        if who == 2 or len(self.daemons) == 1:  # it is dead already, or all is in its memory
            return
        killed = self.daemons[who]
        if not kill:
            await killed.close()
        else:
            await self.place.kill(killed)
            for before in self.daemons[2:]:
                await before.close()
            self.daemons[2:] = [killed] if _is_open(killed) else []
        self.daemons[who] = await self.new()

    async def compare(self, store: TaskStore) -> None:
        """What another daemon reads is what the model holds."""
        model = self.model
        assert await store.count_queued() == sum(known.owner == QUEUED for known in model.tasks.values())
        assert sorted(await store.list_owned()) == model.owned(store.owner_id)
        for name in NAMES:
            stored, known = await store.load(name), model.tasks.get(name)
            if stored is None or known is None:
                assert stored is known
                continue
            assert (stored.owner, stored.generation) == (known.owner, len(known.log))
            assert (stored.scope, stored.snapshot_generation) == (known.scope, known.snapshot_generation)
            assert current(stored) == known.task()
            logged = await store.event_log.read(name, after=1)
            assert [each.generation for each in logged] == [*range(2, len(known.log) + 1)]
            assert [each.event for each in logged] == known.log[1:]


def _is_open(store: TaskStore) -> bool:
    try:
        return bool(store.owner_id)
    except Exception:  # noqa: BLE001 - a closed store has no name
        return False


def test_any_history_of_two_daemons_is_as_the_model_has_it(new_place: Callable[[], Any]) -> None:
    @examples(new_place())
    @example(EVERYTHING)
    @given(HISTORIES)
    def compare(steps: list[Step]) -> None:
        anyio.run(History(new_place()).run, steps)

    compare()


def examples(place: Any) -> settings:  # Any: as above
    """As many as take a few seconds."""
    return settings(max_examples=40 if place.is_quick else 10, deadline=None)


# -- at the same time ------------------------------------------------------------------------------------------


class Acknowledged:
    """What the calls of two daemons that run at the same time have returned."""

    def __init__(self) -> None:
        self.events: dict[str, list[tuple[int, TaskEvent]]] = {name: [] for name in NAMES}
        self.sent: list[OwnerRequest] = []
        self.taken: list[OwnerRequest] = []
        self.bodies = 0


async def work(store: TaskStore, acts: list[Act], seen: Acknowledged) -> None:
    """Each request has a body of its own, and no task loses its owner, so that all must be taken."""
    for act in acts:
        match act:
            case Change(name=name, events=events):
                stored = await store.load(name)
                assert stored is not None
                seen.bodies += 1
                owner = QUEUED if act.owner == QUEUED else store.owner_id
                request = OwnerRequest(name, MESSAGE, b"%d" % seen.bodies)
                new = [said(f"{store.owner_id}-{seen.bodies}-{n}") for n in range(events)]
                change = change_to(
                    apply_events(current(stored), new),
                    stored.generation,
                    new,
                    owner=owner,
                    snapshot=act.snapshot,
                    previous_owner=QUEUED if (stored.owner == QUEUED) != act.wrong else None,
                    requests=(request,),
                )
                if await store.commit([change]) == [None]:
                    seen.events[name] += enumerate(new, stored.generation + 1)
                    seen.sent.append(request)
            case Send(name):
                seen.bodies += 1
                request = OwnerRequest(name, MESSAGE, b"%d" % seen.bodies)
                if await store.send_owner_request(request):
                    seen.sent.append(request)
            case Claim(limit):
                await store.claim(limit)
            case _:
                seen.taken += await store.take_owner_requests()


async def run_at_once(place: Any, acts: tuple[list[Act], list[Act]]) -> None:
    stores: list[TaskStore] = [place.new_store() for _ in acts]
    seen = Acknowledged()
    for store in stores:
        await store.open()
    try:
        created = [change_to(a_task(name), 0, [TaskCreated(a_task(name))], owner=QUEUED) for name in NAMES]
        assert await stores[0].commit(created) == [None] * len(NAMES)
        async with anyio.create_task_group() as group:
            for store, each in zip(stores, acts, strict=True):
                group.start_soon(work, store, each, seen)
        await stores[0].claim(len(NAMES))
        for store in stores:
            seen.taken += await store.take_owner_requests()
        assert sorted(seen.taken, key=repr) == sorted(seen.sent, key=repr)
        for name in NAMES:
            logged = await stores[1].event_log.read(name, after=1)
            assert [(each.generation, each.event) for each in logged] == sorted(
                seen.events[name], key=lambda event: event[0]
            )
            assert [each.generation for each in logged] == [*range(2, len(logged) + 2)]
    finally:
        for store in stores:
            await store.close()


ACTS = st.lists(STEPS.map(lambda step: step[1]), min_size=15, max_size=30)


@pytest.mark.usefixtures("shared")
def test_daemons_that_work_at_once_lose_no_event_and_no_request(new_place: Callable[[], Any]) -> None:
    @examples(new_place())
    @given(st.tuples(ACTS, ACTS))
    def run(acts: tuple[list[Act], list[Act]]) -> None:
        anyio.run(run_at_once, new_place(), acts)

    run()
