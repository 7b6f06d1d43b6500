"""The contract of `TaskStore` and `EventLog`, tested on every store and both event loops."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.daemon.agents.model.draft import apply_events
from discreet.daemon.agents.model.types import (
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
    TaskState,
    TaskStatus,
)
from discreet.daemon.agents.stores.interface import (
    CANCEL,
    CommitConflict,
    LogTruncatedError,
    OwnerRequest,
    PushTarget,
    StoredTask,
    TaskChange,
    TaskQuery,
    TaskStore,
    Unserializable,
)
from discreet.daemon.agents.stores.memory import MemoryStore
from discreet.daemon.agents.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.anyio

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TaskStore]:
    made: TaskStore = MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "tasks.db"))
    await made.open()
    yield made
    await made.close()


def at(minute: int) -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00.000Z"


def a_task(
    task_id: str, *, context_id: str = "context", state: TaskState = TaskState.SUBMITTED, minute: int = 0
) -> Task:
    message = Message("m1", Role.USER, (Part(text="hello"),), context_id, task_id)
    return Task(task_id, context_id, TaskStatus(state, timestamp=at(minute)), history=(message,))


def to_create(
    task: Task, *later: TaskEvent, scope: str = "me", owner: str | None = None, snapshot: bool = False
) -> TaskChange:
    events = (TaskCreated(task), *later)
    after = apply_events(task, later)
    return change_to(after, 0, events, scope=scope, owner=owner, snapshot=snapshot)


def change_to(
    after: Task,
    expected: int,
    events: Sequence[TaskEvent] = (),
    *,
    scope: str = "me",
    owner: str | None = None,
    snapshot: bool = False,
    previous_owner: str | None = None,
) -> TaskChange:
    return TaskChange(
        task_id=after.id,
        expected_generation=expected,
        events=tuple(events),
        scope=scope,
        context_id=after.context_id,
        state=after.status.state,
        status_timestamp=after.status.timestamp or "",
        owner=owner,
        snapshot=after if snapshot else None,
        previous_owner=previous_owner,
    )


def said(text: str) -> MessageAdded:
    return MessageAdded(Message(text, Role.USER, (Part(text=text),)))


def status_changed(state: TaskState, minute: int = 0) -> StatusChanged:
    return StatusChanged(TaskStatus(state, timestamp=at(minute)))


def chunk(text: str) -> ArtifactChanged:
    return ArtifactChanged(Artifact("a", (Part(text=text),)), append=True)


def current(stored: StoredTask | None) -> Task:
    assert stored is not None
    return apply_events(stored.snapshot, [logged.event for logged in stored.later_events])


async def ids(store: TaskStore, **query: Any) -> list[str]:  # Any: fields of TaskQuery
    return [task.id for task in (await store.list(TaskQuery(scope="me", **query))).tasks]


async def commit_all(store: TaskStore, *changes: TaskChange) -> None:
    assert await store.commit(changes) == [None] * len(changes)


# -- commit and load -------------------------------------------------------------------------------------------


async def test_a_task_is_loaded_as_it_was_created(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    assert await store.load("t") == StoredTask(task, 1, (), "me", None)


@pytest.mark.parametrize("after", [0, 5])
async def test_a_task_that_does_not_exist_is_none_and_reading_its_log_is_an_error(store: TaskStore, after: int) -> None:
    assert await store.load("t") is None
    with pytest.raises(LogTruncatedError) as gone:
        await store.event_log.read("t", after=after)
    assert gone.value.generation == 0


@pytest.mark.parametrize("snapshot", [False, True])
async def test_events_count_from_one_without_gaps(store: TaskStore, snapshot: bool) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task, said("1"), said("2"), snapshot=snapshot))
    stored = await store.load("t")
    assert stored is not None and stored.generation == 3
    later = [said(str(n)) for n in range(200)]
    await commit_all(store, change_to(current(stored), 3, later))
    read = [*await store.event_log.read("t", after=3)]
    assert [logged.generation for logged in read] == [*range(4, 204)]
    assert [logged.event for logged in read] == later
    stored = await store.load("t")
    assert stored is not None and stored.generation == 203
    assert [logged.generation for logged in stored.later_events] == [*range(stored.snapshot_generation + 1, 204)]
    assert current(stored) == apply_events(task, [said("1"), said("2"), *later])


async def test_a_snapshot_is_loaded_with_its_generation(store: TaskStore) -> None:
    task = a_task("t")
    after = apply_events(task, [said("1")])
    await commit_all(store, to_create(task), change_to(a_task("u"), 0, [TaskCreated(a_task("u"))]))
    await commit_all(store, change_to(after, 1, [said("1")], snapshot=True))
    assert await store.load("t") == StoredTask(after, 2, (), "me", None)


async def test_a_change_of_another_generation_conflicts_and_changes_nothing(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    before = await store.load("t")
    for expected in (2, 7):
        (refusal,) = await store.commit([change_to(a_task("t", state=WORKING), expected, [said("x")], snapshot=True)])
        assert isinstance(refusal, CommitConflict) and refusal.generation == 1
    (refusal,) = await store.commit([to_create(task)])
    assert isinstance(refusal, CommitConflict) and refusal.generation == 1
    (refusal,) = await store.commit([change_to(a_task("none"), 3, [said("x")])])
    assert isinstance(refusal, CommitConflict) and refusal.generation == 0
    assert await store.load("t") == before
    assert await store.load("none") is None


async def test_each_change_of_a_commit_succeeds_or_fails_by_itself(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    results = await store.commit(
        [to_create(a_task("u")), change_to(a_task("t"), 5, [said("x")]), to_create(a_task("v"), said("y"))]
    )
    assert [type(result) for result in results] == [type(None), CommitConflict, type(None)]
    assert await ids(store) == ["v", "u", "t"]


async def test_two_changes_of_one_task_and_a_task_without_its_first_event_are_errors(store: TaskStore) -> None:
    with pytest.raises(ValueError):
        await store.commit([to_create(a_task("t")), to_create(a_task("t"))])
    with pytest.raises(ValueError):
        await store.commit([change_to(a_task("t"), 0, [said("x")])])
    with pytest.raises(ValueError):
        await store.commit([change_to(a_task("t"), 0, snapshot=True)])
    assert await ids(store) == []


async def test_a_change_that_is_not_json_is_refused_and_the_others_are_made(store: TaskStore) -> None:
    nested: list[Any] = []  # Any: JSON without end
    for _ in range(100_000):
        nested = [nested]
    bad = [a_task(name) for name in ("set", "deep", "surrogate")]
    parts = [Part(data={1, 2, object()}), Part(data=nested), Part(text="\ud800")]
    changes = [to_create(task, ArtifactChanged(Artifact("a", (part,)))) for task, part in zip(bad, parts, strict=True)]
    results = await store.commit([*changes, to_create(a_task("good"))])
    assert [type(result) for result in results] == [Unserializable] * 3 + [type(None)]
    assert await ids(store) == ["good"]


async def test_any_json_is_loaded_as_it_was_stored(store: TaskStore) -> None:
    data = {"n": 10**40, "m": -(10**40), "f": 1.5, "t": [True, None, "é", {"": []}]}
    parts = (
        Part(data=data),
        Part(data=None),
        Part(raw=bytes(range(256))),
        Part(text=""),
        Part(url="x:y", media_type="a/b"),
    )
    task = Task("t", "c", TaskStatus(WORKING), (Artifact("a", parts, metadata=data),), metadata={"big": 2**64})
    await commit_all(store, to_create(task, ArtifactChanged(Artifact("b", parts), metadata=data)))
    assert current(await store.load("t")).artifacts == (Artifact("a", parts, metadata=data), Artifact("b", parts))
    assert current(await store.load("t")).metadata == {"big": 2**64}


async def test_a_change_without_events_saves_snapshot_and_owner_and_nothing_else(store: TaskStore) -> None:
    task = a_task("t", minute=5)
    await commit_all(store, to_create(task, said("1"), owner=store.owner_id), to_create(a_task("u")))
    after = apply_events(task, [said("1")])
    moved = change_to(a_task("t", context_id="other", state=COMPLETED, minute=9), 2, scope="you")
    await commit_all(store, moved)
    assert await store.load("t") != StoredTask(after, 2, (), "me", None)
    await commit_all(store, change_to(after, 2, snapshot=True))
    assert await store.load("t") == StoredTask(after, 2, (), "me", None)
    assert await ids(store) == ["u", "t"]
    assert await ids(store, context_id="context", state=TaskState.SUBMITTED, status_timestamp_after=at(5)) == ["t"]


async def test_a_cancelled_commit_is_done_completely_or_not_at_all(store: TaskStore) -> None:
    for delay in range(6):
        changes = [
            to_create(a_task(f"{delay}-{n}", context_id=f"{delay}"), said("x"), snapshot=True) for n in range(20)
        ]
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(store.commit, changes)
                for _ in range(delay):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        for _ in range(3):
            assert (await store.list(TaskQuery(scope="me", context_id=f"{delay}"))).total_size in (0, 20)
    await commit_all(store, to_create(a_task("afterwards")))


async def test_of_concurrent_changes_of_one_task_one_succeeds(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    results: list[Any] = []  # Any: refusals

    async def change(n: int) -> None:
        results.extend(await store.commit([change_to(a_task("t"), 1, [said(str(n))])]))

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(change, n)
    assert results.count(None) == 1
    stored = await store.load("t")
    assert stored is not None and stored.generation == 2


# -- the log ---------------------------------------------------------------------------------------------------


async def test_read_continues_after_the_last_event_read(store: TaskStore) -> None:
    events = [said(str(n)) for n in range(300)]
    await commit_all(store, to_create(a_task("t")))
    for start, end in itertools.pairwise([0, 1, 100, 300]):
        await commit_all(store, change_to(a_task("t"), 1 + start, events[start:end]))
    for limit in (1, 7, 64, 256, 1000):
        read: list[Any] = []  # Any: Logged
        while batch := await store.event_log.read("t", after=read[-1].generation if read else 1, limit=limit):
            assert len(batch) <= limit
            read += batch
        assert [logged.event for logged in read] == events
        assert [logged.generation for logged in read] == [*range(2, 302)]
    assert list(await store.event_log.read("t", after=301)) == []
    assert list(await store.event_log.read("t", after=999)) == []


async def test_one_read_returns_a_bounded_number_of_bytes(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    large = [chunk("x" * 1_000_000) for _ in range(20)]
    await commit_all(store, change_to(a_task("t"), 1, large))
    batch = await store.event_log.read("t", after=1)
    assert 1 <= len(batch) < 20
    assert [logged.event for logged in batch] == large[: len(batch)]


async def test_reading_truncated_events_is_an_error_and_events_after_the_snapshot_stay(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    for generation in range(1, 7, 2):
        task = apply_events(task, [said("1"), said("2")])
        await commit_all(store, change_to(task, generation, [said("1"), said("2")], snapshot=True))
    await commit_all(store, change_to(task, 7, [said("3")]))
    stored = await store.load("t")
    assert stored is not None and (stored.snapshot_generation, stored.generation) == (7, 8)
    assert [logged.generation for logged in await store.event_log.read("t", after=7)] == [8]
    with pytest.raises(LogTruncatedError) as moved:
        await store.event_log.read("t", after=0)
    assert moved.value.generation == 8


# -- list ------------------------------------------------------------------------------------------------------


async def test_the_last_changed_task_comes_first(store: TaskStore) -> None:
    await commit_all(store, *(to_create(a_task(name)) for name in "abc"))
    assert await ids(store) == ["c", "b", "a"]
    await commit_all(store, change_to(a_task("a"), 1, [chunk("x")]))
    assert await ids(store) == ["a", "c", "b"]
    await commit_all(
        store,
        change_to(a_task("c"), 1, [status_changed(WORKING)]),
        change_to(a_task("b"), 1, [status_changed(WORKING)]),
    )
    assert await ids(store) == ["b", "c", "a"]


async def test_list_shows_tasks_as_they_are_now_with_and_without_artifacts(store: TaskStore) -> None:
    start = a_task("t")
    events = [status_changed(WORKING, 1), chunk("a"), said("more"), chunk("b"), status_changed(ASKING, 2)]
    task = apply_events(start, events)
    await commit_all(store, to_create(start, *events[:2], owner=store.owner_id))
    await commit_all(store, change_to(task, 3, events[2:]))
    assert (await store.list(TaskQuery(scope="me"))).tasks == (task,)
    bare = Task(task.id, task.context_id, task.status, (), task.history, task.metadata)
    assert (await store.list(TaskQuery(scope="me", include_artifacts=False))).tasks == (bare,)


async def test_filters_work_alone_and_combined(store: TaskStore) -> None:
    states = [WORKING, ASKING, COMPLETED]
    made: list[tuple[Task, str]] = []
    for n in range(48):
        task = a_task(f"t{n:02}", context_id=f"c{n % 4}", state=states[n % 3], minute=(n * 7) % 48)
        made.append((task, "you" if n % 5 == 0 else "me"))
        await commit_all(store, to_create(task, scope=made[-1][1]))
    for scope, context_id, state, after in itertools.product(
        ["me", "you", "nobody"], [None, "c1", "c9"], [None, WORKING, TaskState.FAILED], [None, at(0), at(20), at(99)]
    ):
        expected = [
            task
            for task, whose in reversed(made)
            if whose == scope
            and context_id in (None, task.context_id)
            and state in (None, task.status.state)
            and (after is None or (task.status.timestamp or "") >= after)
        ]
        found: list[Task] = []
        token = ""
        while True:
            query = TaskQuery(
                scope=scope,
                context_id=context_id,
                state=state,
                status_timestamp_after=after,
                page_size=5,
                page_token=token,
            )
            listed = await store.list(query)
            assert listed.total_size == len(expected)
            found += listed.tasks
            token = listed.next_page_token
            if not token:
                break
        assert found == expected


@pytest.mark.parametrize("size", [1, 2, 99, 100])
async def test_pages_have_the_requested_size_and_the_last_has_no_token(store: TaskStore, size: int) -> None:
    await commit_all(store, *(to_create(a_task(f"{n}")) for n in range(100)))
    pages = [await store.list(TaskQuery(scope="me", page_size=size))]
    while pages[-1].next_page_token:
        pages.append(await store.list(TaskQuery(scope="me", page_size=size, page_token=pages[-1].next_page_token)))
    assert [len(page.tasks) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert [task.id for page in pages for task in page.tasks] == [str(n) for n in reversed(range(100))]
    assert {page.total_size for page in pages} == {100}


async def test_no_page_repeats_or_skips_what_did_not_change_between_pages(store: TaskStore) -> None:
    await commit_all(store, *(to_create(a_task(f"t{n}")) for n in range(30)))
    seen: list[str] = []
    token = ""
    touched: set[str] = set()
    for n in itertools.count():
        page = await store.list(TaskQuery(scope="me", page_size=4, page_token=token))
        seen += [task.id for task in page.tasks]
        token = page.next_page_token
        if not token:
            break
        await commit_all(store, to_create(a_task(f"new{n}")), change_to(a_task(f"t{n}"), 1, [said("x")]))
        touched.add(f"t{n}")
    assert len(seen) == len(set(seen))
    assert {f"t{n}" for n in range(30)} - touched <= set(seen)
    assert not any(name.startswith("new") for name in seen)


@pytest.mark.parametrize("token", ["x", "-1", "0", "01", "1.0", "²", " 1", "9" * 19, "9" * 5000, "1\n"])
async def test_an_invalid_page_token_is_refused(store: TaskStore, token: str) -> None:
    with pytest.raises(ValueError):
        await store.list(TaskQuery(scope="me", page_token=token))


@pytest.mark.parametrize("size", [0, -1, 101])
async def test_an_invalid_page_size_is_refused(store: TaskStore, size: int) -> None:
    with pytest.raises(ValueError):
        await store.list(TaskQuery(scope="me", page_size=size))


# -- push targets ----------------------------------------------------------------------------------------------


def a_target(config_id: str, url: str = "https://example.org") -> PushTarget:
    return PushTarget(PushConfig(url, config_id, "t", "token"), "1.0")


async def test_push_targets_keep_their_order_also_when_one_is_replaced(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")), to_create(a_task("u")))
    for config_id in ("b", "a", "c"):
        assert await store.put_push_target("t", a_target(config_id))
    assert await store.put_push_target("u", a_target("a"))
    replaced = a_target("b", "https://example.com")
    assert await store.put_push_target("t", replaced)
    assert list(await store.load_push_targets("t")) == [replaced, a_target("a"), a_target("c")]
    assert await store.delete_push_target("t", "a")
    assert not await store.delete_push_target("t", "a")
    assert not await store.delete_push_target("nobody", "a")
    assert list(await store.load_push_targets("t")) == [replaced, a_target("c")]
    assert list(await store.load_push_targets("u")) == [a_target("a")]


async def test_a_push_target_needs_a_task(store: TaskStore) -> None:
    assert not await store.put_push_target("t", a_target("a"))
    assert list(await store.load_push_targets("t")) == []


# -- owners ----------------------------------------------------------------------------------------------------


async def test_an_owner_is_kept_until_a_change_names_another_or_none(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id))
    stored = await store.load("t")
    assert stored is not None and stored.owner == store.owner_id
    await commit_all(store, change_to(a_task("t"), 1, owner=store.owner_id))
    await commit_all(store, change_to(a_task("t"), 1))
    stored = await store.load("t")
    assert stored is not None and stored.owner is None


async def test_a_takeover_must_name_the_current_owner(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id), to_create(a_task("u")))
    for name in ("t", "u"):
        (refusal,) = await store.commit([change_to(a_task(name), 1, owner=store.owner_id, previous_owner="somebody")])
        assert isinstance(refusal, CommitConflict)
        assert refusal.generation == 1
    await commit_all(store, change_to(a_task("t"), 1, previous_owner=store.owner_id))


async def test_owner_requests_are_taken_once_and_in_order(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id), to_create(a_task("u"), owner=store.owner_id))
    await commit_all(store, to_create(a_task("free")))
    assert list(await store.take_owner_requests()) == []
    assert await store.send_owner_request("u", CANCEL)
    assert await store.send_owner_request("t", CANCEL)
    assert await store.send_owner_request("u", CANCEL)
    assert not await store.send_owner_request("free", CANCEL)
    assert not await store.send_owner_request("nothing", CANCEL)
    assert list(await store.take_owner_requests()) == [OwnerRequest("u", CANCEL), OwnerRequest("t", CANCEL)]
    assert list(await store.take_owner_requests()) == []
    assert await store.send_owner_request("u", CANCEL)
    assert list(await store.take_owner_requests()) == [OwnerRequest("u", CANCEL)]


async def test_owner_requests_are_deleted_when_the_task_has_no_owner(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id))
    assert await store.send_owner_request("t", CANCEL)
    await commit_all(store, change_to(a_task("t"), 1))
    await commit_all(store, change_to(a_task("t"), 1, owner=store.owner_id))
    assert list(await store.take_owner_requests()) == []


async def test_own_tasks_are_not_orphans_and_own_changes_keep_the_data_version(store: TaskStore) -> None:
    before = store.data_version()
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id))
    assert list(await store.list_orphans()) == []
    assert store.data_version() == before


async def test_closing_twice_is_the_same_as_closing_once(store: TaskStore) -> None:
    await store.close()
    await store.close()
    assert isinstance(store.durable, bool)
