"""Reads tasks, events, lists, push targets and owners. Each function asks the server once, so what it reads is of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...model.types import STATE_NUMBERS, TaskState
from ..checks import MAX_PAGE_BYTES, MAX_READ_BYTES, up_to_max_page_bytes
from ..interface import (
    QUEUED,
    DamagedTaskError,
    LoggedEvent,
    LogTruncatedError,
    PushTarget,
    StoredTask,
    TaskPage,
    TaskQuery,
)
from ..serialization import decode_current_task, decode_events, decode_push_target, decode_stored
from .address import Address
from .connection import Session
from .read_scripts import EXPIRED, LISTING, LOADING, ORPHANS, READING
from .script import pack, packed_bytes


class Source(NamedTuple):
    """What is read: a session, and where the keys are."""

    session: Session
    address: Address

    def key(self, name: str) -> str:
        return self.address.key(name)


def to_bytes(text: str) -> bytes:
    """As it is stored. A lone surrogate never is, and may be asked for."""
    return text.encode("utf-8", "surrogatepass")


def packed_text(text: str) -> msgspec.Raw:
    return packed_bytes(to_bytes(text))


def load_task(source: Source, task_id: str) -> StoredTask | None:
    found = LOADING.run(source.session, source.key("store"), to_bytes(task_id))
    if found is None:
        return None
    body, snapshot_generation, generation, scope, owner, events = found
    snapshot_generation = int(snapshot_generation)
    if len(events) != int(generation) - snapshot_generation:
        raise DamagedTaskError(f"events of task {task_id} are missing")
    return decode_stored(body, snapshot_generation, events, scope.decode(), None if owner is None else owner.decode())


def read_events(source: Source, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    generation, events = READING.run(
        source.session, source.key("store"), to_bytes(task_id), after, limit, MAX_READ_BYTES
    )
    if events is None or generation == 0:
        raise LogTruncatedError(task_id, generation)
    return decode_events(events, first_generation=after + 1)


def list_tasks(source: Source, query: TaskQuery, bound: int) -> TaskPage:
    """One page, of tasks whose sequence number is below `bound`."""
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
    total, found, rows = LISTING.run(source.session, source.key("store"), pack(asked))
    tasks = up_to_max_page_bytes(
        decode_current_task(body, events, include_artifacts=query.include_artifacts) for _, body, events in rows
    )
    return TaskPage(tuple(tasks), rows[len(tasks) - 1][0].decode() if found > len(tasks) else "", total)


def count_states(source: Source) -> dict[TaskState, int]:
    """How many tasks are in each state."""
    reply = source.session.call("HGETALL", source.key("counts"))
    counts = dict(zip(map(int, reply[::2]), map(int, reply[1::2]), strict=True))
    return {state: counts[number] for state, number in STATE_NUMBERS.items() if number in counts}


def load_push_targets(source: Source, task_id: str) -> Sequence[PushTarget]:
    values: list[bytes] = source.session.call("HVALS", to_bytes(source.key(f"targets:{task_id}")))
    numbered = [value.partition(b":") for value in values]
    return [decode_push_target(body) for _, _, body in sorted(numbered, key=lambda each: int(each[0]))]


def list_orphans(source: Source, owner_id: str, lease_ms: int) -> Sequence[str]:
    return [each.decode() for each in ORPHANS.run(source.session, source.key("store"), owner_id, lease_ms)]


def list_owned_tasks(source: Source, owner_id: str) -> Sequence[str]:
    """Of those that have not ended."""
    return [each.decode() for each in source.session.call("ZRANGE", source.key(f"owned:{owner_id}"), 0, -1)]


def has_queued(source: Source) -> bool:
    return count_queued(source) > 0


def count_queued(source: Source) -> int:
    return int(source.session.call("ZCARD", source.key(f"owned:{QUEUED}")))


def has_owner_requests(source: Source, owner_id: str) -> bool:
    return bool(source.session.call("EXISTS", source.key(f"asked:{owner_id}")))


def expired_tasks(source: Source, *, ended_before_ms: float, max_tasks: int, limit: int) -> list[bytes]:
    """The ids of ended tasks that are too old (milliseconds since 1970) or too many, of the `limit` oldest."""
    found: list[bytes] = EXPIRED.run(
        source.session, source.key("store"), max_tasks, f"{max(ended_before_ms, -1):.0f}", limit
    )
    return found
