"""About how much memory tasks, messages and events take: their texts, bytes and free-form JSON. Stores and limits nothing."""

from __future__ import annotations

from sys import getsizeof
from typing import Final, assert_never

import msgspec
from msgspec import UNSET

from ..daemon.memory import CONTAINER_BYTES, VALUE_BYTES
from .types import (
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
    TaskStatus,
)

_OBJECT_BYTES: Final = 256
"""What a task, a message, an artifact, a part or an event takes beside its contents."""

_TEXT_PART_BYTES: Final = _OBJECT_BYTES + 2 * getsizeof(None)
"""The same of a part that is a text."""


def size_of_event(event: TaskEvent) -> int:
    """Bytes that an event takes. Raises `TypeError` for data that is not JSON."""
    match event:
        case ArtifactChanged():
            return _OBJECT_BYTES + size_of_artifact(event.artifact) + _json_size(event.metadata)
        case MessageAdded(message):
            return _OBJECT_BYTES + size_of_message(message) + _call_size(event.call)
        case ExecutionBegun():
            return _OBJECT_BYTES
        case StatusChanged(status):
            return _OBJECT_BYTES + _status_size(status) + _json_size(event.metadata)
        case TaskCreated(task):
            return _OBJECT_BYTES + size_of_task(task) + _call_size(event.call)
        case _:
            assert_never(event)


def size_of_task(task: Task) -> int:
    """Bytes that a task takes, with its history and its artifacts."""
    size = _OBJECT_BYTES + _status_size(task.status) + _json_size(task.metadata)
    for artifact in task.artifacts:  # loops: most of these are empty or of one item, where `sum` and `map` cost more
        size += size_of_artifact(artifact)
    for message in task.history:
        size += size_of_message(message)
    return size


def size_of_artifact(artifact: Artifact) -> int:
    size = _OBJECT_BYTES + _json_size(artifact.metadata)
    for part in artifact.parts:
        size += _part_size(part)
    return size


def size_of_message(message: Message) -> int:
    size = _OBJECT_BYTES + _json_size(message.metadata)
    for part in message.parts:
        size += _part_size(part)
    for text in (*message.extensions, *message.reference_task_ids):
        size += len(text)
    return size


def _call_size(call: CallFacts | None) -> int:
    return 0 if call is None else _OBJECT_BYTES + _json_size(call.metadata)


def _status_size(status: TaskStatus) -> int:
    return 0 if status.message is None else size_of_message(status.message)


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
