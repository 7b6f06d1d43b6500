"""The figures of a chaos run: how long events, takeovers and refusals took. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from .plan import QUIET_SECONDS, Fault
from .record import Record
from .stores import CommitTimes

TAKEOVER_SECONDS: Final = 5.0
"""What is promised."""
CAUGHT_UP_SECONDS: Final = 0.25
"""Events published sooner after the opening of a stream may have been in the log before it."""

BEGINNINGS: Final = ("execute", "resume")
"""Kinds of notes with which a run begins."""


class Happened(msgspec.Struct):
    """A fault as it came to be: from `began` to `ended`, in seconds since 1970. `pid` is that of a process that was killed."""

    fault: Fault
    began: float
    ended: float
    pid: int | None = None


class RunNote(msgspec.Struct, frozen=True):
    """A line of the file in which the agent notes its runs. `kind` is execute, resume, tick or end; `message` is `-` where the agent was
    told of none."""

    at: float
    kind: str
    pid: int
    run: str
    task_id: str
    message: str


def run_notes(lines: Iterable[str]) -> list[RunNote]:
    notes = []
    for line in lines:
        at, kind, pid, run, task_id, message = line.split()
        notes.append(RunNote(float(at), kind, int(pid), run, task_id, message))
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


def readiness(record: Record, happened: Sequence[Happened]) -> tuple[list[float], list[float]]:
    """Seconds from the going of the store until a gateway said that it is not ready, and from its return until it said that it is.

    Only of absences during which nothing else went wrong.
    """
    unready, ready = [], []
    for away in happened:
        others = [each for each in happened if each is not away]
        if away.fault.kind != "store away" or any(
            each.began < away.ended + TAKEOVER_SECONDS and away.began < each.ended for each in others
        ):
            continue
        for gateway in {gateway for _, gateway, _ in record.readiness}:
            said = [(at, yes) for at, asked, yes in record.readiness if asked == gateway]
            down = next((at for at, yes in said if away.began < at < away.ended and not yes), None)
            up = next((at for at, yes in said if at > away.ended and yes), None)
            unready += [] if down is None else [down - away.began]
            ready += [] if down is None or up is None else [up - away.ended]
    return unready, ready


class Arrival(msgspec.Struct, frozen=True, order=True):
    """That of an event at a subscriber, `seconds` after its commit."""

    seconds: float
    task_id: str
    number: int
    gateway: int
    committed: float


def arrivals(
    record: Record, happened: Sequence[Happened], commits: CommitTimes, pids: Sequence[Sequence[int]]
) -> list[Arrival]:
    """How long after its commit (after its publication, where the store does not say) each subscriber got an event live.

    Only of numbers that another process published than the subscriber's gateway, and where nothing was wrong from then until
    it came, or for the next seconds.
    """
    troubled = [(each.began - 0.1, each.ended + QUIET_SECONDS) for each in happened]
    found: list[Arrival] = []
    for subscriber in record.subscribers:
        for segment in subscriber.segments:
            for event in segment.seen:
                if event.key[0] != "artifact":
                    continue
                _, run, published = event.key[1].split()
                sent = float(published)
                if sent < segment.opened + CAUGHT_UP_SECONDS or int(run.partition("-")[0]) in pids[segment.gateway]:
                    continue
                until = min(event.at, sent + TAKEOVER_SECONDS)
                if any(began < until and sent < ended for began, ended in troubled):
                    continue
                at = commits.get((subscriber.task_id, event.number), sent)
                found.append(Arrival(event.at - at, subscriber.task_id, event.number, segment.gateway, at))
    return found


def quantiles(values: Sequence[float]) -> str:
    """`median / p99 / largest`, in milliseconds."""
    if not values:
        return "none"
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{median(ordered) * 1000:,.1f} / {p99 * 1000:,.1f} / {ordered[-1] * 1000:,.0f} ms of {len(ordered):,}"
