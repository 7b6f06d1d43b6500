"""Encodes tasks, events and push targets as bytes and decodes them. Knows no store.

The encoding is MessagePack, or JSON for numbers beyond 64 bits. The first byte tells which: an encoded struct is a map, and
no MessagePack map begins with the byte `{`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

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

T = TypeVar("T")

Decoders: TypeAlias = tuple[msgspec.msgpack.Decoder[T], msgspec.json.Decoder[T]]

_BRACE: Final = b"{"
_msgpack: Final = msgspec.msgpack.Encoder()
_tasks: Final = (msgspec.msgpack.Decoder(Task), msgspec.json.Decoder(Task))
_tasks_without_artifacts: Final = (
    msgspec.msgpack.Decoder(_TaskWithoutArtifacts),
    msgspec.json.Decoder(_TaskWithoutArtifacts),
)
_events: Final[Decoders[TaskEvent]] = (
    msgspec.msgpack.Decoder(TaskEvent),
    msgspec.json.Decoder(TaskEvent),
)
_events_without_artifact: Final[Decoders[_EventWithoutArtifact]] = (
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


def decode_either(decoders: Decoders[T], encoded: bytes) -> T:
    """What `encode` made, whichever encoding it took. Raises `msgspec.DecodeError` for anything else."""
    from_msgpack, from_json = decoders
    try:
        return from_json.decode(encoded) if encoded[:1] == _BRACE else from_msgpack.decode(encoded)
    except (UnicodeDecodeError, RecursionError) as exc:  # texts that are none, and bytes that nest deeper than JSON may
        raise msgspec.DecodeError(type(exc).__name__) from None


def decode_task(encoded: bytes) -> Task:
    return decode_either(_tasks, encoded)


def decode_event(encoded: bytes) -> TaskEvent:
    return decode_either(_events, encoded)


def decode_push_target(encoded: bytes) -> PushTarget:
    return decode_either(_push_targets, encoded)


def decode_events(encoded: Sequence[bytes], *, first_generation: int) -> tuple[LoggedEvent, ...]:
    """Consecutive events of a log, the first of which has this number."""
    return tuple(LoggedEvent(number, decode_event(event)) for number, event in enumerate(encoded, first_generation))


def decode_current_task(snapshot: bytes, later_events: Sequence[bytes], *, include_artifacts: bool) -> Task:
    """The task after the events that follow its snapshot. Without `include_artifacts`, no artifact is decoded."""
    if include_artifacts:
        return apply_events(decode_task(snapshot), map(decode_event, later_events))
    partial = decode_either(_tasks_without_artifacts, snapshot)
    task = Task(partial.id, partial.context_id, partial.status, (), partial.history, partial.metadata)
    events = [decode_either(_events_without_artifact, encoded) for encoded in later_events]
    return apply_events(task, [event for event in events if not isinstance(event, _SkippedArtifact)])
