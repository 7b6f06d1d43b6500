"""The logger and its queue: bounds, order, levels, snapshots, and warnings that come again and again."""

from __future__ import annotations

import signal
import threading

import pytest

from discreet.daemon.logs import Logger, RepeatedWarning, parse_level
from discreet.daemon.logs.logger import (
    CONTAINER_BYTES,
    INTERVAL_SECONDS,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_EVENTS,
    LogEvent,
    LogQueue,
)
from discreet.errors.redaction.limits import CUT
from support.logged_events import logged_events


def drained(queue: LogQueue) -> list[LogEvent]:
    events = []
    while (event := queue.get()) is not None:
        events.append(event)
    return events


def names(logger: Logger) -> list[str]:
    return [event.name for event in drained(logger.queue)]


def test_too_many_bytes_are_refused_and_counted() -> None:
    queue = LogQueue()
    for _ in range(20):
        queue.put(20, "e", {"text": "x" * (MAX_BYTES // 4)})
    assert (len(queue), queue.refused) == (4, 16)
    drained(queue)
    for _ in range(MAX_EVENTS):
        queue.put(20, "e", {"list": ["x" * 1000] * 60})
    assert queue.refused > 16


def test_room_comes_back_as_events_leave() -> None:
    queue = LogQueue()
    for _ in range(3):
        for _ in range(4):
            queue.put(20, "e", {"text": "x" * (MAX_BYTES // 4)})
        assert len(drained(queue)) == 4
    assert queue.refused == 0


def test_a_container_that_changes_later_is_kept_as_it_was() -> None:
    queue = LogQueue()
    sizes = [1, 2]
    fields: dict[str, object] = {"sizes": sizes, "map": {"inner": sizes}}
    queue.put(20, "e", fields)
    sizes.append(3)
    assert drained(queue)[0].fields == {"sizes": [1, 2], "map": {"inner": [1, 2]}}


def test_a_container_that_holds_itself_is_cut() -> None:
    queue = LogQueue()
    loop: list[object] = []
    loop.append(loop)
    queue.put(20, "e", {"loop": loop})
    value: object = drained(queue)[0].fields["loop"]
    depth = 0
    while isinstance(value, list):
        value, depth = value[0], depth + 1
    assert (value, depth) == (CUT, MAX_DEPTH)


def test_a_huge_container_is_cut_between_values_and_never_inside_one() -> None:
    queue = LogQueue()
    queue.put(20, "e", {"items": ["x" * (CONTAINER_BYTES // 2)] * 1000})
    kept = drained(queue)[0].fields["items"]
    assert kept == ["x" * (CONTAINER_BYTES // 2), CUT]


def test_odd_keys_run_no_code_of_their_own() -> None:
    class Hostile:
        def __hash__(self) -> int:
            if armed:
                raise ZeroDivisionError
            return 1

    armed = False
    mapping = {Hostile(): 1, 2: "two", None: "none"}
    armed = True
    queue = LogQueue()
    queue.put(20, "e", {"mapping": mapping})
    assert drained(queue)[0].fields["mapping"] == {"<Hostile>": 1, 2: "two", None: "none"}


def test_events_from_many_threads_are_all_there_and_each_thread_s_in_order() -> None:
    queue = LogQueue()

    def talk(name: str) -> None:
        for number in range(200):
            queue.put(20, name, {"n": number})

    threads = [threading.Thread(target=talk, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    events = drained(queue)
    assert len(events) == 1600
    for number in range(8):
        assert [e.fields["n"] for e in events if e.name == f"t{number}"] == list(range(200))


@pytest.mark.parametrize(("level", "kept"), [("debug", "diwe"), ("info", "iwe"), ("warn", "we"), ("error", "e")])
def test_only_events_at_or_above_the_level_are_kept(level: str, kept: str) -> None:
    logger = Logger()
    logger.set_level(level)
    logger.debug("d")
    logger.info("i")
    logger.warning("w")
    logger.error("e")
    assert names(logger) == [*kept]
    for each in ("debug", "info", "warn", "warning", "error"):
        assert logger.is_enabled_for(each) == (each[0] in kept)


@pytest.mark.parametrize(
    ("said", "meant"), [("DEBUG", "debug"), ("Info", "info"), ("warning", "warn"), ("Warn", "warn"), ("ERROR", "error")]
)
def test_users_may_write_a_level_in_any_case(said: str, meant: str) -> None:
    logger = Logger()
    assert logger.set_level(said) == logger.level == parse_level(said) == meant


@pytest.mark.parametrize("said", ["", "trace", "30", "warn!"])
def test_an_unknown_level_changes_nothing(said: str) -> None:
    logger = Logger()
    with pytest.raises(ValueError, match="debug, info, warn, error"):
        logger.set_level(said)
    assert logger.level == "info"


def test_a_level_may_be_data_and_a_field_may_be_named_as_a_parameter() -> None:
    logger = Logger()
    logger.record("warning", "w", {"self": 1, "event": 2}, when=12.5)
    logger.record("debug", "d", {})
    logger.info("i", event="other", level="other")
    first, second = drained(logger.queue)
    assert (first.rank, first.when, first.fields) == (30, 12.5, {"self": 1, "event": 2})
    assert second.fields == {"event": "other", "level": "other"}


def test_listeners_get_every_change_of_the_level_until_they_are_removed() -> None:
    logger = Logger()
    seen: list[int] = []
    leave = logger.on_level(seen.append)
    logger.set_level("error")
    leave()
    logger.set_level("debug")
    assert seen == [20, 40]


def test_a_signal_handler_may_log_while_the_same_thread_logs() -> None:
    logger = Logger()

    def handler(number: int, frame: object) -> None:
        logger.info("from.signal", number=number)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for number in range(500):
            signal.raise_signal(signal.SIGUSR1)
            logger.info("from.code", n=number)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sorted(set(names(logger))) == ["from.code", "from.signal"]


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
