"""Push configs: which are refused when they are set, that none of their secrets is logged, and that nothing is sent to one that the store does not have."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.a2a.types import Authentication, PushConfig, Task, TaskState, TaskStatus
from discreet.agents.live_task import TaskCache
from discreet.agents.notifier import MAX_FAILURES, PushNotifier
from discreet.agents.push_configs import MAX_CONFIGS, PushConfigs
from discreet.agents.stores.interface import PushTarget, StoreError
from discreet.agents.stores.memory import MemoryStore
from discreet.client.outbound.network import EXPECTED_PUBLIC_URL, EXPECTED_URL
from discreet.errors import FailureError, PushNotificationNotSupported, UnsupportedOperation
from discreet.errors.failures import InvalidParams
from discreet.errors.redaction import scrub
from support.logged_events import LoggedEvents
from support.webhooks import enqueue, hooked, local, running, settled, status, target

pytestmark = pytest.mark.anyio

GOOD = "https://hooks.example/"


@pytest.mark.parametrize(
    ("config", "param", "expected"),
    [
        (PushConfig("ftp://hooks.example/"), "config.url", EXPECTED_URL),
        (PushConfig("https://169.254.169.254/"), "config.url", EXPECTED_PUBLIC_URL),
        (PushConfig(GOOD, token="a\r\nX-Other: b"), "config.token", "string of visible ASCII"),
        (PushConfig(GOOD, token="tökens"), "config.token", "string of visible ASCII"),
        (PushConfig(GOOD, token=" padded "), "config.token", "string of visible ASCII"),
        (
            PushConfig(GOOD, authentication=Authentication("Bea rer", "x")),
            "config.authentication",
            "name of an HTTP authentication scheme",
        ),
        (
            PushConfig(GOOD, authentication=Authentication("Bearer", "a\nb")),
            "config.authentication",
            "credentials in visible ASCII",
        ),
    ],
)
def test_an_unusable_config_is_refused_when_it_is_set(config: PushConfig, param: str, expected: str) -> None:
    for path, said in (("config", param), ("", param.removeprefix("config."))):
        with pytest.raises(FailureError) as caught:
            PushNotifier().check_config(config, param=path)
        failure = caught.value.failure
        assert isinstance(failure, InvalidParams)
        assert (failure.param, failure.expected) == (said, expected)


def test_a_usable_config_is_accepted() -> None:
    usual = PushConfig(GOOD, token="", authentication=Authentication("Basic", "dXNlcjpwYXNz"))
    assert PushNotifier().check_config(usual, param="config") is None
    assert PushNotifier(allow_private=True).check_config(PushConfig("http://127.0.0.1:8080/"), param="config") is None


def test_secrets_that_look_random_are_known_to_the_scrubber_once_their_config_is_accepted() -> None:
    shown = Authentication("Custom", "Kx7-pQ2zM9wT4vBn-8Lc")
    config = PushConfig(GOOD, "c", "t", token="request.failed", authentication=shown)
    notifier = PushNotifier()
    notifier.check_config(config, param="config")
    said = "request.failed, they said Kx7-pQ2zM9wT4vBn-8Lc to me"
    assert scrub(said) == said
    notifier.update_target(PushTarget(config, "1.0"))
    assert scrub(said) == "request.failed, they said <redacted> to me"


async def test_no_part_of_a_secret_is_logged(logged: LoggedEvents) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        shown = Authentication("Bearer", "secretcredential")
        to = target(hook.url + "/secretpath?secretquery", token="secrettoken", authentication=shown)
        enqueue(notifier, to, *[b"secretbody"] * (MAX_FAILURES + 1))
        await settled(notifier)
        logged = logged()
        assert len(logged) == MAX_FAILURES + 1
        assert "secret" not in repr(logged)


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
