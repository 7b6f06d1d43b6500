"""When deliveries to a webhook end: it is given up, its queue is full, its config is deleted, or the daemon drains."""

from __future__ import annotations

import pytest

from discreet.agents.notifier import MAX_FAILURES, MAX_NOTIFICATIONS
from discreet.daemon.memory import MemoryBudget
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS, until
from support.webhooks import OK, EndlessTiming, enqueue, hooked, local, running, settled, status, target

pytestmark = pytest.mark.anyio


async def test_after_ten_consecutive_failures_a_target_is_given_up_until_it_is_set_again(logged: LoggedEvents) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        to = target(hook.url)
        enqueue(notifier, to, *[b"lost"] * (MAX_FAILURES + 3))
        await settled(notifier)
        enqueue(notifier, to, b"not even tried")
        await settled(notifier)
        assert hook.bodies == [b"lost"] * MAX_FAILURES
        names = logged.names()
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


async def test_a_success_resets_the_count_of_failures(logged: LoggedEvents) -> None:
    answers = [status(400)] * (MAX_FAILURES - 1)
    async with hooked(*answers, OK, *answers) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"x"] * (2 * MAX_FAILURES))
        await hook.received(2 * MAX_FAILURES)
        assert set(logged.names()) == {"push.failed"}


async def test_the_queue_of_a_task_that_has_ended_is_deleted() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES * 2) as hook, running(local()) as notifier:
        for task_id, count in (("given-up", MAX_FAILURES), ("failed", 1), ("delivered", 0)):
            to = target(hook.url, task_id=task_id)
            enqueue(notifier, to, *[b"x"] * count)
            notifier.enqueue(to, b"end", final=True)
            await settled(notifier)
        assert notifier.counts() == {"targets": 0, "notifications": 0}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the length of the queue is the same on each loop
async def test_dropped_notifications_are_counted_and_logged_once(logged: LoggedEvents) -> None:
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
        assert logged() == [("push.dropped", {"task": "t", "config": "c", "host": "127.0.0.1", "notifications": 5})]


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


async def test_draining_retries_waiting_notifications_at_once(logged: LoggedEvents) -> None:
    timing = EndlessTiming()
    async with hooked(status(503), status(503)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await timing.sleeping.wait()
        await notifier.drain(DEADLINE_SECONDS)
        assert hook.bodies == [b"1", b"1", b"2"]
        assert logged.names() == ["push.failed"]


async def test_notifications_left_after_draining_are_logged(logged: LoggedEvents) -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url.replace("/hook", "/gated")), b"1", b"2", b"3")
        await hook.received(1)
        await notifier.drain(0.01)
        assert logged() == [("push.unsent", {"targets": 1, "notifications": 3})]


async def test_all_targets_together_stay_within_their_share_of_the_budget(logged: LoggedEvents) -> None:
    budget = MemoryBudget(80_000)
    async with hooked() as hook, running(local(budget=budget)) as notifier:
        for name in ("a", "b", "c", "d"):
            for _ in range(2):
                enqueue(notifier, target(hook.url, config_id=name), bytes(2_000))
                assert budget.held("notifications") <= 10_000
        await settled(notifier)
        assert len(hook.requests) == 5
        assert budget.held("notifications") == 0
        dropped = [fields["notifications"] for name, fields in logged() if name == "push.dropped"]
        assert sum(dropped) == 3


async def test_the_end_of_a_task_that_does_not_fit_is_dropped_too(logged: LoggedEvents) -> None:
    budget = MemoryBudget(80_000)
    async with hooked() as hook, running(local(budget=budget)) as notifier:
        notifier.enqueue(target(hook.url), bytes(20_000), final=True)
        assert budget.held("notifications") == 0
        await until(lambda: not notifier.counts()["targets"])
        assert hook.requests == []
        assert logged.names() == ["push.dropped"]
