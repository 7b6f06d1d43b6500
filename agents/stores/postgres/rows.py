"""Rows of the store's tables: how many events are in one, and strings as PostgreSQL's type `text` takes them, without NUL and
without lone surrogates. Runs no SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from ..failures import DamagedRecordError
from ..interface import OwnerRequest

EVENTS_PER_ROW: Final = 64
"""Reading one event reads its whole row."""

BYTES_PER_ROW: Final = 1024 * 1024

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[bytes]).decode


class TaskRow(msgspec.Struct):
    """A row of `tasks`, in the order of its columns. Its strings are as PostgreSQL has them."""

    key: int
    id: str
    scope: str
    context_id: str
    state: int
    status_timestamp: str
    sequence: int
    generation: int
    snapshot_generation: int
    owner: str | None
    ended_ms: int | None


COLUMNS: Final = (
    "key, id, scope, context_id, state, status_timestamp, sequence, generation, snapshot_generation, owner, ended_ms"
)
"""Those of `TaskRow`."""


class EventRow(msgspec.Struct):
    """A row of `events`."""

    task_key: int
    last_generation: int
    first_generation: int
    bodies: bytes


class RequestRow(msgspec.Struct):
    """A row of `owner_requests`. An equal request has an equal digest."""

    task_key: int
    kind: str
    digest: bytes
    body: bytes


def request_row(key: int, request: OwnerRequest) -> RequestRow:
    return RequestRow(key, to_text(request.kind), blake2b(request.body, digest_size=32).digest(), request.body)


def event_rows(key: int, first: int, events: Sequence[bytes]) -> Iterator[EventRow]:
    """Consecutive events of a task, the first of which has the number `first`."""
    group: list[bytes] = []
    size = 0
    for number, event in enumerate(events, first):
        group.append(event)
        size += len(event)
        if len(group) == EVENTS_PER_ROW or size >= BYTES_PER_ROW:
            yield EventRow(key, number, number - len(group) + 1, _encode(group))
            group, size = [], 0
    if group:
        last = first + len(events) - 1
        yield EventRow(key, last, last - len(group) + 1, _encode(group))


def decode_bodies(encoded: bytes, task_id: str) -> list[bytes]:
    """The events of a row of this task. Raises `DamagedRecordError`."""
    try:
        return _decode(encoded)
    except msgspec.DecodeError:
        raise DamagedRecordError("an event", task_id) from None


def columns(rows: Sequence[msgspec.Struct]) -> tuple[list[Any], ...]:  # Any: what the columns hold
    """One list for each column. There is at least one row."""
    return tuple([*column] for column in zip(*map(msgspec.structs.astuple, rows), strict=True))


_ESCAPE: Final = "\x1a"
"""SUBSTITUTE begins an escape, and so is escaped itself."""

_escaped: Final = re.compile("[\x00\x1a\ud800-\udfff]")
_escapes: Final = re.compile("\x1a([0-9a-f]{4})")


def to_text(value: str) -> str:
    """Different strings give different texts."""
    return _escaped.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    """The string that `to_text` made the text from."""
    return _escapes.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text
