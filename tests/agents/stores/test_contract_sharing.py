"""The contract of `TaskStore` about daemons that share what is stored, at the same time or one after the other. Tested on every
store that daemons share, and both event loops."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.types import PushConfig, TaskQuery, TaskState
from discreet.agents.stores.interface import CANCEL, CommitConflict, OwnerRequest, PushTarget, TaskStore
from support.places import NewStore
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, said
from support.waits import until

pytestmark = pytest.mark.anyio

Pair = tuple[TaskStore, TaskStore]


async def test_everything_is_still_stored_after_reopening(shared: NewStore) -> None:
    target = PushTarget(PushConfig("https://example.org", "p", "t"), "1.0")
    async with opened(shared()) as store:
        await commit_all(store, change(a_task("t"), snapshot=True), change(a_task("u")))
        await commit_all(store, change(a_task("t"), said("1"), expected=1))
        assert await store.put_push_target("t", target)
        before = await store.load("t"), await store.list(TaskQuery(scope="me"))
        token = (await store.list(TaskQuery(scope="me", page_size=1))).next_page_token
    async with opened(shared()) as store:
        assert (await store.load("t"), await store.list(TaskQuery(scope="me"))) == before
        assert list(await store.load_push_targets("t")) == [target]
        assert [task.id for task in (await store.list(TaskQuery(scope="me", page_token=token))).tasks] == ["u"]


async def test_another_daemon_reads_a_finished_task_to_its_end(pair: Pair) -> None:
    ours, theirs = pair
    events = [said(str(n)) for n in range(10)]
    await commit_all(ours, change(a_task("t"), snapshot=True, owner=ours.owner_id))
    await commit_all(ours, change(a_task("t"), *events[:5], expected=1, owner=ours.owner_id))
    ended = a_task("t", state=TaskState.COMPLETED)
    await commit_all(ours, change(ended, *events[5:], expected=6, snapshot=True))
    assert [logged.event for logged in await theirs.event_log.read("t", after=1)] == events


# -- owners ----------------------------------------------------------------------------------------------------


async def test_a_task_of_another_daemon_can_not_be_changed(pair: Pair) -> None:
    ours, theirs = pair
    await commit_all(ours, change(a_task("t"), owner=ours.owner_id))
    for attempt in (
        change(a_task("t"), said("x"), expected=1),
        change(a_task("t"), said("x"), expected=1, owner=theirs.owner_id),
        change(a_task("t"), expected=1, owner=theirs.owner_id),
        change(a_task("t"), expected=1, snapshot=True, previous_owner=theirs.owner_id),
    ):
        assert await theirs.commit([attempt]) == [CommitConflict(1, ours.owner_id)]
    assert list(await theirs.list_orphans()) == []
    await commit_all(ours, change(a_task("t"), said("x"), expected=1))
    await commit_all(theirs, change(a_task("t"), said("y"), expected=2, owner=theirs.owner_id))


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
