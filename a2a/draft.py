"""Makes a task of its first message, applies events to it and freezes the result. Checks no transition.

The cost is linear in what the events append.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never, final

import msgspec

from .types import (
    INACTIVE,
    TERMINAL,
    Artifact,
    ArtifactChanged,
    CallFacts,
    ExecutionBegun,
    Message,
    MessageAdded,
    Part,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
    WaitingMessage,
    new_id,
    now,
)

NOT_EXECUTED: Final = "notExecuted"
"""Member of the metadata of a message that was stored, and whose task ended before its turn; it says so in words."""

NOT_EXECUTED_TEXT: Final = "The task ended before this message was executed."
CUT_OFF_TEXT: Final = "The agent's process ended before this message was executed to its end."


@final
class TaskDraft:
    """A mutable copy of a task. `waiting` are the messages whose execution is not over, in the order of the history: only the
    first may have begun. A message is no longer among them when the task has stopped since its execution began."""

    __slots__ = ("_artifacts", "_frozen", "_history", "context_id", "id", "metadata", "status", "waiting")

    def __init__(self, task: Task, waiting: Iterable[WaitingMessage] = ()) -> None:
        self.waiting = [*waiting]
        self._reset(task)

    def _reset(self, task: Task) -> None:
        self.id = task.id
        self.context_id = task.context_id
        self.status = task.status
        self.metadata = task.metadata
        self._history: list[Message] = [*task.history]
        self._artifacts: dict[str, tuple[Artifact, list[Part]]] = {}
        for artifact in task.artifacts:
            self._artifacts[artifact.artifact_id] = (artifact, [*artifact.parts])
        self._frozen: Task | None = task

    def apply(self, event: TaskEvent) -> None:
        """Change the draft as the event says."""
        if isinstance(event, TaskCreated):
            if event.task is not self._frozen:
                self._reset(event.task)
            self._wait(event.call, begun=event.begun)
            return
        if isinstance(event, ExecutionBegun):
            self.waiting[:] = [
                msgspec.structs.replace(each, begun=True) if each.position == event.position else each
                for each in self.waiting
            ]
            return
        self._frozen = None
        match event:
            case ArtifactChanged():  # first: a stream of text is many of these
                artifact = event.artifact
                known = self._artifacts.get(artifact.artifact_id) if event.append else None
                if known is None:
                    self._artifacts[artifact.artifact_id] = (artifact, [*artifact.parts])
                else:
                    known[1].extend(artifact.parts)
            case StatusChanged(status):
                if self.status.message is not None:
                    self._history.append(self.status.message)
                self.status = status
                self._stop(status.state, cut_off=event.cut_off)
            case MessageAdded(message):
                self._history.append(message)
                self._wait(event.call, begun=event.begun)
            case _:
                assert_never(event)

    @property
    def messages(self) -> int:
        """How many messages the history has."""
        return len(self._history)

    def message(self, position: int) -> Message:
        return self._history[position]

    def _wait(self, call: CallFacts | None, *, begun: bool) -> None:
        if call is not None:
            self.waiting.append(WaitingMessage(len(self._history) - 1, call, begun))

    def _stop(self, state: TaskState, *, cut_off: bool) -> None:
        """What has begun is over when the task stops, unless it was cut off; what has not never begins when the task ends."""
        if not self.waiting or state not in INACTIVE:
            return
        self.waiting[:] = [each for each in self.waiting if cut_off or not each.begun]
        if state in TERMINAL:
            for each in self.waiting:
                message = self._history[each.position]
                text = CUT_OFF_TEXT if each.begun else NOT_EXECUTED_TEXT
                metadata = {**(message.metadata or {}), NOT_EXECUTED: text}
                self._history[each.position] = msgspec.structs.replace(message, metadata=metadata)
            self.waiting.clear()

    def freeze(self) -> Task:
        """The task as it is now. Later events do not change the returned task."""
        if self._frozen is None:
            self._frozen = Task(
                self.id,
                self.context_id,
                self.status,
                self._frozen_artifacts() if self._artifacts else (),
                tuple(self._history),
                self.metadata,
            )
        return self._frozen

    def _frozen_artifacts(self) -> tuple[Artifact, ...]:
        return tuple(
            artifact if len(parts) == len(artifact.parts) else msgspec.structs.replace(artifact, parts=tuple(parts))
            for artifact, parts in self._artifacts.values()
        )


def apply_events(task: Task, events: Iterable[TaskEvent]) -> Task:
    """The task after these events."""
    draft = TaskDraft(task)
    for event in events:
        draft.apply(event)
    return draft.freeze()


def new_task(message: Message) -> Task:
    """The task that begins with this message."""
    task_id, context_id = new_id(), message.context_id or new_id()
    history = (addressed(message, task_id, context_id),)
    return Task(task_id, context_id, TaskStatus(TaskState.SUBMITTED, timestamp=now()), history=history)


def addressed(message: Message, task_id: str, context_id: str) -> Message:
    """The message with the ids of its task."""
    return msgspec.structs.replace(message, task_id=task_id, context_id=context_id)
