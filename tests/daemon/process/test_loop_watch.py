"""The watch of the event loop where the system gives it no thread: handlers run on, and the next step tries again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from discreet.daemon.process.loop_watch import LoopWatch


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


def test_with_no_limit_nothing_is_watched() -> None:
    assert not LoopWatch(None).asleep
