"""Changes of tasks as stores take them: a task, its first commit, and the events after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.a2a.task import apply_events
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskQuery,
    TaskState,
    TaskStatus,
)
from discreet.agents.stores.interface import OwnerRequest, StoredTask, TaskChange, TaskStore


def at(minute: int) -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00.000Z"


def a_task(
    task_id: str, state: TaskState = TaskState.SUBMITTED, *, context_id: str = "context", minute: int = 0
) -> Task:
    message = Message("m1", Role.USER, (Part(text="hello"),), context_id, task_id)
    return Task(task_id, context_id, TaskStatus(state, timestamp=at(minute)), history=(message,))


def to_create(
    task: Task,
    *later: TaskEvent,
    scope: str = "me",
    owner: str | None = None,
    snapshot: bool = False,
    requests: tuple[OwnerRequest, ...] = (),
) -> TaskChange:
    events = (TaskCreated(task), *later)
    after = apply_events(task, later)
    return change_to(after, 0, events, scope=scope, owner=owner, snapshot=snapshot, requests=requests)


def change_to(
    after: Task,
    expected: int,
    events: Sequence[TaskEvent] = (),
    *,
    scope: str = "me",
    owner: str | None = None,
    snapshot: bool = False,
    previous_owner: str | None = None,
    requests: tuple[OwnerRequest, ...] = (),
) -> TaskChange:
    return TaskChange(
        task_id=after.id,
        expected_generation=expected,
        events=tuple(events),
        scope=scope,
        context_id=after.context_id,
        state=after.status.state,
        status_timestamp=after.status.timestamp or "",
        owner=owner,
        snapshot=after if snapshot else None,
        previous_owner=previous_owner,
        requests=requests,
    )


def change(
    task: Task,
    *events: TaskEvent,
    expected: int = 0,
    snapshot: bool = False,
    owner: str | None = None,
    previous_owner: str | None = None,
    requests: tuple[OwnerRequest, ...] = (),
) -> TaskChange:
    """Of a new task, unless `expected` is given. The task is as before the events."""
    logged = events if expected else (TaskCreated(task), *events)
    after = apply_events(task, events)
    return change_to(
        after, expected, logged, owner=owner, snapshot=snapshot, previous_owner=previous_owner, requests=requests
    )


def said(text: str) -> MessageAdded:
    return MessageAdded(Message(text, Role.USER, (Part(text=text),)))


def status_changed(state: TaskState, minute: int = 0) -> StatusChanged:
    return StatusChanged(TaskStatus(state, timestamp=at(minute)))


def chunk(text: str, *, append: bool = True) -> ArtifactChanged:
    return ArtifactChanged(Artifact("a", (Part(text=text),)), append)


def current(stored: StoredTask | None) -> Task:
    assert stored is not None
    return apply_events(stored.snapshot, [logged.event for logged in stored.later_events])


async def ids(store: TaskStore, **query: Any) -> list[str]:  # Any: fields of TaskQuery
    return [task.id for task in (await store.list(TaskQuery(scope="me", **query))).tasks]


async def commit_all(store: TaskStore, *changes: TaskChange) -> None:
    assert await store.commit(changes) == [None] * len(changes)
