"""Checks and measures content: media types that the agent accepts (A2A 1.0 section 3.1.1), the depth of JSON, and about how much
memory tasks, messages and events take. Stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof
from typing import Final, assert_never

import msgspec
from msgspec import UNSET

from ..daemon.memory import CONTAINER_BYTES, VALUE_BYTES
from ..errors.exceptions import FailureError
from ..errors.failures import ContentTypeNotSupported, InvalidParams
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
)

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
    size = _OBJECT_BYTES + _json_size(artifact.metadata)
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


def _call_size(call: CallFacts | None) -> int:
    return 0 if call is None else _OBJECT_BYTES + _json_size(call.metadata)


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
