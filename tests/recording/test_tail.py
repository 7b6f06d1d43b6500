"""The lines of a running session: nobody waits for whoever reads them, and what they did not read is counted."""

from __future__ import annotations

import os
import re
import sys

import pytest
from msgspec import Raw

from discreet.recording.format import MessageEntry
from discreet.recording.lines import Tail
from support.stderr_pipe import fill

MESSAGE = MessageEntry(ms=1.0, sender="client", message=Raw(b'{"method":"a","params":[1]}'))
LINE = "      1.0 ms  → a [1]\n"


def drained(reading: int) -> str:
    with open(reading, "rb") as file:
        return file.read().decode()


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
