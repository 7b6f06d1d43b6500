"""The contract of `TaskStore` and `EventLog`, tested on every store. What any history of calls gives is in `test_contract_histories`."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.task import apply_events
from discreet.a2a.types import Artifact, ArtifactChanged, Part, Task, TaskQuery, TaskState, TaskStatus
from discreet.agents.stores.interface import (
    CANCEL,
    CommitConflict,
    LogTruncatedError,
    OwnerRequest,
    StoredTask,
    StoreError,
    TaskStore,
    Unserializable,
)
from support.places import NewStore
from support.postgres import Server
from support.sqlite_files import opened
from support.task_changes import (
    a_task,
    at,
    change,
    change_to,
    chunk,
    commit_all,
    current,
    ids,
    said,
    status_changed,
    to_create,
)

pytestmark = pytest.mark.anyio

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


# -- commit and load -------------------------------------------------------------------------------------------


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
    endless: list[Any] = []  # Any: JSON
    endless.append(endless)
    bad = [a_task(name) for name in ("set", "deep", "surrogate")]
    parts = [Part(data={1, 2, object()}), Part(data=endless), Part(text="\ud800")]
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


WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


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


@pytest.mark.parametrize("size", [99, 100])
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


INVALID_PAGES: list[dict[str, Any]] = [
    *({"page_token": token} for token in ("x", "-1", "0", "01", "1.0", "²", " 1", "9" * 19, "9" * 5000, "1\n")),
    *({"page_size": size} for size in (0, -1, 101)),
]


async def test_an_invalid_page_is_refused(store: TaskStore) -> None:
    for wrong in INVALID_PAGES:
        try:
            await store.list(TaskQuery(scope="me", **wrong))
        except ValueError:
            continue
        pytest.fail(f"{wrong} is taken")


async def test_tasks_of_all_callers_are_counted_by_state(store: TaskStore) -> None:
    assert sum((await store.count()).values()) == 0
    await commit_all(store, *(to_create(a_task(name)) for name in "abc"), to_create(a_task("d"), scope="another"))
    before = a_task("a").status.state
    assert (await store.count())[before] == 4
    for generation, state in enumerate((WORKING, COMPLETED), start=1):
        await commit_all(store, change_to(a_task("a", state=state), generation, [status_changed(state)]))
    counts = await store.count()
    assert (counts[before], counts.get(WORKING, 0), counts[COMPLETED]) == (3, 0, 1)


async def test_a_probe_of_a_store_that_works_changes_nothing(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("a")))
    stored = await store.load("a")
    await store.probe()
    await store.probe()
    assert await store.load("a") == stored
    assert await ids(store) == ["a"]


async def test_a_page_of_large_tasks_is_short_and_the_next_ones_go_on(store: TaskStore) -> None:
    names = [f"{n:02}" for n in range(14)]
    for name in names:
        await commit_all(store, to_create(a_task(name), chunk("x" * 1_000_000), snapshot=True))
    page = await store.list(TaskQuery(scope="me"))
    found = [task.id for task in page.tasks]
    assert len(found) < len(names) == page.total_size
    while page.next_page_token:
        page = await store.list(TaskQuery(scope="me", page_token=page.next_page_token))
        found += [task.id for task in page.tasks]
    assert found == names[::-1]


@pytest.fixture
def nowhere(shared: NewStore, kind: str, request: pytest.FixtureRequest) -> NewStore:
    """Where nothing has been created yet."""
    if kind == "postgres":
        server: Server = request.getfixturevalue("postgres")
        (url,) = shared.args  # type: ignore[attr-defined]
        with server.connect(url.rpartition("/")[2]) as connection:
            connection.execute("DROP SCHEMA discreet CASCADE")
    return shared


async def test_several_daemons_may_create_a_store_at_once(nowhere: NewStore) -> None:
    stores = [nowhere() for _ in range(6)]
    async with anyio.create_task_group() as group:
        for store in stores:
            group.start_soon(store.open)
    assert len({store.owner_id for store in stores}) == 6
    for n, store in enumerate(stores):
        await commit_all(store, change(a_task(f"{n}")))
    assert (await stores[0].list(TaskQuery(scope="me"))).total_size == 6
    for store in stores:
        await store.close()


async def test_a_closed_store_refuses_calls(shared: NewStore) -> None:
    async with opened(shared()) as store:
        pass
    with pytest.raises(StoreError):
        await store.load("t")


async def test_a_store_that_was_opened_before_the_loop_works_on_it_or_is_closed_without_one(shared: NewStore) -> None:
    unused = shared()
    unused.open_early()
    unused.close_early()
    store = shared()
    store.open_early()
    async with opened(store):
        assert await ids(store) == []
        assert not await store.delete_push_target("t", "p")
    store.close_early()


async def test_any_string_may_be_an_id(shared: NewStore) -> None:
    names = ["\0", "a\0b", "a\x1a0000b", "\x1a", "{x}", ":", "*", "é\U0001f600", "'; --", "%s", ""]
    async with opened(shared()) as store:
        for name in names:
            await commit_all(store, change(a_task(name, context_id=name), owner=store.owner_id))
            assert await store.send_owner_request(OwnerRequest(name, CANCEL))
            assert await ids(store, context_id=name) == [name]
        assert await ids(store) == names[::-1]
        assert list(await store.take_owner_requests()) == [OwnerRequest(name, CANCEL) for name in names]


async def test_closing_twice_is_the_same_as_closing_once(store: TaskStore) -> None:
    await store.close()
    await store.close()
    assert isinstance(store.durable, bool)


# -- the tasks of all callers ----------------------------------------------------------------------------------


async def test_a_query_without_a_scope_lists_the_tasks_of_all_callers_with_their_callers_and_owners(
    store: TaskStore,
) -> None:
    scopes = ["", "ada", "=ada", "operation=", "ad:a\x1a"]
    for number in range(12):
        task = a_task(f"t{number}", WORKING if number % 3 else COMPLETED, context_id=f"c{number % 2}", minute=number)
        owner = store.owner_id if number == 4 else None
        await commit_all(store, to_create(task, scope=scopes[number % 5], owner=owner))

    async def pages(**query: Any) -> list[tuple[str, str, str | None]]:  # Any: fields of TaskQuery
        found, token = list[tuple[str, str, str | None]](), ""
        while True:
            page = await store.list(TaskQuery(scope=None, page_token=token, **query))
            found += zip([task.id for task in page.tasks], page.scopes, page.owners, strict=True)
            token = page.next_page_token
            if query.get("page_size") is None:
                assert page.total_size == len(page.tasks)
            if not token:
                return found

    everything = [
        (f"t{number}", scopes[number % 5], store.owner_id if number == 4 else None) for number in range(11, -1, -1)
    ]
    assert await pages() == everything
    assert await pages(page_size=5) == everything
    assert await pages(page_size=1) == everything
    assert [found for found, *_ in await pages(state=COMPLETED)] == ["t9", "t6", "t3", "t0"]
    assert [found for found, *_ in await pages(context_id="c1", page_size=2)] == ["t11", "t9", "t7", "t5", "t3", "t1"]
    assert [found for found, *_ in await pages(status_timestamp_after=at(9))] == ["t11", "t10", "t9"]
    assert await pages(status_timestamp_after=at(11), state=COMPLETED) == []
    own = await store.list(TaskQuery(scope="ada"))
    assert ([task.id for task in own.tasks], own.scopes) == (["t11", "t6", "t1"], ("ada",) * 3)
