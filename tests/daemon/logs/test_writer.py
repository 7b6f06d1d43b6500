"""The writer from `start_logging` to `close`: what it writes, and when it begins and ends."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from discreet.daemon.logs import Logger, LogSettings, LogWriter, start_logging
from discreet.daemon.logs.logger import MAX_EVENTS
from support.stderr_pipe import JSON, Reader
from support.waits import DEADLINE_SECONDS, wait_until


def test_events_are_written_in_order_with_their_fields(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    for number in range(300):
        logger.info("tick", n=number, method="files/read", id=number)
    assert logs.close(DEADLINE_SECONDS) == 0
    _, *ticks = reader.lines()
    assert [(line["event"], line["n"], line["method"], line["id"]) for line in ticks] == [
        ("tick", number, "files/read", number) for number in range(300)
    ]


def test_the_first_line_says_version_pid_level_and_sink(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logs.close(DEADLINE_SECONDS)
    line = reader.lines()[0]
    assert line.pop("timestamp")
    assert line == {
        "level": "info",
        "event": "daemon.started",
        "version": "1.2.3",
        "pid": os.getpid(),
        "log_level": "debug",
        "sink": "stderr",
    }
    assert logs.sink_name == "stderr"


def test_the_timestamp_is_when_the_event_happened_and_not_when_it_was_written(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader()
    logger.record("error", "long.ago", {}, when=1_000_000_000.25)
    started(reader.stderr).close(DEADLINE_SECONDS)
    assert reader.lines()[0]["timestamp"] == "2001-09-09T01:46:40.250Z"


def test_events_before_the_start_come_out_if_the_level_wants_them(logger: Logger) -> None:
    reader = Reader()
    logger.info("early.info")
    logger.warning("early.warning")
    start_logging(LogSettings(format="json"), reader.stderr, {}, logger=logger).close(
        DEADLINE_SECONDS
    )  # piped, so from warn on
    assert [line["event"] for line in reader.lines()] == ["early.warning"]


def test_events_before_the_start_are_bounded_and_the_surplus_is_said(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader()
    for _ in range(MAX_EVENTS + 5):
        logger.info("early")
    assert started(reader.stderr).close(DEADLINE_SECONDS) >= 5
    said = [line["count"] for line in reader.lines() if line["event"] == "logs.dropped"]
    assert said
    assert sum(said) >= 5  # type: ignore[arg-type]


def test_closing_ends_the_delay_of_the_first_line(logger: Logger, started: Callable[..., LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr, first_line_delay=10 * DEADLINE_SECONDS)
    assert logs.close(DEADLINE_SECONDS) == 0
    assert [line["event"] for line in reader.lines()] == ["daemon.started"]


def test_events_after_close_are_dropped_in_silence(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logs.close(DEADLINE_SECONDS)
    logger.error("too.late")
    assert [line["event"] for line in reader.lines()] == ["daemon.started"]


def test_closing_twice_says_the_same(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader(reads=False)
    logs = started(reader.stderr)
    logger.error("lost")
    assert logs.close(0.01) == logs.close(0.01) == 2
    reader.vanish()


class Broken:
    """A value whose every way to become text fails, each in another way."""

    def __init__(self, fault: type[BaseException]) -> None:
        self.fault = fault

    def __repr__(self) -> str:
        raise self.fault

    __str__ = __repr__


class BrokenDict(dict[str, object]):
    def items(self) -> object:  # type: ignore[override]
        raise SystemExit(3)

    def __iter__(self) -> Iterator[str]:
        raise SystemExit(3)

    def keys(self) -> object:  # type: ignore[override]
        raise SystemExit(3)


@pytest.mark.parametrize(
    "value",
    [
        Broken(ZeroDivisionError),
        Broken(RecursionError),
        Broken(SystemExit),
        Broken(KeyboardInterrupt),
        BrokenDict(a=1),
        10**5000,
        float("nan"),
        b"\xff\x00",
        {1: {2: {3: object()}}},
        memoryview(b"abc"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_can_t_be_rendered_costs_its_line_at_most_its_fields(
    logger: Logger, started: Callable[[int], LogWriter], value: object
) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logger.error("odd", value=value)
    logger.error("after")
    assert logs.close(DEADLINE_SECONDS) == 0
    assert [(line["event"], line["level"]) for line in reader.lines()] == [
        ("daemon.started", "info"),
        ("odd", "error"),
        ("after", "error"),
    ]


def test_what_the_writer_causes_itself_does_not_feed_it_for_ever(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    class TalkativeError(Exception):
        def __str__(self) -> str:
            logger.error("again", exc=TalkativeError())
            return "said"

    reader = Reader()
    logs = started(reader.stderr)
    logger.error("once", exc=TalkativeError())
    assert logs.close(DEADLINE_SECONDS) == 0
    _, line = reader.lines()
    assert line["event"] == "once"
    assert "said" in str(line["exc"])


def test_the_thread_begins_with_the_first_accepted_event_and_ends_with_close(logger: Logger) -> None:
    reader = Reader()
    before = threads()
    logs = start_logging(LogSettings(level="error", format="json"), reader.stderr, {}, logger=logger)
    logger.warning("below")
    assert threads() == before
    logger.error("above")
    assert len(threads() - before) == 1
    logs.close(DEADLINE_SECONDS)
    wait_until(lambda: not threads() - before)
    assert [line["event"] for line in reader.lines()] == ["above"]


def threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def test_the_level_can_change_while_it_runs(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logger.set_level("ERROR")
    logger.warning("below")
    logger.set_level("debug")
    logger.debug("above")
    logs.close(DEADLINE_SECONDS)
    assert [line["event"] for line in reader.lines()] == ["daemon.started", "above"]


def test_logs_start_once_and_again_after_close(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    first, second = Reader(), Reader()
    logs = started(first.stderr)
    with pytest.raises(RuntimeError):
        start_logging(JSON, second.stderr, {}, logger=logger)
    logs.close(DEADLINE_SECONDS)
    started(second.stderr).close(DEADLINE_SECONDS)
    assert [len(reader.lines()) for reader in (first, second)] == [1, 1]


def test_an_unknown_level_is_refused_at_the_start(logger: Logger) -> None:
    with pytest.raises(ValueError, match="debug, info, warn, error"):
        start_logging(LogSettings(level="loud"), 2, {}, logger=logger)


@pytest.mark.parametrize("settings", [JSON, LogSettings(level="error")], ids=["with lines", "without"])
def test_threads_may_close_at_the_same_time(logger: Logger, settings: LogSettings) -> None:
    reader = Reader()
    logs = start_logging(settings, reader.stderr, {}, logger=logger)
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(logs.close(2 * DEADLINE_SECONDS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert results == [0] * 4
    assert len(reader.lines()) == (settings is JSON)
