"""The contract of `TaskStore.list`, tested on every store and both event loops: order, filters and pages."""

from __future__ import annotations

import itertools

import pytest

from discreet.a2a.task import apply_events
from discreet.a2a.types import Task, TaskQuery, TaskState
from discreet.agents.stores.interface import TaskStore
from support.task_changes import a_task, at, change_to, chunk, commit_all, ids, said, status_changed, to_create

pytestmark = pytest.mark.anyio

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


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
