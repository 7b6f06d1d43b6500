"""Tasks and events as bytes, and back. MessagePack, or JSON where a number is too large for that.

The first byte tells them apart: a packed struct is a map, and no map begins with what is `{` in JSON.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from ..model.draft import fold
from ..model.types import (
    Created,
    Event,
    JsonObject,
    Message,
    MessageAdded,
    StatusChanged,
    Task,
    TaskStatus,
)
from .interface import Change, Logged, PushTarget, UnstorableError


class _Bare(msgspec.Struct, frozen=True, rename="camel"):
    """A task that is read without its artifacts."""

    id: str
    context_id: str
    status: TaskStatus
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class _ArtifactPassed(msgspec.Struct, frozen=True, tag="artifact"):
    """A change of an artifact, its content unread."""


_BareEvent: TypeAlias = Created | MessageAdded | StatusChanged | _ArtifactPassed

_BRACE: Final = ord("{")
_packer: Final = msgspec.msgpack.Encoder()
_tasks: Final = (msgspec.msgpack.Decoder(Task), msgspec.json.Decoder(Task))
_bare_tasks: Final = (msgspec.msgpack.Decoder(_Bare), msgspec.json.Decoder(_Bare))
_events: Final[tuple[msgspec.msgpack.Decoder[Event], msgspec.json.Decoder[Event]]] = (
    msgspec.msgpack.Decoder(Event),
    msgspec.json.Decoder(Event),
)
_bare_events: Final[tuple[msgspec.msgpack.Decoder[_BareEvent], msgspec.json.Decoder[_BareEvent]]] = (
    msgspec.msgpack.Decoder(_BareEvent),
    msgspec.json.Decoder(_BareEvent),
)
_targets: Final = (msgspec.msgpack.Decoder(PushTarget), msgspec.json.Decoder(PushTarget))


class Packed(msgspec.Struct, frozen=True):
    """What of a change is stored: a snapshot, and events for the log. Those of a new task are behind its snapshot."""

    snapshot: bytes | None
    events: tuple[bytes, ...]


def pack_change(change: Change, *, covered: bool) -> Packed | UnstorableError:
    """A new task has a snapshot in any case. Events that a later snapshot reflects are packed where `covered` asks for it."""
    events, snapshot = change.events, change.snapshot
    if change.expected == 0 and snapshot is None:
        created = events[0]
        assert isinstance(created, Created), "seen to by check"
        events, snapshot = events[1:], created.task
    elif snapshot is not None and (change.expected == 0 or not covered):
        events = ()
    try:
        f"{change.task_id}{change.scope}{change.context_id}{change.updated}".encode()
        return Packed(None if snapshot is None else pack(snapshot), tuple(map(pack, events)))
    except (TypeError, ValueError, RecursionError):
        return UnstorableError(change.task_id)


def pack(value: Task | Event | PushTarget) -> bytes:
    """Raises `TypeError`, `ValueError` or `RecursionError` for what is no JSON."""
    try:
        return _packer.encode(value)
    except OverflowError:  # JSON numbers know no limit
        return msgspec.json.encode(value)


def task_from(packed: bytes) -> Task:
    return _tasks[packed[0] == _BRACE].decode(packed)


def event_from(packed: bytes) -> Event:
    return _events[packed[0] == _BRACE].decode(packed)


def target_from(packed: bytes) -> PushTarget:
    return _targets[packed[0] == _BRACE].decode(packed)


def task_after(snapshot: bytes, later: list[bytes], *, artifacts: bool) -> Task:
    """The task after the events behind its snapshot; without `artifacts`, what they hold is not even looked at."""
    if artifacts:
        return fold(task_from(snapshot), map(event_from, later))
    bare = _bare_tasks[snapshot[0] == _BRACE].decode(snapshot)
    task = Task(bare.id, bare.context_id, bare.status, (), bare.history, bare.metadata)
    events = [_bare_events[packed[0] == _BRACE].decode(packed) for packed in later]
    return fold(task, [event for event in events if not isinstance(event, _ArtifactPassed)])


def numbered(first: int, packed: list[bytes]) -> tuple[Logged, ...]:
    """Events in a row, the first of which has this number."""
    return tuple(Logged(number, event_from(event)) for number, event in enumerate(packed, first))
