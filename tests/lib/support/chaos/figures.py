"""The notes of runs and faults, and how long takeovers took. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from .plan import QUIET_SECONDS, Fault

TAKEOVER_SECONDS: Final = 5.0
"""What is promised."""

BEGINNINGS: Final = ("execute", "resume")
"""Kinds of notes with which a run begins."""


class Happened(msgspec.Struct):
    """A fault as it came to be: from `began` to `ended`, in seconds since 1970. `pid` is that of a process that was killed."""

    fault: Fault
    began: float
    ended: float
    pid: int | None = None


class RunNote(msgspec.Struct, frozen=True):
    """A line of the file in which the agent notes its runs. `kind` is execute, resume, tick, effect, stored or end; `message` is `-` where
    the agent was told of none. `step` is the name of a step that had its effect, or is stored."""

    at: float
    kind: str
    pid: int
    run: str
    task_id: str
    message: str
    step: str = ""


def run_notes(lines: Iterable[str]) -> list[RunNote]:
    notes = []
    for line in lines:
        at, kind, pid, run, task_id, message, *step = line.split()
        notes.append(RunNote(float(at), kind, int(pid), run, task_id, message, *step))
    return notes


class Takeover(msgspec.Struct, frozen=True):
    """Of each task that a killed process was running: seconds until another one began with it. `alone`: nothing else was wrong."""

    kill: Happened
    alone: bool
    seconds: list[float]


def takeovers(happened: Sequence[Happened], notes: Sequence[RunNote]) -> list[Takeover]:
    """Of every kill of a process that ran something."""
    found: list[Takeover] = []
    for kill in happened:
        if not kill.fault.kind.startswith("kill"):
            continue
        running = {note.task_id for note in notes if note.pid == kill.pid and note.kind in BEGINNINGS}
        running -= {note.task_id for note in notes if note.pid == kill.pid and note.kind == "end"}
        later: dict[str, float] = {}
        for note in notes:
            if note.task_id in running and note.pid != kill.pid and note.at > kill.began and note.kind in BEGINNINGS:
                later.setdefault(note.task_id, note.at - kill.began)
        until = kill.began + TAKEOVER_SECONDS
        others = [each for each in happened if each is not kill]
        alone = not any(each.began < until and kill.began < each.ended + QUIET_SECONDS for each in others)
        if later:
            found.append(Takeover(kill, alone, sorted(later.values())))
    return found


def quantiles(values: Sequence[float]) -> str:
    """`median / largest`, in seconds."""
    return f"{median(values):.2f} / {max(values):.2f} s of {len(values):,}" if values else "none"
