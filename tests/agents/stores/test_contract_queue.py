"""The contract of `TaskStore` about queued tasks and the requests left with them, tested on every store and both event loops."""

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
from support.task_changes import a_task, change_to, commit_all, said, to_create

pytestmark = pytest.mark.anyio

Pair = tuple[TaskStore, TaskStore]


def to_queue(name: str, *bodies: bytes) -> TaskChange:
    return to_create(a_task(name), owner=QUEUED, requests=messages(name, *bodies))


def messages(name: str, *bodies: bytes) -> tuple[OwnerRequest, ...]:
    return tuple(OwnerRequest(name, MESSAGE, body) for body in bodies)


async def owner_of(store: TaskStore, name: str) -> str | None:
    stored = await store.load(name)
    assert stored is not None
    return stored.owner


# -- the queue -------------------------------------------------------------------------------------------------


async def test_the_least_recently_changed_tasks_are_claimed_first_and_no_more_than_asked_for(store: TaskStore) -> None:
    await commit_all(store, *map(to_queue, "abcd"))
    await commit_all(store, to_create(a_task("free")), to_create(a_task("own"), owner=store.owner_id))
    await commit_all(store, change_to(a_task("a"), 1, [said("x")], owner=QUEUED, previous_owner=QUEUED))
    assert await store.count_queued() == 4
    assert list(await store.claim(0)) == []
    assert list(await store.claim(2)) == ["b", "c"]
    assert await store.count_queued() == 2
    assert list(await store.claim(9)) == ["d", "a"]
    assert list(await store.claim(9)) == []
    assert await store.count_queued() == 0
    for name in "abcd":
        assert await owner_of(store, name) == store.owner_id


async def test_a_claim_changes_the_owner_and_nothing_else(store: TaskStore) -> None:
    await commit_all(store, to_queue("t"), to_create(a_task("u")))
    before = await store.load("t")
    assert before is not None and before.owner == QUEUED
    await store.claim(1)
    after = await store.load("t")
    assert after is not None and after.owner == store.owner_id
    assert (after.generation, after.snapshot, after.scope) == (before.generation, before.snapshot, before.scope)


async def test_what_is_given_back_takes_its_place_in_the_queue_and_keeps_its_requests(store: TaskStore) -> None:
    await commit_all(store, to_queue("a", b"1"), to_queue("b"))
    assert list(await store.claim(1)) == ["a"]
    await commit_all(store, change_to(a_task("a"), 1, owner=QUEUED))
    assert list(await store.take_owner_requests()) == []
    assert list(await store.claim(2)) == ["a", "b"]
    assert list(await store.take_owner_requests()) == [OwnerRequest("a", MESSAGE, b"1")]


async def test_a_change_of_a_queued_task_says_so_and_loses_against_a_claim(store: TaskStore) -> None:
    await commit_all(store, to_queue("t"), to_queue("u"))
    (refusal,) = await store.commit([change_to(a_task("t"), 1, [said("x")])])
    assert refusal == CommitConflict(1, QUEUED)
    (refusal,) = await store.commit([change_to(a_task("t"), 1, owner=store.owner_id)])
    assert refusal == CommitConflict(1, QUEUED)
    await commit_all(store, change_to(a_task("t"), 1, [said("x")], previous_owner=QUEUED))
    assert list(await store.claim(2)) == ["u"]
    (refusal,) = await store.commit([change_to(a_task("u"), 1, [said("x")], previous_owner=QUEUED)])
    assert refusal == CommitConflict(1, store.owner_id)


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


async def test_queued_tasks_are_no_orphans(store: TaskStore) -> None:
    await commit_all(store, to_queue("t"))
    assert list(await store.list_orphans()) == []


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


async def test_requests_to_a_queued_task_wait_for_the_claimer_and_equal_ones_count_once(store: TaskStore) -> None:
    await commit_all(store, to_queue("t", b"1"))
    for body in (b"2", b"1", b"2"):
        assert await store.send_owner_request(OwnerRequest("t", MESSAGE, body))
    assert await store.send_owner_request(OwnerRequest("t", CANCEL))
    await commit_all(
        store,
        change_to(
            a_task("t"),
            1,
            [said("x")],
            owner=QUEUED,
            previous_owner=QUEUED,
            requests=(*messages("t", b"3", b"1"), OwnerRequest("t", CANCEL)),
        ),
    )
    assert list(await store.take_owner_requests()) == []
    await store.claim(1)
    expected = [*messages("t", b"1", b"2"), OwnerRequest("t", CANCEL), *messages("t", b"3")]
    assert list(await store.take_owner_requests()) == expected
    assert await store.send_owner_request(OwnerRequest("t", MESSAGE, b"1"))
    assert tuple(await store.take_owner_requests()) == messages("t", b"1")


async def test_requests_of_a_commit_reach_the_daemon_that_it_names(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id, requests=messages("t", b"1")))
    await commit_all(store, change_to(a_task("t"), 1, owner=store.owner_id, requests=messages("t", b"2")))
    assert tuple(await store.take_owner_requests()) == messages("t", b"1", b"2")


async def test_requests_of_a_refused_change_are_not_left(store: TaskStore) -> None:
    await commit_all(store, to_queue("t", b"1"))
    (refusal,) = await store.commit([to_queue("t", b"2")])
    assert isinstance(refusal, CommitConflict)
    await store.claim(1)
    assert tuple(await store.take_owner_requests()) == messages("t", b"1")


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


async def test_a_task_that_a_daemon_claims_at_once_with_a_commit_of_another_has_one_owner(pair: Pair) -> None:
    one, other = pair
    for n in range(10):
        name = f"{n}"
        await commit_all(one, to_queue(name))
        won: list[bool] = []

        async def claim(won: list[bool] = won, name: str = name) -> None:
            won.append(list(await one.claim(1)) == [name])

        async def take_over(won: list[bool] = won, name: str = name) -> None:
            change = change_to(a_task(name), 1, owner=other.owner_id, previous_owner=QUEUED)
            won.append(await other.commit([change]) == [None])

        async with anyio.create_task_group() as group:
            group.start_soon(claim)
            group.start_soon(take_over)
        assert sorted(won) == [False, True]


async def test_requests_to_a_claimed_task_reach_the_daemon_that_claimed_it(pair: Pair) -> None:
    front, worker = pair
    await commit_all(front, to_queue("t", b"1"))
    await worker.claim(1)
    assert await front.send_owner_request(OwnerRequest("t", MESSAGE, b"2"))
    assert list(await front.take_owner_requests()) == []
    assert tuple(await worker.take_owner_requests()) == messages("t", b"1", b"2")


async def test_a_claimed_task_of_a_dead_daemon_is_an_orphan_and_keeps_its_requests(pair: Pair) -> None:
    left, dead = pair
    await commit_all(left, to_queue("t", b"1"), to_queue("queued", b"2"))
    former = dead.owner_id
    assert list(await dead.claim(1)) == ["t"]
    await dead.close()
    assert list(await left.list_orphans()) == ["t"]
    await commit_all(left, change_to(a_task("t"), 1, owner=left.owner_id, previous_owner=former))
    assert list(await left.list_orphans()) == []
    assert tuple(await left.take_owner_requests()) == messages("t", b"1")
    assert list(await left.claim(2)) == ["queued"]


async def test_an_orphan_may_be_queued_again(pair: Pair) -> None:
    left, dead = pair
    await commit_all(left, to_queue("t", b"1"))
    former = dead.owner_id
    await dead.claim(1)
    await dead.close()
    await commit_all(left, change_to(a_task("t"), 1, owner=QUEUED, previous_owner=former))
    assert list(await left.list_orphans()) == []
    assert list(await left.claim(1)) == ["t"]
    assert tuple(await left.take_owner_requests()) == messages("t", b"1")


async def test_a_task_that_ended_in_the_queue_is_no_orphan(store: TaskStore) -> None:
    ended = a_task("t", state=TaskState.CANCELED)
    await commit_all(store, to_queue("t", b"1"))
    await commit_all(store, change_to(ended, 1, [said("x")], previous_owner=QUEUED))
    assert await store.count_queued() == 0
    assert [*await store.claim(1), *await store.list_orphans(), *await store.take_owner_requests()] == []


async def test_a_daemon_finds_the_tasks_that_it_owns(store: TaskStore) -> None:
    task = a_task("ended", state=TaskState.COMPLETED)
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id), to_create(a_task("free")))
    await commit_all(store, to_create(a_task("queued"), owner=QUEUED), to_create(task, owner=store.owner_id))
    assert list(await store.list_owned()) == ["t"]
    await store.claim(1)
    assert sorted(await store.list_owned()) == ["queued", "t"]
