"""The watch of the event loop where the system gives it no thread: handlers run on, and the next step tries again."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from discreet.daemon.process.loop_watch import LoopWatch
from support.logged_events import logged_events
from support.waits import DEADLINE_SECONDS


@pytest.mark.parametrize("refusals", [0, 1, 3])
def test_a_step_without_a_thread_leaves_the_next_one_to_try(refusals: int) -> None:
    tried: list[Callable[[], None]] = []

    def start(run: Callable[[], None]) -> None:
        tried.append(run)
        if len(tried) <= refusals:
            raise RuntimeError("can't start new thread")

    watch = LoopWatch(0.1, start_thread=start)
    for _ in range(5):
        watch.step = ("a",)
        if watch.asleep:
            watch.look()
        watch.step = None
    assert len(tried) == refusals + 1
    assert not watch.asleep


def test_a_step_that_was_logged_is_known_to_have_ended_when_the_watch_closes() -> None:
    watch = LoopWatch(0.001)
    with logged_events("warn") as logged:
        watch.step = ("a",)
        watch.look()
        names, ends = list[str](), monotonic() + DEADLINE_SECONDS
        while not names and monotonic() < ends:
            names = logged.names()
        watch.step = None
        watch.close()
        watch.close()
        assert watch.blocked == 1
        assert [*names, *logged.names()] == ["loop.blocked", "loop.resumed"]


def test_with_no_limit_nothing_is_watched() -> None:
    assert not LoopWatch(None).asleep
