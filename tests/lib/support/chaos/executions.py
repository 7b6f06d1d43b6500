"""Compares what the agent did, by its own notes outside of the store, with the histories that the store has.

Every message of a history is executed once, in the order of the history, and two runs of one task never overlap. An execution that
a crash cut off goes on with `resume`, or with `execute` and its stored steps, as often as it takes. No step that is stored runs again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

import msgspec

from discreet.a2a.task import NOT_EXECUTED_TEXT

from .figures import BEGINNINGS, Happened, RunNote
from .record import ENDED, Record, Talk

NOTICE_SECONDS: Final = 0.5
"""A process that was stopped has so long, from when it goes on, to see that its task is another's."""
CLOCK_SECONDS: Final = 0.02
"""Two processes' notes may be so far apart from when what they tell of happened."""


class History(NamedTuple):
    """The state of a task, the ids of its caller's messages, and of those of them that are marked as not executed, with what is said."""

    state: str
    messages: list[str]
    marked: dict[str, str]


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
            found[note.run].ended |= note.kind == "end"
    for runs in tasks.values():
        runs.sort(key=lambda run: run.began)
    return tasks


def check_executions(
    record: Record,
    notes: Sequence[RunNote],
    histories: Mapping[str, History],
    happened: Sequence[Happened],
    *,
    stepping: bool = False,
) -> None:
    """Notes in the record what is wrong. An agent that is `stepping` goes on with `execute`."""
    frozen = [
        (each.began, each.ended + NOTICE_SECONDS, each.pid)
        for each in happened
        if each.fault.kind.split()[0] in ("stop", "strand")
    ]
    runs = runs_by_task(notes)
    for task_id, (state, messages, marked) in histories.items():
        answers = stepping and task_id not in record.talks  # messages that answer a step are not executed themselves
        for text in faults_of_marks(runs.get(task_id, []), messages, marked, state, answers=answers):
            record.fail(f"{task_id}: {text}")
        for text in overlaps(runs.get(task_id, []), frozen):
            record.fail(f"{task_id}: {text}")
        if task_id in record.talks:
            for text in faults_of_turns(runs.get(task_id, []), messages, state, stepping=stepping):
                record.fail(f"{task_id}: {text}")
    executed = Counter(note.message for note in notes if note.kind == "execute" and note.message != "-")
    for name, count in executed.items() if not stepping else ():
        record.fail(f"message {name} was executed {count} times") if count > 1 else None
    for text in faults_of_steps(notes, frozen):
        record.fail(text)
    for task_id, talk in record.talks.items():
        messages = histories[task_id].messages if task_id in histories else []
        for text in faults_of_order(talk, messages):
            record.fail(f"{task_id}: {text}")
        for name in talk.acknowledged.keys() - set(messages):
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


def faults_of_steps(notes: Sequence[RunNote], frozen: Sequence[tuple[float, float, int | None]]) -> Iterable[str]:
    """No step has an effect after it was stored, but in a process that was stopped just before. Notes are in their order."""
    stored: dict[tuple[str, str, str], RunNote] = {}
    for note in notes:
        step = (note.task_id, note.message, note.step)
        if note.kind == "stored":
            stored[step] = note
            continue
        excused = any(pid == note.pid and began <= note.at <= until for began, until, pid in frozen)
        if note.kind == "effect" and step in stored and not excused:
            yield f"{note.task_id}: {note.step} of {note.message} ran in {note.run}; {stored[step].run} had it stored"


def faults_of_marks(
    runs: Sequence[Run], messages: Sequence[str], marked: Mapping[str, str], state: str, *, answers: bool = False
) -> Iterable[str]:
    """A message of a task that has ended was executed, or the task says that it was not. With `answers` some are neither."""
    executed = {run.message for run in runs}
    for name in messages if state in ENDED else ():
        if name in executed and marked.get(name) == NOT_EXECUTED_TEXT:
            yield f"message {name} is marked as not executed, and was"
        elif name not in executed and name not in marked and not answers:
            yield f"message {name} was not executed, and is not marked so"


def faults_of_order(talk: Talk, messages: Sequence[str]) -> Iterable[str]:
    """A message that was sent when another one was acknowledged comes behind it in the history."""
    for index, name in enumerate(messages):
        for later in messages[index + 1 :]:
            if talk.acknowledged.get(later, inf) < talk.sent.get(name, 0.0):
                yield f"{name} was sent after {later} was acknowledged, and comes before it: {list(messages)}"


def faults_of_turns(
    runs: Sequence[Run], messages: Sequence[str], state: str, *, stepping: bool = False
) -> Iterable[str]:
    """The turns are those of the messages of the history, in its order. Behind the end of a task there may be messages that were not
    executed."""
    turns: list[str] = []
    for index, run in enumerate(runs):
        before = runs[index - 1] if index else None
        if (stepping or run.kind == "resume") and before is not None and run.message == before.message:
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
