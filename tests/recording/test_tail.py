"""The lines of a running session: nobody waits for whoever reads them, and what they did not read is counted."""

from __future__ import annotations

import os
import re
import sys
import threading

import pytest
from msgspec import Raw

from discreet.recording.format import EndEntry, MessageEntry, StderrEntry
from discreet.recording.view.tail import Tail
from support.stderr_pipe import fill
from support.waits import DEADLINE_SECONDS

MESSAGE = MessageEntry(ms=1.0, sender="client", message=Raw(b'{"method":"a","params":[1]}'))
LINE = "      1.0 ms  → a [1]\n"


def drained(reading: int) -> str:
    with open(reading, "rb") as file:
        return file.read().decode()


def test_the_lines_come_in_order_and_the_summary_last() -> None:
    reading, writing = os.pipe()
    tail = Tail(writing, colour=False)
    for entry in (MESSAGE, StderrEntry(ms=2.0, text="passes by itself"), EndEntry(ms=3.0, status=0)):
        tail.show(entry)
    tail.close()
    os.close(writing)
    assert drained(reading) == (
        f"{LINE}      3.0 ms  the server ended with status 0\n1 message, 0 errors, 0 requests without an answer\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="fills a POSIX pipe")
def test_a_reader_that_never_reads_holds_up_nothing() -> None:
    reading, writing = os.pipe()
    fill(writing)
    tail = Tail(writing, colour=False, max_queue=10_000)
    for _ in range(5_000):
        tail.show(MESSAGE)
    tail.close()
    os.close(reading)  # ends the thread, which waits in its write
    os.close(writing)


@pytest.mark.skipif(sys.platform == "win32", reason="fills a POSIX pipe")
def test_lines_that_were_not_read_in_time_are_counted_where_they_are_missing() -> None:
    reading, writing = os.pipe()
    fill(writing)
    tail = Tail(writing, colour=False, max_queue=40 * len(LINE.encode()))
    for _ in range(500):
        tail.show(MESSAGE)
    text: list[str] = []
    reader = threading.Thread(target=lambda: text.append(drained(reading)))
    reader.start()
    tail.close()
    os.close(writing)
    reader.join(DEADLINE_SECONDS)
    shown = text[0].lstrip("\n")
    left_out = re.findall(r"^… (\d+) lines? left out: .*$", shown, re.MULTILINE)
    assert left_out
    assert shown.count(LINE) + sum(map(int, left_out)) == 500
    assert shown.endswith("\n500 messages, 0 errors, 0 requests without an answer, the recording was cut off\n")


def test_a_reader_that_is_gone_ends_the_printing_only() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    tail = Tail(writing, colour=False)
    for _ in range(100):
        tail.show(MESSAGE)
    tail.close()
    os.close(writing)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX's flag")
def test_a_pipe_that_somebody_made_non_blocking_loses_nothing() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    tail = Tail(writing, colour=False, max_queue=1_000_000)
    text: list[str] = []
    for _ in range(5_000):  # more than a pipe holds
        tail.show(MESSAGE)
    reader = threading.Thread(target=lambda: text.append(drained(reading)))
    reader.start()
    tail.close()
    os.close(writing)
    reader.join(DEADLINE_SECONDS)
    assert text[0].count(LINE) == 5_000
