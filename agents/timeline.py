"""Tells what has happened to a task, for operators: what it is, and one entry for each of its events. Reads no store.

The texts are as they were stored, with whatever secrets they hold: who shows an entry scrubs and cuts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import UNSET

from ..a2a.task import apply_events
from ..a2a.types import (
    INACTIVE,
    ArtifactChanged,
    ExecutionBegun,
    Message,
    MessageAdded,
    MessageRefused,
    Part,
    StatusChanged,
    Step,
    StepStored,
    Task,
    TaskCreated,
    ceil_timestamp,
)
from ..errors.redaction import scrub
from .stores.checks import COVERED_EVENTS_KEPT
from .stores.interface import LoggedEvent, StoredTask

MAX_OPERATION: Final = 200
"""Characters of the name of an operation, which a caller may have made up."""


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """A task in a list. `since` is when it got its `state`, `caller` its scope. `owner` is the daemon that works on it, `queue`
    where it waits for one, null where none does. `operation` is empty for the message of an agent."""

    id: str
    context: str
    state: str
    since: str
    caller: str
    owner: str | None
    operation: str


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """An event. `time` is empty where the store has none. `what` is the state that it set, or one of `created`, `message`,
    `begun`, `resumed`, `refused`, `step`, `artifact`. `who` has sent its `text`: `user`, `agent`, or empty. `message` is its
    id."""

    number: int
    time: str
    what: str
    who: str = ""
    text: str = ""
    message: str = ""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A task with its events. `log` tells the log lines of the task. `missing` counts the events between the first one and those
    that are here: the log has them no more, or they are too many."""

    task: Summary
    log: str
    missing: int
    events: list[Entry]


def scrubbed(entry: Entry, characters: int) -> Entry:
    """Return the entry with its text cut, and scrubbed as logs are."""
    return msgspec.structs.replace(
        entry, text=scrub(entry.text, cap=characters), message=scrub(entry.message, cap=characters)
    )


def starts_of(stored: StoredTask) -> tuple[int, ...]:
    """Return the generations after which the log may begin, earliest first. The first event is in no log, and events that a
    snapshot covers are deleted but for the last ones."""
    covered = stored.snapshot_generation
    return (1, max(1, covered - COVERED_EVENTS_KEPT), covered)


def summary_of(task: Task, scope: str, owner: str | None) -> Summary:
    """Describe a task without any of its content. What its caller has chosen is scrubbed, and the operation is cut."""
    status, operation = task.status, scrub(operation_of(task), cap=MAX_OPERATION)
    return Summary(task.id, task.context_id, status.state.word, status.timestamp or "", scrub(scope), owner, operation)


def operation_of(task: Task) -> str:
    """Return the operation that the task's first message runs; empty where it runs none."""
    parts = task.history[0].parts if task.history else ()
    data = next((part.data for part in parts if part.data is not UNSET), None)
    name = data.get("skill") if isinstance(data, dict) else None
    return name if isinstance(name, str) else ""


def current_task(stored: StoredTask) -> Task:
    """Return the task as it is now."""
    return apply_events(stored.snapshot, [logged.event for logged in stored.later_events])


def count_copied(stored: StoredTask, events: Iterable[LoggedEvent]) -> int:
    """Count the messages with which a task began, but for the first: one that is tried again begins with what was said before.
    0 where the log, whose `events` these are, has lost its beginning."""
    task, last = current_task(stored), 1
    said = len(task.history) + (task.status.message is not None)
    for logged in events:
        if last == 1 and logged.generation != 2:
            break
        last, event = logged.generation, logged.event
        if last <= stored.generation:
            said -= isinstance(event, MessageAdded) or (
                isinstance(event, StatusChanged) and event.status.message is not None
            )
    return max(0, said - 1) if last >= stored.generation else 0


def entries_of(stored: StoredTask, events: Iterable[LoggedEvent], copied: int = 0) -> Iterator[Entry]:
    """Yield the entries of a task from its first event on. `events` are those behind it, as far as the log has them. The first
    one stands in no log, and is known by the history, as are the messages that were `copied` with it."""
    task = current_task(stored)
    if task.history:
        created = stored.snapshot.status.timestamp if stored.snapshot_generation == 1 else ""
        yield Entry(1, created or "", "created", *_said(task.history[0]))
    for message in task.history[1 : copied + 1]:
        yield Entry(1, "", "message", *_said(message))
    yield from entries_after(events)


def entries_after(events: Iterable[LoggedEvent]) -> Iterator[Entry]:
    """Yield the entries of events, which follow each other. An execution that begins once more is `resumed`: another daemon, or
    the same one after a restart, has taken the task over."""
    begun, working, is_last = (
        set[int](),
        False,
        False,
    )  # the last: whether the execution of the newest message has begun
    for logged in events:
        match logged.event:
            case TaskCreated(task):
                first = _said(task.history[0]) if task.history else ()
                yield Entry(logged.generation, task.status.timestamp or "", "created", *first)
            case MessageAdded(message, begun=is_last):
                yield Entry(logged.generation, "", "message", *_said(message))
            case MessageRefused(error=error):
                yield Entry(
                    logged.generation, "", "refused", "agent", "" if error is None else str(error.get("code", ""))
                )
            case ExecutionBegun(position):
                is_resumed = position in begun or is_last or (working and not position)
                yield Entry(logged.generation, "", "resumed" if is_resumed else "begun")
                begun.add(position)
            case StatusChanged(status):
                working = status.state not in INACTIVE
                is_last = is_last and working
                said = _said(status.message) if status.message is not None else ()
                yield Entry(logged.generation, status.timestamp or "", status.state.word, *said)
            case StepStored(step):
                working = True
                yield Entry(logged.generation, "", "step", "agent", _step_text(step))
            case ArtifactChanged(artifact):
                working = True
                name = artifact.name or artifact.artifact_id
                yield Entry(logged.generation, "", "artifact", "agent", f"{name}: {_text(artifact.parts)}")


def _step_text(step: Step) -> str:
    """The name of a step; with the time until which it waits, and how often it has failed."""
    until = "" if not step.due else f" until {ceil_timestamp(datetime.fromtimestamp(step.due, UTC))}"
    return f"{step.name}{until}" if not step.failures else f"{step.name}: {step.failures} failed, again{until}"


def _said(message: Message) -> tuple[str, str, str]:
    """The sender, the text and the id of a message."""
    return message.role.name.lower(), _text(message.parts), message.message_id


def _text(parts: Sequence[Part]) -> str:
    return " ".join(map(_part_text, parts))


def _part_text(part: Part) -> str:
    if part.text is not None:
        return part.text
    if part.data is not UNSET:
        return msgspec.json.encode(part.data).decode()
    if part.raw is not None:
        return f"<{len(part.raw)} bytes>"
    return part.url or ""
