"""Every state × every event."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from discreet.daemon.lifecycle import TABLE, Event, Lifecycle, State

PATHS: dict[State, list[Event]] = {
    "starting": [],
    "serving": ["ready"],
    "swapping": ["ready", "reload"],
    "swapped": ["ready", "reload", "swap"],
    "draining": ["ready", "end-of-input"],
    "stopped": ["ready", "end-of-input", "drained"],
}
ENDINGS = {"end-of-input", "signal", "shutdown", "exit", "parent-gone"}
CUTS = {"reader-gone", "failed"}


def after(*events: Event) -> Lifecycle:
    life = Lifecycle()
    for event in events:
        life.apply(event)
    return life


def expected(state: State, event: Event) -> State:
    if state in ("stopped", "swapped"):
        return state
    if event in CUTS:
        return "stopped"
    if event in ENDINGS and state in ("starting", "serving", "swapping"):
        return "draining"
    if event == "ready" and state == "starting":
        return "serving"
    if event in ("drained", "window-closed") and state == "draining":
        return "stopped"
    if (state, event) == ("serving", "reload"):
        return "swapping"
    if (state, event) == ("swapping", "swap"):
        return "swapped"
    return state


@pytest.mark.parametrize(("state", "event"), list(product(get_args(State), get_args(Event))))
def test_every_event_in_every_state_leads_where_the_drawing_says(state: State, event: Event) -> None:
    life = after(*PATHS[state])
    assert life.state == state
    changed = life.apply(event)
    assert life.state == expected(state, event)
    assert changed == (life.state != state) == ((state, event) in TABLE)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (["ready", "end-of-input", "drained"], 0),
        (["ready", "signal", "window-closed"], 0),
        (["ready", "shutdown", "reader-gone"], 0),
        (["ready", "reader-gone"], 1),
        (["ready", "failed"], 1),
        (["ready", "signal", "failed"], 1),
    ],
)
def test_the_status_tells_a_graceful_end_from_a_broken_one(events: list[Event], status: int) -> None:
    assert after(*events).status == status


def test_the_first_reason_to_end_stands() -> None:
    assert after("ready", "shutdown", "end-of-input", "drained").reason == "shutdown"


def test_a_reload_is_no_reason_to_end_and_gives_way_to_one() -> None:
    assert after("ready", "reload", "swap").reason is None
    assert after("ready", "reload", "signal", "drained").reason == "signal"
