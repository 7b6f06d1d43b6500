"""Push configs: nothing is sent to one that the store does not have."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.a2a.types import Authentication, PushConfig, Task, TaskState, TaskStatus
from discreet.agents.notifier import PushNotifier
from discreet.agents.push_configs import MAX_CONFIGS, PushConfigs
from discreet.agents.stores.interface import PushTarget, StoreError
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.task_cache import TaskCache
from discreet.errors import FailureError, PushNotificationNotSupported, UnsupportedOperation
from discreet.errors.redaction.scrubber import scrub
from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio

HOOK = PushConfig("https://hooks.example.com/a")


class Full:
    """A store that keeps no push configs."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        raise StoreError("the disk is full")


def cache_of(store: Any) -> TaskCache:
    cache = TaskCache(store)
    live = cache.create(Task("t", "c", TaskStatus(TaskState.INPUT_REQUIRED)), "me")
    live.generation = live.committed = 1
    return cache


async def test_the_log_says_once_which_extra_is_missing(logged: LoggedEvents) -> None:
    configs = PushConfigs(cache_of(MemoryStore()), None, lacks_extra=True)
    for _ in range(2):
        with pytest.raises(FailureError) as refused:
            await configs.list("t", scope="me")
        assert isinstance(refused.value.failure, PushNotificationNotSupported)
    assert logged() == [("push.unavailable", {"install": "pip install 'discreet[push]'"})]


async def test_a_secret_is_redacted_only_if_it_looks_random_and_its_task_is_the_callers() -> None:
    store = MemoryStore()
    configs = PushConfigs(cache_of(store), PushNotifier())
    unknown, word, random = "hT7kQ2zXw9LmP4vR8bNc", "request.failed", "Zq3xW8nVt5RyK1mJ6pLd"
    for task_id, token in (("other", unknown), ("t", word), ("t", "timestamp"), ("t", random)):
        config = PushConfig(HOOK.url, token=token, authentication=Authentication("Bearer", token))
        if task_id == "t":
            await configs.put(task_id, config, scope="me", version="1.0")
        else:
            with pytest.raises(FailureError):
                await configs.put(task_id, config, scope="me", version="1.0")
    said = f"{unknown} {word} timestamp {random}"
    assert scrub(said) == said.replace(random, "<redacted>")


async def test_a_config_that_the_store_refuses_is_not_there() -> None:
    store = Full()
    configs = PushConfigs(cache_of(store), PushNotifier())  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        await configs.put("t", HOOK, scope="me", version="1.0")
    assert await configs.list("t", scope="me") == []


async def test_a_config_of_the_same_id_takes_its_place_and_one_too_many_is_refused() -> None:
    store = MemoryStore()
    configs = PushConfigs(cache_of(store), PushNotifier())
    for number in range(MAX_CONFIGS):
        await configs.put("t", PushConfig(HOOK.url, id=str(number)), scope="me", version="1.0")
    await configs.put("t", PushConfig("https://hooks.example.com/b", id="0"), scope="me", version="1.0")
    with pytest.raises(FailureError) as refused:
        await configs.put("t", HOOK, scope="me", version="1.0")
    assert isinstance(refused.value.failure, UnsupportedOperation)
    stored = await configs.list("t", scope="me")
    assert len(stored) == MAX_CONFIGS
    assert [config.id for config in stored if config.url.endswith("/b")] == ["0"]
