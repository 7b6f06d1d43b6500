"""The contract of `TaskStore` about tasks that wait for a daemon, and the requests left with them: at once, cancelled, and amid a batch."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import TaskState
from discreet.agents.stores.interface import (
    CANCEL,
    MESSAGE,
    QUEUED,
    CommitConflict,
    OwnerRequest,
    TaskChange,
    TaskStore,
)
from support.places import NewStore
from support.sqlite_files import opened
from support.task_changes import a_task, change, change_to, commit_all, said, to_create
from support.waits import until

pytestmark = pytest.mark.anyio

Pair = tuple[TaskStore, TaskStore]


def to_queue(name: str, *bodies: bytes) -> TaskChange:
    return to_create(a_task(name), owner=QUEUED, requests=messages(name, *bodies))


def messages(name: str, *bodies: bytes) -> tuple[OwnerRequest, ...]:
    return tuple(OwnerRequest(name, MESSAGE, body) for body in bodies)


# -- the queue -------------------------------------------------------------------------------------------------


async def test_of_a_claim_and_a_change_at_once_one_gets_the_task(store: TaskStore) -> None:
    for n in range(10):
        name = f"t{n}"
        await commit_all(store, to_queue(name, b"x"))
        claimed: list[str] = []
        changed: list[object] = []

        async def claim(claimed: list[str] = claimed) -> None:
            claimed += await store.claim(1)

        async def cancel(name: str = name, changed: list[object] = changed) -> None:
            changed += await store.commit([change_to(a_task(name), 1, [said("x")], previous_owner=QUEUED)])

        async with anyio.create_task_group() as group:
            for each in (claim, cancel) if n % 2 else (cancel, claim):
                group.start_soon(each)
        assert (claimed == [name]) != (changed == [None])
        expected = messages(name, b"x") if claimed else ()
        assert tuple(await store.take_owner_requests()) == expected


# -- requests --------------------------------------------------------------------------------------------------


async def test_requests_of_the_commit_reach_the_claimer_in_order_and_as_they_were(store: TaskStore) -> None:
    large = bytes(range(256)) * 4096
    bodies = [b"2", b"", large, b"\x00\xff", b"1", b"2", b""]
    await commit_all(store, to_queue("t", *bodies), to_queue("u", b"theirs"))
    assert list(await store.take_owner_requests()) == []
    assert list(await store.claim(1)) == ["t"]
    assert tuple(await store.take_owner_requests()) == messages("t", b"2", b"", large, b"\x00\xff", b"1")
    assert list(await store.take_owner_requests()) == []
    assert list(await store.claim(1)) == ["u"]
    assert tuple(await store.take_owner_requests()) == messages("u", b"theirs")


async def test_requests_are_deleted_when_the_task_has_no_owner_any_more_also_in_between(store: TaskStore) -> None:
    await commit_all(store, to_queue("t", b"1"), to_queue("u", b"1"))
    await commit_all(store, change_to(a_task("t"), 1, previous_owner=QUEUED))
    release = change_to(a_task("u"), 1, previous_owner=QUEUED)
    queue_again = change_to(a_task("u"), 1, owner=QUEUED, requests=messages("u", b"2"))
    async with anyio.create_task_group() as group:
        for changes in ([*map(to_create, map(a_task, map(str, range(300))))], [release], [queue_again]):
            group.start_soon(commit_all, store, *changes)  # the last two wait for the first, and are written together
            for _ in range(2):
                await anyio.lowlevel.checkpoint()
    await commit_all(store, change_to(a_task("t"), 1, owner=store.owner_id))
    assert list(await store.claim(2)) == ["u"]
    assert tuple(await store.take_owner_requests()) == messages("u", b"2")


@pytest.mark.parametrize("owner", [None, QUEUED])
async def test_requests_to_nobody_or_about_another_task_are_errors(store: TaskStore, owner: str | None) -> None:
    with pytest.raises(ValueError):
        await store.commit([to_create(a_task("t"), owner=owner, requests=messages("t" if owner is None else "u", b""))])
    assert await store.load("t") is None


# -- being cancelled -------------------------------------------------------------------------------------------


async def test_claims_and_takes_that_are_cancelled_lose_nothing(store: TaskStore) -> None:
    names = [f"{n}" for n in range(12)]
    await commit_all(store, *(to_queue(name, name.encode()) for name in names))
    claimed: list[str] = []
    taken: list[OwnerRequest] = []

    async def claim() -> None:
        claimed.extend(await store.claim(1))

    async def take() -> None:
        taken.extend(await store.take_owner_requests())

    for steps in range(len(names)):
        for call in (claim, take):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
    claimed += await store.claim(len(names))
    taken += await store.take_owner_requests()
    assert claimed == names
    assert sorted(request.task_id for request in taken) == sorted(names)


# -- several daemons -------------------------------------------------------------------------------------------


async def test_claims_of_two_daemons_at_once_are_disjoint_and_together_complete(pair: Pair) -> None:
    names = [f"{n:02}" for n in range(40)]
    await commit_all(pair[0], *(to_queue(name, name.encode()) for name in names))
    claimed: dict[TaskStore, list[str]] = {store: [] for store in pair}

    async def claim_all(store: TaskStore) -> None:
        while await store.count_queued():
            claimed[store] += await store.claim(3)

    async with anyio.create_task_group() as group:
        for store in pair:
            group.start_soon(claim_all, store)
    assert sorted([*claimed[pair[0]], *claimed[pair[1]]]) == names
    for store in pair:
        assert claimed[store] == sorted(claimed[store])
        taken = await store.take_owner_requests()
        assert [*taken] == [request for name in claimed[store] for request in messages(name, name.encode())]


# -- owners ----------------------------------------------------------------------------------------------------


async def test_an_orphan_is_taken_over_by_exactly_one_daemon(shared: NewStore) -> None:
    async with opened(shared()) as gone:
        dead = gone.owner_id
        ended = a_task("ended", state=TaskState.COMPLETED)
        await commit_all(gone, *(change(a_task(name), owner=dead) for name in "tu"))
        await commit_all(gone, change(ended, owner=dead), change(a_task("free")))
        assert await gone.send_owner_request(OwnerRequest("t", CANCEL))
    async with opened(shared()) as one, opened(shared()) as other:

        async def lists_orphans() -> bool:
            return bool(await one.list_orphans())

        await until(lists_orphans)
        assert sorted(await one.list_orphans()) == sorted(await other.list_orphans()) == ["t", "u"]
        results: dict[str, object] = {}

        async def take(store: TaskStore) -> None:
            (results[store.owner_id],) = await store.commit(
                [change(a_task("t"), expected=1, owner=store.owner_id, previous_owner=dead)]
            )

        async with anyio.create_task_group() as group:
            group.start_soon(take, one)
            group.start_soon(take, other)
        winner, loser = (one, other) if results[one.owner_id] is None else (other, one)
        assert results == {winner.owner_id: None, loser.owner_id: CommitConflict(1, winner.owner_id)}
        assert list(await one.list_orphans()) == list(await other.list_orphans()) == ["u"]
        assert list(await loser.take_owner_requests()) == []
        assert list(await winner.take_owner_requests()) == [OwnerRequest("t", CANCEL)]
