"""Checks changes, encodes tasks, events and push targets as bytes, and decodes them. Knows no store.

The encoding is MessagePack, or JSON for numbers beyond 64 bits. The first byte tells which: an encoded struct is a map, and
no MessagePack map begins with the byte `{`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from ...a2a.task import TaskDraft, apply_events
from ...a2a.types import (
    ExecutionBegun,
    JsonObject,
    Message,
    MessageAdded,
    MessageRefused,
    StatusChanged,
    StepStored,
    Task,
    TaskCreated,
    TaskEvent,
    TaskStatus,
    WaitingMessage,
)
from .failures import DamagedRecordError
from .interface import CommitConflict, LoggedEvent, PushTarget, StoredTask, TaskChange, Unserializable


class _TaskWithoutArtifacts(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    context_id: str
    status: TaskStatus
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class _Snapshot(Task, frozen=True):
    """A task as it is stored: also with the messages whose execution is not over, of which its callers learn nothing."""

    waiting: tuple[WaitingMessage, ...] = ()


class _SkippedArtifact(msgspec.Struct, frozen=True, tag="artifact"):
    """An `ArtifactChanged` whose content is not decoded."""


_EventWithoutArtifact: TypeAlias = (
    TaskCreated | MessageAdded | MessageRefused | ExecutionBegun | StepStored | StatusChanged | _SkippedArtifact
)

T = TypeVar("T")

Decoders: TypeAlias = tuple[msgspec.msgpack.Decoder[T], msgspec.json.Decoder[T]]

_BRACE: Final = b"{"
_msgpack: Final = msgspec.msgpack.Encoder()
_tasks: Final = (msgspec.msgpack.Decoder(Task), msgspec.json.Decoder(Task))
_snapshots: Final = (msgspec.msgpack.Decoder(_Snapshot), msgspec.json.Decoder(_Snapshot))
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


# -- changes -----------------------------------------------------------------------------------------------------------


def check_changes(changes: Sequence[TaskChange]) -> None:
    """Raises `ValueError` for two changes of one task, for a new task that does not begin with `TaskCreated`, and for requests to
    no owner or to the owner of another task."""
    if len(changes) > 1 and len({change.task_id for change in changes}) < len(changes):
        raise ValueError("a commit holds at most one change per task")
    for change in changes:
        if change.expected_generation == 0 and not (change.events and isinstance(change.events[0], TaskCreated)):
            raise ValueError("the first event of a task is TaskCreated")
        for request in change.requests:
            if change.owner is None or request.task_id != change.task_id:
                raise ValueError("a change leaves requests for the owner of its own task")


def find_conflict(change: TaskChange, generation: int, owner: str | None, *, owner_id: str) -> CommitConflict | None:
    """Why the daemon `owner_id` may not make the change of a task as it is now, or None if it may. One that is not there has the
    generation 0 and no owner."""
    may_change = owner in (None, owner_id) if change.previous_owner is None else owner == change.previous_owner
    if change.expected_generation == generation and may_change:
        return None
    return CommitConflict(generation, owner)


class EncodedChange(msgspec.Struct, frozen=True):
    """A change as a store writes it: a snapshot or None, and events. The snapshot of a new task holds its first event, and
    `events` the others. If the change has a snapshot, it covers the events."""

    snapshot: bytes | None
    events: tuple[bytes, ...]


def encode_change(change: TaskChange) -> EncodedChange | Unserializable:
    """The change as bytes."""
    events, snapshot = change.events, change.snapshot
    if change.expected_generation == 0:
        created, *_ = events
        assert isinstance(created, TaskCreated), "`check_changes` refuses anything else"
        if snapshot is None:
            draft = TaskDraft(created.task)
            draft.apply(created)
            change = msgspec.structs.replace(change, waiting=draft.unfinished)
        events, snapshot = events[1:], snapshot or created.task
    try:
        f"{change.task_id}{change.scope}{change.context_id}{change.status_timestamp}".encode()  # no lone surrogates
        encoded = None if snapshot is None else _encode_snapshot(snapshot, change.waiting)
        return EncodedChange(encoded, tuple(map(encode, events)))
    except (TypeError, ValueError, RecursionError):
        return Unserializable()


def encode(value: Task | TaskEvent | PushTarget) -> bytes:
    """Raises `TypeError`, `ValueError` or `RecursionError` for a value that is not JSON."""
    try:
        return _msgpack.encode(value)
    except OverflowError:  # JSON numbers have no limit, MessagePack's do
        return msgspec.json.encode(value)


def decode_either(decoders: Decoders[T], encoded: bytes) -> T:
    """Decode bytes that `encode` made, in either encoding. Raises `msgspec.DecodeError` for any others."""
    from_msgpack, from_json = decoders
    try:
        return from_json.decode(encoded) if encoded[:1] == _BRACE else from_msgpack.decode(encoded)
    except (UnicodeDecodeError, RecursionError) as exc:  # texts that are none, and bytes that nest deeper than JSON may
        raise msgspec.DecodeError(type(exc).__name__) from None


def _encode_snapshot(task: Task, waiting: Sequence[WaitingMessage]) -> bytes:
    """Raises as `encode`."""
    if not waiting:
        return encode(task)
    values = task.id, task.context_id, task.status, task.artifacts, task.history, task.metadata
    return encode(_Snapshot(*values, tuple(waiting)))


# Each of these decodes a part of the task with the id `task_id`. They raise `DamagedRecordError`.


def decode_task(encoded: bytes, task_id: str) -> Task:
    """The task of a snapshot."""
    return _of_task(_decode(_tasks, encoded, "the snapshot", task_id), task_id)


def decode_stored(
    task_id: str,
    snapshot: bytes,
    snapshot_generation: int,
    later_events: Sequence[bytes],
    scope: str,
    owner: str | None,
) -> StoredTask:
    """A task as a store holds it."""
    task, waiting = _decode_snapshot(snapshot, task_id)
    events: tuple[LoggedEvent, ...] = ()
    if later_events:
        events = decode_events(later_events, task_id, first_generation=snapshot_generation + 1)
    return StoredTask(task, snapshot_generation, events, scope, owner, waiting)


def compact(snapshot: bytes, later_events: Sequence[bytes], task_id: str) -> bytes:
    """The snapshot after these events."""
    draft = TaskDraft(*_decode_snapshot(snapshot, task_id))
    for event in later_events:
        draft.apply(_decode(_events, event, "an event", task_id))
    return _encode_snapshot(draft.freeze(), draft.unfinished)


def _decode_snapshot(encoded: bytes, task_id: str) -> tuple[Task, tuple[WaitingMessage, ...]]:
    found = _decode(_snapshots, encoded, "the snapshot", task_id)
    task = Task(found.id, found.context_id, found.status, found.artifacts, found.history, found.metadata)
    return _of_task(task, task_id), found.waiting


def decode_push_target(encoded: bytes, task_id: str) -> PushTarget:
    return _decode(_push_targets, encoded, "a push target", task_id)


def decode_events(encoded: Sequence[bytes], task_id: str, *, first_generation: int) -> tuple[LoggedEvent, ...]:
    """Consecutive events of a log, the first of which has this number."""
    return tuple(
        LoggedEvent(number, _decode(_events, event, "an event", task_id))
        for number, event in enumerate(encoded, first_generation)
    )


def decode_current_task(
    snapshot: bytes, later_events: Sequence[bytes], task_id: str, *, include_artifacts: bool
) -> Task:
    """The task after the events that follow its snapshot. Without `include_artifacts`, no artifact is decoded."""
    if include_artifacts:
        events = [_decode(_events, encoded, "an event", task_id) for encoded in later_events]
        return apply_events(decode_task(snapshot, task_id), events)
    partial = _decode(_tasks_without_artifacts, snapshot, "the snapshot", task_id)
    task = Task(partial.id, partial.context_id, partial.status, (), partial.history, partial.metadata)
    found = [_decode(_events_without_artifact, encoded, "an event", task_id) for encoded in later_events]
    return apply_events(_of_task(task, task_id), [event for event in found if not isinstance(event, _SkippedArtifact)])


def _of_task(task: Task, task_id: str) -> Task:
    """The snapshot of another task may have been put in the place of this one's: its caller must not get that."""
    if task.id != task_id:
        raise DamagedRecordError("the snapshot", task_id)
    return task


def _decode(decoders: Decoders[T], encoded: bytes, what: str, task_id: str) -> T:
    try:
        return decode_either(decoders, encoded)
    except msgspec.DecodeError:
        raise DamagedRecordError(what, task_id) from None
