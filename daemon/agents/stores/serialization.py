"""Encodes tasks, events and push targets as bytes and decodes them. Knows no store.

The encoding is MessagePack, or JSON for numbers beyond 64 bits. The first byte tells which: an encoded struct is a map, and
no MessagePack map begins with the byte `{`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from ..model.draft import apply_events
from ..model.types import (
    JsonObject,
    Message,
    MessageAdded,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskStatus,
)
from .interface import LoggedEvent, PushTarget, TaskChange, Unserializable


class _TaskWithoutArtifacts(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    context_id: str
    status: TaskStatus
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class _SkippedArtifact(msgspec.Struct, frozen=True, tag="artifact"):
    """An `ArtifactChanged` whose content is not decoded."""


_EventWithoutArtifact: TypeAlias = TaskCreated | MessageAdded | StatusChanged | _SkippedArtifact

_BRACE: Final = ord("{")
_msgpack: Final = msgspec.msgpack.Encoder()
# Pairs of decoders: MessagePack, JSON.
_tasks: Final = (msgspec.msgpack.Decoder(Task), msgspec.json.Decoder(Task))
_tasks_without_artifacts: Final = (
    msgspec.msgpack.Decoder(_TaskWithoutArtifacts),
    msgspec.json.Decoder(_TaskWithoutArtifacts),
)
_events: Final[tuple[msgspec.msgpack.Decoder[TaskEvent], msgspec.json.Decoder[TaskEvent]]] = (
    msgspec.msgpack.Decoder(TaskEvent),
    msgspec.json.Decoder(TaskEvent),
)
_events_without_artifact: Final[
    tuple[msgspec.msgpack.Decoder[_EventWithoutArtifact], msgspec.json.Decoder[_EventWithoutArtifact]]
] = (
    msgspec.msgpack.Decoder(_EventWithoutArtifact),
    msgspec.json.Decoder(_EventWithoutArtifact),
)
_push_targets: Final = (msgspec.msgpack.Decoder(PushTarget), msgspec.json.Decoder(PushTarget))


class EncodedChange(msgspec.Struct, frozen=True):
    """What a store writes for a change: a snapshot or None, and events. A new task has a snapshot, which holds its first event;
    the others are here. The snapshot covers them where the change has one."""

    snapshot: bytes | None
    events: tuple[bytes, ...]


def encode_change(change: TaskChange) -> EncodedChange | Unserializable:
    """The change as bytes."""
    events, snapshot = change.events, change.snapshot
    if change.expected_generation == 0:
        created, *_ = events
        assert isinstance(created, TaskCreated), "`check_changes` refuses anything else"
        events, snapshot = events[1:], snapshot or created.task
    try:
        f"{change.task_id}{change.scope}{change.context_id}{change.status_timestamp}".encode()  # no lone surrogates
        return EncodedChange(None if snapshot is None else encode(snapshot), tuple(map(encode, events)))
    except (TypeError, ValueError, RecursionError):
        return Unserializable()


def encode(value: Task | TaskEvent | PushTarget) -> bytes:
    """Raises `TypeError`, `ValueError` or `RecursionError` for a value that is not JSON."""
    try:
        return _msgpack.encode(value)
    except OverflowError:  # JSON numbers have no limit, MessagePack's do
        return msgspec.json.encode(value)


def decode_task(encoded: bytes) -> Task:
    return _tasks[encoded[0] == _BRACE].decode(encoded)


def decode_event(encoded: bytes) -> TaskEvent:
    return _events[encoded[0] == _BRACE].decode(encoded)


def decode_push_target(encoded: bytes) -> PushTarget:
    return _push_targets[encoded[0] == _BRACE].decode(encoded)


def decode_events(encoded: Sequence[bytes], *, first_generation: int) -> tuple[LoggedEvent, ...]:
    """Consecutive events of a log, the first of which has this number."""
    return tuple(LoggedEvent(number, decode_event(event)) for number, event in enumerate(encoded, first_generation))


def decode_current_task(snapshot: bytes, later_events: Sequence[bytes], *, include_artifacts: bool) -> Task:
    """The task after the events that follow its snapshot. Without `include_artifacts`, no artifact is decoded."""
    if include_artifacts:
        return apply_events(decode_task(snapshot), map(decode_event, later_events))
    partial = _tasks_without_artifacts[snapshot[0] == _BRACE].decode(snapshot)
    task = Task(partial.id, partial.context_id, partial.status, (), partial.history, partial.metadata)
    events = [_events_without_artifact[encoded[0] == _BRACE].decode(encoded) for encoded in later_events]
    return apply_events(task, [event for event in events if not isinstance(event, _SkippedArtifact)])
