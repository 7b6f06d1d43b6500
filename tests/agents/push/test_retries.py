"""What counts as a failure of a webhook, which failures are retried, and when."""

from __future__ import annotations

from itertools import repeat

import pytest

from discreet.agents.notifier import MAX_BACKOFF_SECONDS, Timeouts
from support.logged_events import LoggedEvents
from support.timing import FakeTiming
from support.webhooks import HANG, Answer, enqueue, hooked, local, running, settled, status, target

pytestmark = pytest.mark.anyio

ONE_LOOP = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For the tables of what a response means, which is the same on each loop."""


async def test_the_back_off_doubles_and_the_fifth_attempt_is_the_last(logged: LoggedEvents) -> None:
    timing = FakeTiming()
    answers = [status(code) for code in (500, 503, 429, 408, 425)]
    async with hooked(*answers) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(6)
        assert hook.bodies == [b"1"] * 5 + [b"2"]
        assert timing.slept[:4] == pytest.approx([0.5, 1.0, 2.0, 4.0])
        assert logged() == [("push.failed", {"task": "t", "config": "c", "host": "127.0.0.1", "status": 425})]


async def test_jitter_shortens_the_back_off() -> None:
    timing = FakeTiming(repeat(0.25))
    async with hooked(status(500), status(500)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(3)
        assert timing.slept[:2] == [0.125, 0.25]


@ONE_LOOP
@pytest.mark.parametrize(
    ("said", "waited"),
    [
        ("7", 7.0),
        ("0", 0.5),
        ("3600", MAX_BACKOFF_SECONDS),
        ("9" * 400, MAX_BACKOFF_SECONDS),
        ("Thu, 01 Jan 2099 00:00:00 GMT", MAX_BACKOFF_SECONDS),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.5),
        ("soon", 0.5),
        ("-5", 0.5),
        ("²", 0.5),
    ],
)
async def test_retry_after_is_honoured_up_to_the_maximum(said: str, waited: float) -> None:
    timing = FakeTiming()
    async with hooked(status(503, f"Retry-After: {said}")) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(2)
        assert timing.slept[0] == pytest.approx(waited)


async def test_no_attempt_begins_two_minutes_after_the_first(logged: LoggedEvents) -> None:
    async with hooked(*[status(503, "Retry-After: 30")] * 4) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(5)
        assert hook.bodies == [b"1"] * 4 + [b"2"]
        assert logged.names() == ["push.failed"]


@ONE_LOOP
@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_success(code: int, logged: LoggedEvents) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, logged()) == ([b"1", b"2"], [])


@ONE_LOOP
@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 422])
async def test_other_client_errors_are_not_retried(code: int, logged: LoggedEvents) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.bodies == [b"1", b"2"]
        assert [(name, fields["status"]) for name, fields in logged()] == [("push.failed", code)]


@ONE_LOOP
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(code: int, logged: LoggedEvents) -> None:
    async with hooked() as inner, hooked(status(code, f"Location: {inner.url}")) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, inner.connections) == ([b"1", b"2"], 0)
        assert [fields["status"] for _, fields in logged()] == [code]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"", "close"), "connection"),
        (Answer(b"HTTP/1.1 200", "close"), "connection"),
        (Answer(b"\x16\x03\x01 rubbish\r\n\r\n", "close"), "protocol"),
        (Answer(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000, "close"), "protocol"),
        (HANG, "timeout"),
        (Answer(b"HTTP/1.1 200 OK\r\n", "hang"), "timeout"),
    ],
)
async def test_an_invalid_response_is_a_failure_that_is_retried(
    answer: Answer, reason: str, logged: LoggedEvents
) -> None:
    timeouts = Timeouts(read=0.05) if reason == "timeout" else Timeouts()
    async with hooked(bad=answer) as hook, running(local(timeouts=timeouts)) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert hook.bodies.count(b"bad") > 1
        assert [fields["reason"] for _, fields in logged()] == [reason]


async def test_an_attempt_as_a_whole_has_a_timeout(logged: LoggedEvents) -> None:
    async with hooked(bad=HANG) as hook, running(local(timeouts=Timeouts(total=0.05))) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert [fields["reason"] for _, fields in logged()] == ["timeout"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "close"),
        Answer(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 500_000, "hang"),
        Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrubbish", "hang"),
    ],
)
async def test_the_status_counts_whatever_happens_to_the_body(answer: Answer, logged: LoggedEvents) -> None:
    async with hooked(answer) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, logged()) == ([b"1", b"2"], [])


async def test_a_refused_connection_is_a_failure_that_is_retried(logged: LoggedEvents) -> None:
    timing = FakeTiming()
    async with hooked() as gone:
        url = gone.url
    async with running(local(timing)) as notifier:
        enqueue(notifier, target(url), b"1")
        await settled(notifier)
        assert [fields["reason"] for _, fields in logged()] == ["connection"]
        assert len([seconds for seconds in timing.slept if seconds < 5.0]) == 4
