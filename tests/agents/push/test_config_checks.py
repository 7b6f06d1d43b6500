"""Which push configs are refused when they are set, and that no part of their secrets is logged."""

from __future__ import annotations

import pytest

from discreet.a2a.types import Authentication, PushConfig
from discreet.agents.notifier import MAX_FAILURES, PushNotifier
from discreet.agents.stores.interface import PushTarget
from discreet.client.outbound.network import EXPECTED_PUBLIC_URL, EXPECTED_URL
from discreet.errors.exceptions import FailureError
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
