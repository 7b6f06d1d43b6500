"""A task as data: made of its first message, changed by events, measured; and the content that messages may have.

Checks no transition, and stores nothing. The cost of a draft is linear in what the events append.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Final, assert_never, final

import msgspec
from msgspec import UNSET

from ..daemon.memory import CONTAINER_BYTES, VALUE_BYTES
from ..errors.exceptions import FailureError
from ..errors.failures import ContentTypeNotSupported, InvalidParams
from .types import (
    INACTIVE,
    TERMINAL,
    Artifact,
    ArtifactChanged,
    CallFacts,
    ExecutionBegun,
    FirstMessage,
    Message,
    MessageAdded,
    MessageRefused,
    Part,
    StatusChanged,
    Step,
    StepStored,
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
    first may have begun. A message is no longer among them when the task has stopped since its execution began; it is `asking`
    where that has asked for an answer."""

    __slots__ = ("_artifacts", "_frozen", "_history", "asking", "context_id", "id", "metadata", "status", "waiting")

    def __init__(self, task: Task, unfinished: Iterable[WaitingMessage] = ()) -> None:
        self.waiting: list[WaitingMessage] = []
        self.asking: WaitingMessage | None = None
        for each in unfinished:
            if each.asks:
                self.asking = each
            else:
                self.waiting.append(each)
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
        match event:
            case ArtifactChanged():  # first: a stream of text is many of these
                self._frozen = None
                artifact = event.artifact
                known = self._artifacts.get(artifact.artifact_id) if event.append else None
                if known is None:
                    self._artifacts[artifact.artifact_id] = (artifact, [*artifact.parts])
                else:
                    known[1].extend(artifact.parts)
            case StatusChanged(status):
                self._frozen = None
                if self.status.message is not None:
                    self._history.append(self.status.message)
                self.status = status
                self._stop(event)
            case MessageAdded(message):
                self._frozen = None
                self._history.append(message)
                self._wait(event.call, begun=event.begun)
            case MessageRefused():
                pass
            case TaskCreated(task):
                if task is not self._frozen:
                    self._reset(task)
                self._wait(event.call, begun=event.begun)
            case ExecutionBegun(position):
                self.waiting[:] = [
                    self._begun(each) if each.position == position and not each.begun else each for each in self.waiting
                ]
            case StepStored(step):
                self._store(step)
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
            each = WaitingMessage(len(self._history) - 1, call, begun)
            self.waiting.append(self._begun(each) if begun and self.asking is not None else each)

    def _begun(self, each: WaitingMessage) -> WaitingMessage:
        """The execution of a message begins: it goes on with that which has asked, if one has."""
        asking, self.asking = self.asking, None
        if asking is None:
            return msgspec.structs.replace(each, begun=True)
        steps = (*asking.steps, Step(asking.asks, answer=each.position))
        first = asking.first or FirstMessage(asking.position, asking.call)
        return msgspec.structs.replace(each, begun=True, steps=steps, first=first)

    @property
    def unfinished(self) -> tuple[WaitingMessage, ...]:
        """What is stored with the task: the messages that wait, and the one whose execution has asked."""
        return tuple(self.waiting) if self.asking is None else (self.asking, *self.waiting)

    def _store(self, step: Step) -> None:
        if self.waiting and self.waiting[0].begun:  # else its execution has stopped the task, and can't be resumed
            first = self.waiting[0]
            others = tuple(each for each in first.steps if each.name != step.name)
            self.waiting[0] = msgspec.structs.replace(first, steps=(*others, step))

    def _stop(self, event: StatusChanged) -> None:
        """What has begun is over when the task stops, unless it was cut off or asks; what has not never begins when the task
        ends."""
        state = event.status.state
        if state not in INACTIVE:
            return
        self.asking = None
        if not self.waiting:
            return
        if event.asks and self.waiting[0].begun:
            self.asking = msgspec.structs.replace(self.waiting[0], begun=False, asks=event.asks)
        self.waiting[:] = [each for each in self.waiting if event.cut_off or not each.begun]
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


def new_task(message: Message, ids: tuple[str, str] | None = None) -> Task:
    """The task that begins with this message. `ids` are those of the task, and of its context where the message names none;
    random ones if they are not given."""
    task_id, new_context = ids or (new_id(), "")
    context_id = message.context_id or new_context or new_id()
    history = (addressed(message, task_id, context_id),)
    return Task(task_id, context_id, TaskStatus(TaskState.SUBMITTED, timestamp=now()), history=history)


def addressed(message: Message, task_id: str, context_id: str) -> Message:
    """The message with the ids of its task."""
    return msgspec.structs.replace(message, task_id=task_id, context_id=context_id)


_canonical: Final = msgspec.json.Encoder(order="deterministic").encode


def check_same_content(stored: Message, sent: Message) -> None:
    """Raise `FailureError(InvalidParams)` unless a message that has the id of a `stored` one is that one again.

    Both have the ids of their task. The order of JSON members does not count, nor what the end of a task says of messages that
    were not executed.
    """
    if _content(stored) != _content(sent):
        expected = "a new id, or the content of the message that has this one"
        raise FailureError(InvalidParams("message.messageId", expected, "other content"))


def _content(message: Message) -> bytes:
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != NOT_EXECUTED}
    return _canonical(msgspec.structs.replace(message, metadata=metadata))


# -- sizes -------------------------------------------------------------------------------------------------------------


_OBJECT_BYTES: Final = 256
"""Bytes that a task, a message, an artifact, a part or an event takes beside its contents."""

_TEXT_PART_BYTES: Final = _OBJECT_BYTES + 2 * getsizeof(None)
"""Bytes that a part with a text takes beside it."""


def size_of_event(event: TaskEvent) -> int:
    """Bytes that an event takes. Raises `TypeError` for data that is not JSON."""
    match event:
        case ArtifactChanged():
            size = _OBJECT_BYTES + size_of_artifact(event.artifact)
            return size if event.metadata is None else size + _json_size(event.metadata)
        case MessageRefused():
            return _OBJECT_BYTES + _json_size(event.error)
        case MessageAdded(message):
            return _OBJECT_BYTES + size_of_message(message) + _call_size(event.call)
        case ExecutionBegun():
            return _OBJECT_BYTES
        case StepStored(step):
            return size_of_step(step)
        case StatusChanged(status):
            size = _OBJECT_BYTES if status.message is None else _OBJECT_BYTES + size_of_message(status.message)
            return size if event.metadata is None else size + _json_size(event.metadata)
        case TaskCreated(task):
            return _OBJECT_BYTES + size_of_task(task) + _call_size(event.call)
        case _:
            assert_never(event)


def size_of_task(task: Task) -> int:
    """Bytes that a task takes, with its history and its artifacts."""
    size = _OBJECT_BYTES + _json_size(task.metadata) if task.metadata is not None else _OBJECT_BYTES
    if task.status.message is not None:
        size += size_of_message(task.status.message)
    for artifact in task.artifacts:  # loops: most of these are empty or of one item, where `sum` and `map` cost more
        size += size_of_artifact(artifact)
    for message in task.history:
        size += size_of_message(message)
    return size


def size_of_artifact(artifact: Artifact) -> int:
    size = _OBJECT_BYTES + _json_size(artifact.metadata) if artifact.metadata is not None else _OBJECT_BYTES
    for part in artifact.parts:
        size += _part_size(part)
    return size


def size_of_message(message: Message) -> int:
    size = _OBJECT_BYTES + _json_size(message.metadata) if message.metadata is not None else _OBJECT_BYTES
    for part in message.parts:
        size += _part_size(part)
    for text in (*message.extensions, *message.reference_task_ids):
        size += len(text)
    return size


def size_of_step(step: Step) -> int:
    return _OBJECT_BYTES + getsizeof(step.name) + len(step.result or b"")


def _call_size(call: CallFacts | None) -> int:
    return 0 if call is None else _OBJECT_BYTES + _json_size(call.metadata) + len(call.traceparent)


def _part_size(part: Part) -> int:
    if part.text is not None and part.metadata is None:  # most parts, and a text has nothing beside it
        return _TEXT_PART_BYTES + getsizeof(part.text)
    size = _OBJECT_BYTES + getsizeof(part.text) + getsizeof(part.raw) + getsizeof(part.url)
    if part.data is not UNSET:
        size += _json_size(part.data)
    return size if part.metadata is None else size + _json_size(part.metadata)


def _json_size(value: object) -> int:
    """Bytes that a decoded JSON value takes, by the punctuation of its text."""
    if value is None:
        return 0
    text = msgspec.json.encode(value)
    containers = text.count(b"[") + text.count(b"{")
    return len(text) + containers * CONTAINER_BYTES + text.count(b",") * VALUE_BYTES


# -- what messages may hold (A2A 1.0 section 3.1.1) --------------------------------------------------------------------


MAX_JSON_DEPTH: Final = 256
"""Levels of objects and arrays in one JSON value. What is read must be writable again, from a deeper call stack."""


def check_media_types(message: Message, accepted: Sequence[str]) -> None:
    """Raises `FailureError(ContentTypeNotSupported)` for a part whose type is not accepted (`text/plain`, `image/*`, `*/*`).

    A part without a media type counts as text by its kind. Data without one is JSON, and accepted where any type of JSON is.
    A file without one is accepted.
    """
    for part in message.parts:
        if part.text is not None and not part.media_type and "text/plain" in accepted:
            continue
        given = _media_type(part)
        if part.data is not UNSET and not part.media_type and any(map(_is_json, accepted)):
            continue
        if given is not None and not any(_matches(pattern, given) for pattern in accepted):
            raise FailureError(ContentTypeNotSupported(accepted=tuple(accepted)))


def is_within_max_depth(value: object) -> bool:
    """Whether a JSON value is nested no deeper than `MAX_JSON_DEPTH`."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list, tuple))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def check_json_depth(message: Message, metadata: object) -> None:
    """Raises `FailureError(InvalidParams)`, which names the path, for JSON that is nested too deeply."""
    values = [("metadata", metadata), ("message.metadata", message.metadata)]
    for index, part in enumerate(message.parts):
        if part.data is not UNSET or part.metadata is not None:
            values += [(f"message.parts[{index}].data", part.data), (f"message.parts[{index}].metadata", part.metadata)]
    for path, value in values:
        if isinstance(value, (dict, list)) and not is_within_max_depth(value):
            kind = "object" if isinstance(value, dict) else "array"
            raise FailureError(InvalidParams(path, f"JSON of at most {MAX_JSON_DEPTH} levels", kind))


def _media_type(part: Part) -> str | None:
    if part.media_type:
        return _without_parameters(part.media_type)
    if part.text is not None:
        return "text/plain"
    return None if part.data is UNSET else "application/json"


def _is_json(pattern: str) -> bool:
    pattern = _without_parameters(pattern)
    return pattern.endswith(("/json", "+json"))


def _matches(pattern: str, media_type: str) -> bool:
    pattern = _without_parameters(pattern)
    return pattern in (media_type, "*/*") or (pattern.endswith("/*") and media_type.startswith(pattern[:-1]))


def _without_parameters(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
