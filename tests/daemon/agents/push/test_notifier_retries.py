"""Push notifications that fail: what is repeated, when a target is given up, and what is dropped."""

from __future__ import annotations

import pytest

from discreet.daemon.agents.push.delivery import Timeouts
from discreet.daemon.agents.push.notifier import MAX_BACKOFF_SECONDS, MAX_FAILURES
from discreet.daemon.agents.push.queue import MAX_NOTIFICATIONS
from support.waits import DEADLINE_SECONDS
from support.webhooks import (
    HANG,
    OK,
    Answer,
    EndlessTiming,
    Events,
    TurnedTiming,
    enqueue,
    hooked,
    local,
    running,
    settled,
    status,
    target,
)

pytestmark = pytest.mark.anyio


# -- what is repeated ------------------------------------------------------------------------------------------


async def test_the_back_off_doubles_and_the_fifth_attempt_is_the_last(events: Events) -> None:
    timing = TurnedTiming()
    answers = [status(code) for code in (500, 503, 429, 408, 425)]
    async with hooked(*answers) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(6)
        assert hook.bodies == [b"1"] * 5 + [b"2"]
        assert timing.slept[:4] == pytest.approx([0.5, 1.0, 2.0, 4.0])
        assert events() == [("push.failed", {"task": "t", "config": "c", "host": "127.0.0.1", "status": 425})]


async def test_jitter_shortens_the_back_off() -> None:
    timing = TurnedTiming(0.25)
    async with hooked(status(500), status(500)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(3)
        assert timing.slept[:2] == [0.125, 0.25]


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
    timing = TurnedTiming()
    async with hooked(status(503, f"Retry-After: {said}")) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(2)
        assert timing.slept[0] == pytest.approx(waited)


async def test_no_attempt_begins_two_minutes_after_the_first(events: Events) -> None:
    async with hooked(*[status(503, "Retry-After: 30")] * 4) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(5)
        assert hook.bodies == [b"1"] * 4 + [b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_success(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 422])
async def test_other_client_errors_are_not_retried(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.bodies == [b"1", b"2"]
        assert [(name, fields["status"]) for name, fields in events()] == [("push.failed", code)]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(code: int, events: Events) -> None:
    async with hooked() as inner, hooked(status(code, f"Location: {inner.url}")) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, inner.connections) == ([b"1", b"2"], 0)
        assert [fields["status"] for _, fields in events()] == [code]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"", "close"), "protocol"),
        (Answer(b"HTTP/1.1 200", "close"), "protocol"),
        (Answer(b"\x16\x03\x01 rubbish\r\n\r\n", "close"), "protocol"),
        (Answer(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000, "close"), "protocol"),
        (HANG, "timeout"),
        (Answer(b"HTTP/1.1 200 OK\r\n", "hang"), "timeout"),
    ],
)
async def test_an_invalid_response_is_a_failure_that_is_retried(answer: Answer, reason: str, events: Events) -> None:
    timeouts = Timeouts(read=0.05)
    async with hooked(bad=answer) as hook, running(local(timeouts=timeouts)) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert hook.bodies.count(b"bad") > 1
        assert [fields["reason"] for _, fields in events()] == [reason]


async def test_an_attempt_as_a_whole_has_a_timeout(events: Events) -> None:
    async with hooked(bad=HANG) as hook, running(local(timeouts=Timeouts(total=0.05))) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert [fields["reason"] for _, fields in events()] == ["timeout"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "close"),
        Answer(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 500_000, "hang"),
        Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrubbish", "hang"),
    ],
)
async def test_the_status_counts_whatever_happens_to_the_body(answer: Answer, events: Events) -> None:
    async with hooked(answer) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


async def test_a_refused_connection_is_a_failure_that_is_retried(events: Events) -> None:
    timing = TurnedTiming()
    async with hooked() as gone:
        url = gone.url
    async with running(local(timing)) as notifier:
        enqueue(notifier, target(url), b"1")
        await settled(notifier)
        assert [fields["reason"] for _, fields in events()] == ["connection"]
        assert len([seconds for seconds in timing.slept if seconds < 5.0]) == 4


# -- when it is given up ---------------------------------------------------------------------------------------


async def test_after_ten_consecutive_failures_a_target_is_given_up_until_it_is_set_again(events: Events) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        to = target(hook.url)
        enqueue(notifier, to, *[b"lost"] * (MAX_FAILURES + 3))
        await settled(notifier)
        enqueue(notifier, to, b"not even tried")
        await settled(notifier)
        assert hook.bodies == [b"lost"] * MAX_FAILURES
        names = [name for name, _ in events()]
        assert names == ["push.failed"] * MAX_FAILURES + ["push.given_up"]
        notifier.update_target(to)
        enqueue(notifier, to, b"again")
        await hook.received(MAX_FAILURES + 1)
        assert hook.bodies[-1] == b"again"


async def test_a_changed_config_is_tried_again() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"lost"] * MAX_FAILURES)
        await settled(notifier)
        enqueue(notifier, target(hook.url + "/new"), b"found")
        await hook.received(MAX_FAILURES + 1)
        assert hook.requests[-1].path == "/hook/new"


async def test_a_success_resets_the_count_of_failures(events: Events) -> None:
    answers = [status(400)] * (MAX_FAILURES - 1)
    async with hooked(*answers, OK, *answers) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"x"] * (2 * MAX_FAILURES))
        await hook.received(2 * MAX_FAILURES)
        assert {name for name, _ in events()} == {"push.failed"}


async def test_the_queue_of_a_task_that_has_ended_is_deleted() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES * 2) as hook, running(local()) as notifier:
        for task_id, count in (("given-up", MAX_FAILURES), ("failed", 1), ("delivered", 0)):
            to = target(hook.url, task_id=task_id)
            enqueue(notifier, to, *[b"x"] * count)
            notifier.enqueue(to, b"end", final=True)
            await settled(notifier)
        assert not notifier._queues


# -- bounds ----------------------------------------------------------------------------------------------------


async def test_dropped_notifications_are_counted_and_logged_once(events: Events) -> None:
    async with hooked() as hook, running(local()) as notifier:
        to = target(hook.url.replace("/hook", "/gated"))
        enqueue(notifier, to, b"first")
        await hook.received(1)
        enqueue(notifier, to, *[b"%d" % number for number in range(MAX_NOTIFICATIONS + 4)])
        notifier.enqueue(to, b"end", final=True)
        hook.gate.set()
        await hook.received(MAX_NOTIFICATIONS + 1)
        await settled(notifier)
        assert hook.bodies[1:3] == [b"5", b"6"] and hook.bodies[-1] == b"end"
        assert events() == [("push.dropped", {"task": "t", "config": "c", "host": "127.0.0.1", "notifications": 5})]


async def test_nothing_more_is_sent_to_a_removed_target() -> None:
    async with hooked() as hook, running(local()) as notifier:
        to = target(hook.url.replace("/hook", "/gated"))
        enqueue(notifier, to, b"1", b"2")
        await hook.received(1)
        notifier.remove_target("t", "c")
        notifier.remove_target("t", "unknown")
        await settled(notifier)
        hook.gate.set()
        enqueue(notifier, target(hook.url, config_id="other"), b"3")
        await hook.received(2)
        assert hook.bodies == [b"1", b"3"]


async def test_draining_retries_waiting_notifications_at_once(events: Events) -> None:
    timing = EndlessTiming()
    async with hooked(status(503), status(503)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await timing.sleeping.wait()
        await notifier.drain(DEADLINE_SECONDS)
        assert hook.bodies == [b"1", b"1", b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


async def test_notifications_left_after_draining_are_logged(events: Events) -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url.replace("/hook", "/gated")), b"1", b"2", b"3")
        await hook.received(1)
        await notifier.drain(0.01)
        assert events() == [("push.unsent", {"targets": 1, "notifications": 3})]


async def test_draining_an_idle_pusher_takes_no_time(events: Events) -> None:
    async with running(local()) as notifier:
        await notifier.drain(float("inf"))
    assert events() == []
