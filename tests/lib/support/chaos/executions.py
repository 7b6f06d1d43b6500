"""Compares what the agent did, by its own notes outside of the store, with the histories that the store has.

Every message of a history is executed once, in the order of the history, and two runs of one task never overlap. An execution that
a crash cut off goes on with `resume`, as often as it takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from .figures import BEGINNINGS, Happened, RunNote
from .record import ENDED, Record

NOTICE_SECONDS: Final = 0.5
"""A process that was stopped has so long, from when it goes on, to see that its task is another's."""
CLOCK_SECONDS: Final = 0.02
"""Two processes' notes may be so far apart from when what they tell of happened."""


class Run(msgspec.Struct):
    """One call of the executor: when it began, and the last that is known of it."""

    kind: str
    pid: int
    message: str
    began: float
    last: float
    ended: bool = False


def runs_by_task(notes: Sequence[RunNote]) -> dict[str, list[Run]]:
    """In the order in which they began."""
    found: dict[str, Run] = {}
    tasks: dict[str, list[Run]] = defaultdict(list)
    for note in notes:
        if note.kind in BEGINNINGS:
            run = found[note.run] = Run(note.kind, note.pid, note.message, note.at, note.at)
            tasks[note.task_id].append(run)
        else:
            found[note.run].last = note.at
            found[note.run].ended = note.kind == "end"
    for runs in tasks.values():
        runs.sort(key=lambda run: run.began)
    return tasks


def check_executions(
    record: Record, notes: Sequence[RunNote], histories: dict[str, tuple[str, list[str]]], happened: Sequence[Happened]
) -> None:
    """Notes in the record what is wrong. `histories` has the state and the ids of the caller's messages of each task."""
    frozen = [
        (each.began, each.ended + NOTICE_SECONDS, each.pid)
        for each in happened
        if each.fault.kind.split()[0] in ("stop", "strand")
    ]
    runs = runs_by_task(notes)
    for task_id, (state, messages) in histories.items():
        for text in overlaps(runs.get(task_id, []), frozen):
            record.fail(f"{task_id}: {text}")
        if task_id in record.talks:
            for text in faults_of_turns(runs.get(task_id, []), messages, state):
                record.fail(f"{task_id}: {text}")
    executed = Counter(note.message for note in notes if note.kind == "execute" and note.message != "-")
    for name, count in executed.items():
        if count > 1:
            record.fail(f"message {name} was executed {count} times")
    for task_id, talk in record.talks.items():
        state, messages = histories.get(task_id, ("", []))
        for name in talk.acknowledged - set(messages):
            record.fail(f"{task_id}: message {name} was acknowledged, and is not in its history")
        for name in talk.refused.keys() & set(messages):
            record.fail(f"{task_id}: message {name} was refused with {talk.refused[name]}, and is in its history")


def overlaps(runs: Sequence[Run], frozen: Sequence[tuple[float, float, int | None]]) -> Iterable[str]:
    """Of a run, what it did after the next one had begun."""
    for run, following in pairwise(runs):
        excused = any(pid == run.pid and began <= run.last <= until for began, until, pid in frozen)
        if run.last > following.began + CLOCK_SECONDS and not excused:
            yield (
                f"{run.kind} of {run.message} in process {run.pid} overlaps {following.kind} of {following.message} in"
                f" process {following.pid} by {run.last - following.began:.3f} s"
            )


def faults_of_turns(runs: Sequence[Run], messages: Sequence[str], state: str) -> Iterable[str]:
    """The turns are those of the messages of the history, in its order. Behind the end of a task there may be messages that were not
    executed."""
    turns: list[str] = []
    for index, run in enumerate(runs):
        before = runs[index - 1] if index else None
        if run.kind == "resume" and before is not None and run.message == before.message:
            continue  # the same turn goes on
        turns.append(run.message)
    if len(turns) != len(set(turns)):
        yield f"messages were executed again: {_told(runs)}, history {list(messages)}"
    elif turns != list(messages)[: len(turns)]:
        yield f"executed out of order: {_told(runs)}, history {list(messages)}"
    elif len(turns) < len(messages) and state not in ENDED:
        yield f"messages {list(messages)[len(turns) :]} were never executed, and it is {state}"
    elif missing := [name for name in messages[len(turns) :] if "/last" not in name]:
        yield f"messages {missing} were never executed: {_told(runs)}"


def _told(runs: Sequence[Run]) -> str:
    return ", ".join(
        f"{run.kind} {run.message.rpartition('/')[2]} ({run.pid}{'' if run.ended else ', cut off'})" for run in runs
    )
