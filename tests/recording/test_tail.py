"""The lines of a running session: nobody waits for whoever reads them, and what they did not read is counted."""

from __future__ import annotations

import os
import re
import sys

import pytest
from msgspec import Raw

from discreet.recording.format import EndEntry, MessageEntry, StderrEntry
from discreet.recording.lines import Tail
from support.stderr_pipe import fill

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
    tail = Tail(writing, colour=False)
    for _ in range(5_000):
        tail.show(MESSAGE)
    tail.close()
    os.close(reading)  # ends the thread, which waits in its write
    os.close(writing)


@pytest.mark.skipif(sys.platform == "win32", reason="fills a POSIX pipe")
def test_lines_that_were_not_read_in_time_are_counted_where_they_are_missing() -> None:
    reading, writing = os.pipe()
    fill(writing)
    tail = Tail(writing, colour=False)
    for _ in range(500):
        tail.show(MESSAGE)
    os.read(reading, 65_536)
    tail.show(MESSAGE)
    tail.close()
    os.close(writing)
    left_out, line, summary = drained(reading).rstrip("\n").lstrip().rsplit("\n", 3)[-3:]
    assert re.fullmatch(r"… 500 lines left out: .*", left_out)
    assert line == LINE.rstrip("\n")
    assert summary == "501 messages, 0 errors, 0 requests without an answer, the recording was cut off"


def test_a_reader_that_is_gone_ends_the_printing_only() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    tail = Tail(writing, colour=False)
    for _ in range(100):
        tail.show(MESSAGE)
    tail.close()
    os.close(writing)
