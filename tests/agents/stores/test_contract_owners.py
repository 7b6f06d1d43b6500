"""The contract of `TaskStore` about push targets and owners, tested on every store and both event loops."""

from __future__ import annotations

import pytest

from discreet.a2a.types import PushConfig
from discreet.agents.stores.interface import CANCEL, CommitConflict, OwnerRequest, PushTarget, TaskStore
from support.task_changes import a_task, change_to, commit_all, to_create

pytestmark = pytest.mark.anyio


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
    assert await store.send_owner_request(OwnerRequest("u", CANCEL))
    assert await store.send_owner_request(OwnerRequest("t", CANCEL))
    assert await store.send_owner_request(OwnerRequest("u", CANCEL))
    assert not await store.send_owner_request(OwnerRequest("free", CANCEL))
    assert not await store.send_owner_request(OwnerRequest("nothing", CANCEL))
    assert list(await store.take_owner_requests()) == [OwnerRequest("u", CANCEL), OwnerRequest("t", CANCEL)]
    assert list(await store.take_owner_requests()) == []
    assert await store.send_owner_request(OwnerRequest("u", CANCEL))
    assert list(await store.take_owner_requests()) == [OwnerRequest("u", CANCEL)]


async def test_own_tasks_are_not_orphans(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t"), owner=store.owner_id))
    assert list(await store.list_orphans()) == []


async def test_closing_twice_is_the_same_as_closing_once(store: TaskStore) -> None:
    await store.close()
    await store.close()
    assert isinstance(store.durable, bool)
