"""Warnings that come again and again: logged now and then, and counted in between."""

from __future__ import annotations

from discreet.daemon.logs import INTERVAL_SECONDS, RepeatedWarning
from support.logged_events import logged_events


def test_the_first_is_logged_and_then_one_in_each_interval_with_the_number_of_the_others() -> None:
    now = 1000.0
    with logged_events("warn") as logged:
        warn = RepeatedWarning("x.refused", clock=lambda: now)
        for name in "abc":
            warn(name=name)
        assert logged() == [("x.refused", {"name": "a"})]
        now += INTERVAL_SECONDS
        for name in "de":
            warn(name=name)
        assert logged() == [("x.refused", {"name": "d", "unlogged": 2})]
        now += INTERVAL_SECONDS
        warn(name="f")
        now += INTERVAL_SECONDS
        warn(name="g")
        assert logged() == [("x.refused", {"name": "f", "unlogged": 1}), ("x.refused", {"name": "g"})]
