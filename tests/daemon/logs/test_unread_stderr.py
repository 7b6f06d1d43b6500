"""A stderr that is not read, full, closed or shared: nobody waits for it, and what was not written is counted."""

import os
import threading
from collections.abc import Callable

from discreet.daemon.logs import Logger, LogWriter
from discreet.daemon.logs.logger import MAX_EVENTS
from support.stderr_pipe import Reader
from support.waits import DEADLINE_SECONDS, wait_until


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
    assert [line["n"] for line in reader.lines()[1:]] == list(range(1000))


def test_the_callers_descriptor_stays_the_callers(logger: Logger, started: Callable[[int], LogWriter]) -> None:
    reader = Reader()
    logs = started(reader.stderr)
    logger.info("tick")
    logs.close(DEADLINE_SECONDS)
    os.write(reader.stderr, b'{"still": "open"}\n')
    assert reader.lines()[-1] == {"still": "open"}
