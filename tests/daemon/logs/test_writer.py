"""The writer from `start_logging` to `close`: what it writes, when it begins and ends, and a stderr that is not read, full, closed or shared."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from discreet.daemon.logs import Logger, LogSettings, LogWriter, start_logging
from discreet.daemon.logs.logger import MAX_EVENTS
from support.stderr_pipe import JSON, Reader
from support.waits import DEADLINE_SECONDS, wait_until


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


def test_logs_start_once_and_again_after_close(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    first, second = Reader(), Reader()
    logs = started(first.stderr)
    with pytest.raises(RuntimeError):
        start_logging(JSON, second.stderr, {}, logger=logger)
    logs.close(DEADLINE_SECONDS)
    started(second.stderr).close(DEADLINE_SECONDS)
    assert [len(reader.lines()) for reader in (first, second)] == [1, 1]


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


def within_deadline(call: Callable[[], object]) -> None:
    """Fails instead of hanging when `call` blocks."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive(), "it blocked"


def test_a_reader_that_never_reads_blocks_no_caller_and_close_keeps_its_bound(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader(reads=False)
    logs = started(reader.stderr)
    total = 3 * MAX_EVENTS

    def talk() -> None:
        for number in range(total):
            logger.warning("noise", n=number, text="x" * 200)

    within_deadline(talk)
    dropped: list[int] = []
    within_deadline(lambda: dropped.append(logs.close(0.05)))
    assert dropped == [total + 1]  # with the start line
    assert logs.close(0.05) == total + 1
    reader.vanish()


def test_close_gives_up_a_reader_that_takes_nothing_long_before_its_own_bound(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader(reads=False)
    logs = started(reader.stderr)
    for _ in range(MAX_EVENTS):
        logger.warning("noise", text="x" * 200)
    dropped: list[int] = []
    within_deadline(lambda: dropped.append(logs.close(10 * DEADLINE_SECONDS, reader_timeout=0.05)))
    assert dropped[0] > 0
    reader.vanish()


class SlowToRender:
    """As the renderers are on a busy machine, where importing them takes longer than any reader is waited for."""

    def __repr__(self) -> str:
        threading.Event().wait(0.4)
        return "rendered"


def test_the_bound_for_the_reader_does_not_count_the_time_that_rendering_takes(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logger.error("last", value=SlowToRender())
    assert logs.close(reader_timeout=0.1) == 0
    assert [line["event"] for line in reader.lines()] == ["daemon.started", "last"]


def test_when_a_slow_reader_reads_again_every_line_is_there_or_counted_where_it_is_missing(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader(reads=False)
    logs = started(reader.stderr)
    for number in range(2 * MAX_EVENTS):
        logger.warning("noise", n=number)
    reader.read()
    wait_until(lambda: len(logger.queue) == 0)
    logger.error("afterwards")
    counted = logger.queue.dropped
    dropped = logs.close(DEADLINE_SECONDS)
    _, *lines = reader.lines()
    seen = [line["n"] for line in lines if line["event"] == "noise"]
    said = [line["count"] for line in lines if line["event"] == "logs.dropped"]
    assert seen == list(range(len(seen)))
    assert said == [dropped] == [counted] == [2 * MAX_EVENTS - len(seen)]
    assert [line["event"] for line in lines[-3:]] == ["noise", "logs.dropped", "afterwards"]


def test_a_reader_that_is_gone_makes_the_sink_silent(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader(reads=False)
    os.close(reader.fd)
    logs = started(reader.stderr)
    for _ in range(10):
        logger.error("nobody.reads")
    assert logs.close(DEADLINE_SECONDS) == 11
    os.close(reader.stderr)


def test_a_stderr_that_was_never_open_is_silent(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    assert reader.lines() == []
    logs = started(reader.stderr)  # closed by now
    logger.error("nobody.reads")
    assert logs.close(DEADLINE_SECONDS) == 2


def test_a_stderr_that_somebody_made_non_blocking_still_gets_every_line(
    logger: Logger, started: Callable[[int], LogWriter]
) -> None:
    reader = Reader(reads=False)
    os.set_blocking(reader.stderr, False)
    logs = started(reader.stderr)
    for number in range(1000):
        logger.info("tick", n=number, text="x" * 500)  # many times what a pipe holds
    reader.read()
    assert logs.close(DEADLINE_SECONDS) == 0
    assert [(line["event"], line["n"]) for line in reader.lines()[1:]] == [("tick", n) for n in range(1000)]


def test_the_callers_descriptor_stays_the_callers(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logger.info("tick")
    logs.close(DEADLINE_SECONDS)
    os.write(reader.stderr, b'{"still": "open"}\n')
    assert reader.lines()[-1] == {"still": "open"}
