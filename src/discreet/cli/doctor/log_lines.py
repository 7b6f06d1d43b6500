"""Reads what a daemon has written to stderr: its log, and the line that a failed start writes for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from ...errors.type_building import decoder_for

MAX_QUOTE_CHARS: Final = 200
"""Characters of what a daemon has written that are quoted."""
MAX_TOLD_CHARS: Final = 2000
"""Characters of the line for people, which ends with the place and the remedy. It may tell of several apps."""


class LogLine(Struct, frozen=True):
    """The members of an event that are read here."""

    event: str
    level: str = ""
    dialect: str = "plain"
    exc: str = ""
    text: str = ""
    hint: str = ""


def error_line(log: bytes) -> str:
    """Return the line that a failed start writes for people; else the first error of the log; else the last line that is
    no event of the log."""
    lines = [line for line in log.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    told = (line for line in lines if line.startswith("discreet: "))
    errors = (_in_brief(line) for line in log_lines(log) if line.level == "error")
    others = (line for line in reversed(lines) if not line.startswith("{"))
    return next(chain(told, (line[:MAX_QUOTE_CHARS] for line in chain(errors, others))), "")[:MAX_TOLD_CHARS]


def _in_brief(line: LogLine) -> str:
    *_, cause = line.exc.splitlines() or [""]
    return f"{line.event}: {cause}" if cause else line.event


def log_lines(log: bytes) -> Iterator[LogLine]:
    """The events of a log in the form `json`."""
    for line in log.splitlines():
        try:
            yield decoder_for(LogLine)(line)
        except msgspec.DecodeError:
            continue  # not a log line, but the one for people that a failed start writes
