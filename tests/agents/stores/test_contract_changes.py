"""The contract of `TaskStore.wait_for_changes`, tested on every store that daemons share and both event loops."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import new_id
from discreet.agents.stores.interface import ANNOUNCED, CANCEL, QUEUED, Changes, OwnerRequest, TaskStore
from discreet.agents.stores.memory import MemoryStore
from support.task_changes import a_task, change_to, commit_all, said, to_create
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

POLL_SECONDS = 0.001


async def told(store: TaskStore) -> Changes:
    with anyio.fail_after(DEADLINE_SECONDS):
        return await store.wait_for_changes(POLL_SECONDS)


async def hear_all(store: TaskStore) -> None:
    """What there is to tell now, such as that another daemon has started."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        while True:
            await store.wait_for_changes(POLL_SECONDS)


async def commit_an_event(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    await commit_all(theirs, change_to(a_task("free"), 1, [said("x")], owner=theirs.owner_id))
    return lambda changes: changes.may_concern("free")


async def create(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    await commit_all(theirs, to_create(a_task("new")))
    return lambda changes: changes.may_concern("new")


async def queue(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    await commit_all(theirs, to_create(a_task("new"), owner=QUEUED))
    return lambda changes: changes.queued


async def request(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    assert await theirs.send_owner_request(OwnerRequest("t", CANCEL))
    return lambda changes: changes.requests


async def leave_a_request(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    left = (OwnerRequest("new", CANCEL),)
    await commit_all(theirs, to_create(a_task("new"), owner=ours.owner_id, requests=left))
    return lambda changes: changes.requests


async def announce(ours: TaskStore, theirs: TaskStore) -> Callable[[Changes], bool]:
    await theirs.announce([f"{ANNOUNCED}a", f"{ANNOUNCED}b"])
    return lambda changes: changes.may_concern(f"{ANNOUNCED}b") and not changes.may_concern(f"{ANNOUNCED}c")


Act = Callable[[TaskStore, TaskStore], Awaitable[Callable[[Changes], bool]]]
ACTS: list[Act] = [commit_an_event, create, queue, request, leave_a_request, announce]


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("act", ACTS)
async def test_what_others_do_is_told_also_what_they_did_before(
    pair: tuple[TaskStore, TaskStore], act: Act, before: bool
) -> None:
    ours, theirs = pair
    await commit_all(ours, to_create(a_task("t"), owner=ours.owner_id), to_create(a_task("free")))
    await hear_all(ours)
    heard: list[Changes] = []

    async def listen() -> None:
        while True:
            heard.append(await told(ours))

    async with anyio.create_task_group() as group:
        if not before:
            group.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
        is_told = await act(ours, theirs)
        if before:
            group.start_soon(listen)
        await until(lambda: any(map(is_told, heard)))
        group.cancel_scope.cancel()


async def test_a_change_is_not_lost_where_waiting_is_cancelled(pair: tuple[TaskStore, TaskStore]) -> None:
    ours, theirs = pair
    for n in range(8):
        await hear_all(ours)
        heard: list[Changes] = []

        async def listen(heard: list[Changes] = heard) -> None:
            heard.append(await ours.wait_for_changes(POLL_SECONDS))

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await commit_all(theirs, to_create(a_task(f"{n}")))
            for _ in range(n):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        while not any(changes.may_concern(f"{n}") for changes in heard):
            heard.append(await told(ours))


async def test_an_announcement_is_told_once_and_no_commit_is_one(pair: tuple[TaskStore, TaskStore]) -> None:
    ours, theirs = pair
    name = f"{ANNOUNCED}a"
    for announced in (False, True, False, True):
        await hear_all(ours)
        if announced:
            await theirs.announce([name])
        await commit_all(theirs, to_create(a_task(new_id())))
        heard = await told(ours)
        while not heard.may_concern(name) and announced:
            heard = await told(ours)
        assert heard.may_concern(name) is announced
    await hear_all(theirs)
    await theirs.announce([name])  # not told to itself
    await commit_all(ours, to_create(a_task(new_id())))
    assert not (await told(theirs)).may_concern(name)


async def test_what_is_told_can_be_read(pair: tuple[TaskStore, TaskStore]) -> None:
    ours, theirs = pair
    count = 20

    async def write() -> None:
        await commit_all(theirs, to_create(a_task("t"), owner=theirs.owner_id))
        for n in range(1, count):
            await commit_all(theirs, change_to(a_task("t"), n, [said(f"{n}")], owner=theirs.owner_id))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        generation = 0
        while generation < count:
            await told(ours)
            stored = await ours.load("t")
            generation = stored.generation if stored is not None else 0


async def test_nobody_changes_what_is_in_memory() -> None:
    store = MemoryStore()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait_for_changes, 0.0)
            await commit_all(store, to_create(a_task("t"), owner=QUEUED))
            await store.claim(1)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
