"""Which push configs may be set, and what of their secrets is logged: nothing."""

from __future__ import annotations

import anyio
import anyio.abc
import pytest

from discreet.daemon.agents.model.types import Authentication, PushConfig
from discreet.daemon.agents.push.notifier import MAX_FAILURES, PushNotifier, is_push_available
from discreet.daemon.agents.push.ssrf import EXPECTED_PUBLIC_URL, EXPECTED_URL
from discreet.errors.backoff import SYSTEM_TIMING, SystemTiming
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams
from discreet.errors.redaction import scrub
from discreet.errors.redaction.caller_secrets import MAX_CALLER_SECRETS
from support.webhooks import Events, enqueue, hooked, local, running, settled, status, target

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


def test_tokens_and_credentials_are_known_to_the_scrubber() -> None:
    shown = Authentication("Custom", "first-credential-0")
    PushNotifier().check_config(PushConfig(GOOD, token="token of mine one", authentication=shown), param="config")
    assert "of mine" not in scrub("they said token of mine one to me")
    assert "credential" not in scrub("they said first-credential-0 to me")


def test_the_scrubber_is_not_flooded_with_tokens() -> None:
    notifier = PushNotifier()
    for number in range(MAX_CALLER_SECRETS + 1):
        notifier.check_config(PushConfig(GOOD, token=f"plain words number {number} here"), param="config")
    assert "plain words" in scrub("x plain words number 0 here x")
    assert "plain words" not in scrub("x plain words number 1 here x")
    for number in range(MAX_CALLER_SECRETS):
        notifier.check_config(PushConfig(GOOD, token=f"other words number {number} here"), param="config")
    assert "plain words" in scrub(f"x plain words number {MAX_CALLER_SECRETS} here x")


async def test_no_part_of_a_secret_is_logged(events: Events) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        shown = Authentication("Bearer", "secretcredential")
        to = target(hook.url + "/secretpath?secretquery", token="secrettoken", authentication=shown)
        enqueue(notifier, to, *[b"secretbody"] * (MAX_FAILURES + 1))
        await settled(notifier)
        logged = events()
        assert len(logged) == MAX_FAILURES + 1
        assert "secret" not in repr(logged)


async def test_the_clock_of_the_system_is_the_event_loops() -> None:
    assert isinstance(SYSTEM_TIMING, SystemTiming)
    assert SYSTEM_TIMING.now() <= anyio.current_time() <= SYSTEM_TIMING.now()
    assert 0 <= SYSTEM_TIMING.jitter() < 1
    await SYSTEM_TIMING.sleep(0)


def test_notifications_are_available_with_the_extra() -> None:
    assert is_push_available()
