"""Reads tasks, events, lists, push targets and owners. Each function asks the server once, so what it reads is of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any

import msgspec

from ....a2a.types import STATE_NUMBERS, STATES, TaskQuery, TaskState
from ..checks import MAX_PAGE_BYTES, MAX_READ_BYTES, Listed, ReadPage, by_state, read_page
from ..failures import DamagedRecordError
from ..interface import QUEUED, LoggedEvent, LogTruncatedError, PushTarget, StoredTask
from ..serialization import decode_events, decode_push_target, decode_stored
from .scripts import LISTING, LOADING, ORPHANS, READING, pack, packed_bytes
from .session import Session


def to_bytes(text: str) -> bytes:
    """Encode a text as it is stored. A lone surrogate is never stored, but may be asked for."""
    return text.encode("utf-8", "surrogatepass")


def packed_text(text: str) -> msgspec.Raw:
    return packed_bytes(to_bytes(text))


def load_task(session: Session, task_id: str) -> StoredTask | None:
    found = LOADING.run(session, to_bytes(task_id))
    if found is None:
        return None
    body, covered, generation, scope, owner, events = found
    snapshot, later, snapshot_generation = _parts(task_id, body, covered, generation, events)
    if scope is None:
        raise DamagedRecordError("the scope", task_id)
    owner_id = None if owner is None else _text(owner)
    return decode_stored(task_id, snapshot, snapshot_generation, later, _text(scope), owner_id)


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


def _parts(
    task_id: str, snapshot: bytes | None, covered: bytes | None, generation: bytes | None, events: list[bytes] | None
) -> tuple[bytes, list[bytes], int]:
    """The snapshot, the events after it, and its generation. Raises `DamagedRecordError` where something is missing."""
    if snapshot is None or covered is None:
        raise DamagedRecordError("the snapshot", task_id)
    numbers = [covered, generation or b""]
    if events is None or not all(map(bytes.isdigit, numbers)) or len(events) != int(numbers[1]) - int(covered):
        raise DamagedRecordError("the log", task_id)
    return snapshot, events, int(covered)


def read_events(session: Session, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    generation, events = READING.run(session, to_bytes(task_id), after, limit, MAX_READ_BYTES)
    if events is None or generation == 0:
        raise LogTruncatedError(task_id, generation)
    return decode_events(events, task_id, first_generation=after + 1)


def list_tasks(session: Session, query: TaskQuery, bound: int) -> ReadPage:
    """One page, of tasks whose sequence number is below `bound`. That of an operator, where the query has no scope, is read by
    several questions: a task that changes meanwhile may be on it as it is after that."""
    if query.scope is None:
        return _list_all(session, query, bound)
    after = query.status_timestamp_after
    asked = (
        packed_text(query.scope),
        False if query.context_id is None else packed_text(query.context_id),
        False if query.state is None else str(STATE_NUMBERS[query.state]),
        False if after is None else packed_text(after),
        str(bound),
        query.page_size + 1,
        MAX_PAGE_BYTES,
    )
    total, found, rows = LISTING.run(session, pack(asked))
    return read_page((_listed(row, query.scope) for row in rows), query, total, is_cut=found > len(rows))


def _listed(row: Sequence[Any], scope: str) -> Listed:  # Any: as `Session.call`
    sequence, encoded_id, state, context, owner, *stored = row
    task_id = _text(encoded_id)
    return Listed(
        task_id,
        _text(context or b""),
        STATES.get(int(state)),
        int(sequence),
        scope,
        None if owner is None else _text(owner),
        lambda: _parts(task_id, *stored)[:2],
    )


# The tasks of all callers. No index has them: there is one for each caller and state, and these are searched for.


def _list_all(session: Session, query: TaskQuery, bound: int) -> ReadPage:
    total, found = 0, list[Iterator[tuple[int, bytes, str]]]()
    after = to_bytes(query.status_timestamp_after or "")
    for state, scope in _scopes(session, query.state):
        encoded = to_bytes(scope)
        context = None if query.context_id is None else to_bytes(query.context_id)
        name = state + (b"::" + encoded if context is None else b":%d:%b:%b" % (len(encoded), encoded, context))
        total += session.call("ZLEXCOUNT", to_bytes(session.key("times:")) + name, b"[" + after if after else "-", "+")
        found.append(_descending(session, to_bytes(session.key("list:")) + name, scope, bound, after, query.page_size))
    rows = merge(*found, key=itemgetter(0), reverse=True)
    listed = (_loaded(session, *row) for row in islice(rows, query.page_size + 1))
    return read_page((each for each in listed if each is not None), query, total)


def _scopes(session: Session, state: TaskState | None) -> list[tuple[bytes, str]]:
    """The numbers of states, each with a caller that has tasks in it."""
    number = "[0-9]" if state is None else str(STATE_NUMBERS[state])
    before = to_bytes(session.key("list:"))
    names: set[bytes] = set()
    cursor: bytes | int = 0
    while True:
        cursor, keys = session.call("SCAN", cursor, "MATCH", session.key(f"list:{number}::*"), "COUNT", 1000)
        names.update(key.removeprefix(before) for key in keys)
        if int(cursor) == 0:
            return [(name[:1], _text(name[3:])) for name in sorted(names)]


def _descending(
    session: Session, key: bytes, scope: str, bound: int, after: bytes, count: int
) -> Iterator[tuple[int, bytes, str]]:
    """The tasks of an index, the last changed first: number, id, and the caller."""
    while True:
        some = session.call("ZREVRANGEBYSCORE", key, f"({bound}", "-inf", "WITHSCORES", "LIMIT", 0, count + 1)
        for member, score in zip(some[::2], some[1::2], strict=True):
            bound = int(score)
            timestamp, _, task_id = member.partition(b"\0")
            if timestamp >= after:
                yield bound, task_id, scope
        if len(some) <= 2 * count:
            return


def _loaded(session: Session, sequence: int, encoded_id: bytes, scope: str) -> Listed | None:
    """The task as it is now; None where it has been deleted."""
    found = LOADING.run(session, encoded_id)
    if found is None:
        return None
    task_id = _text(encoded_id)
    body, covered, generation, _, owner, events = found
    return Listed(
        task_id,
        "",
        None,
        sequence,
        scope,
        None if owner is None else _text(owner),
        lambda: _parts(task_id, body, covered, generation, events)[:2],
    )


def count_states(session: Session) -> dict[TaskState, int]:
    """How many tasks are in each state."""
    reply = session.call("HGETALL", session.key("counts"))
    return by_state(dict(zip(map(int, reply[::2]), map(int, reply[1::2]), strict=True)))


def load_push_targets(session: Session, task_id: str) -> Sequence[PushTarget]:
    values: list[bytes] = session.call("HVALS", to_bytes(session.key(f"targets:{task_id}")))
    numbered = [value.partition(b":") for value in values]
    if not all(number.isdigit() for number, _, _ in numbered):
        raise DamagedRecordError("a push target", task_id)
    return [decode_push_target(body, task_id) for _, _, body in sorted(numbered, key=lambda each: int(each[0]))]


def list_orphans(session: Session, owner_id: str, lease_ms: int) -> Sequence[str]:
    return [each.decode() for each in ORPHANS.run(session, owner_id, lease_ms)]


def list_owned_tasks(session: Session, owner_id: str) -> Sequence[str]:
    """Of those that have not ended."""
    return [each.decode() for each in session.call("ZRANGE", session.key(f"owned:{owner_id}"), 0, -1)]


def has_queued(session: Session) -> bool:
    return count_queued(session) > 0


def count_queued(session: Session) -> int:
    return int(session.call("ZCARD", session.key(f"owned:{QUEUED}")))


def has_owner_requests(session: Session, owner_id: str) -> bool:
    return bool(session.call("EXISTS", session.key(f"asked:{owner_id}")))
