"""Reads tasks, events, lists, push targets and owners. Each function asks the server once, so what it reads is of one moment."""

from __future__ import annotations

from collections.abc import Sequence

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
from ..serialization import decode_current_task, decode_events, decode_push_target, decode_task
from .address import Address
from .connection import Session
from .read_scripts import EXPIRED, LISTING, LOADING, ORPHANS, READING
from .script import pack, packed_bytes


def to_bytes(text: str) -> bytes:
    """As it is stored. A lone surrogate never is, and may be asked for."""
    return text.encode("utf-8", "surrogatepass")


def packed_text(text: str) -> msgspec.Raw:
    return packed_bytes(to_bytes(text))


def load_task(session: Session, address: Address, task_id: str) -> StoredTask | None:
    found = LOADING.run(session, address.key("store"), to_bytes(task_id))
    if found is None:
        return None
    body, snapshot_generation, generation, scope, owner, events = found
    snapshot_generation = int(snapshot_generation)
    if len(events) != int(generation) - snapshot_generation:
        raise DamagedTaskError(f"events of task {task_id} are missing")
    return StoredTask(
        decode_task(body),
        snapshot_generation,
        decode_events(events, first_generation=snapshot_generation + 1),
        scope.decode(),
        None if owner is None else owner.decode(),
    )


def read_events(session: Session, address: Address, task_id: str, *, after: int, limit: int) -> Sequence[LoggedEvent]:
    generation, events = READING.run(session, address.key("store"), to_bytes(task_id), after, limit, MAX_READ_BYTES)
    if events is None or generation == 0:
        raise LogTruncatedError(task_id, generation)
    return decode_events(events, first_generation=after + 1)


def list_tasks(session: Session, address: Address, query: TaskQuery, bound: int) -> TaskPage:
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
    total, found, rows = LISTING.run(session, address.key("store"), pack(asked))
    tasks = up_to_max_page_bytes(
        decode_current_task(body, events, include_artifacts=query.include_artifacts) for _, body, events in rows
    )
    return TaskPage(tuple(tasks), rows[len(tasks) - 1][0].decode() if found > len(tasks) else "", total)


def count_states(session: Session, address: Address) -> dict[TaskState, int]:
    """How many tasks are in each state."""
    reply = session.call("HGETALL", address.key("counts"))
    counts = dict(zip(map(int, reply[::2]), map(int, reply[1::2]), strict=True))
    return {state: counts[number] for state, number in STATE_NUMBERS.items() if number in counts}


def load_push_targets(session: Session, address: Address, task_id: str) -> Sequence[PushTarget]:
    values: list[bytes] = session.call("HVALS", to_bytes(address.key(f"targets:{task_id}")))
    numbered = [value.partition(b":") for value in values]
    return [decode_push_target(body) for _, _, body in sorted(numbered, key=lambda each: int(each[0]))]


def list_orphans(session: Session, address: Address, owner_id: str, lease_ms: int) -> Sequence[str]:
    return [each.decode() for each in ORPHANS.run(session, address.key("store"), owner_id, lease_ms)]


def count_queued(session: Session, address: Address) -> int:
    return int(session.call("ZCARD", address.key(f"owned:{QUEUED}")))


def has_owner_requests(session: Session, address: Address, owner_id: str) -> bool:
    return bool(session.call("EXISTS", address.key(f"asked:{owner_id}")))


def expired_tasks(
    session: Session, address: Address, *, ended_before_ms: float, max_tasks: int, limit: int
) -> list[bytes]:
    """The ids of ended tasks that are too old (milliseconds since 1970) or too many, of the `limit` oldest."""
    found: list[bytes] = EXPIRED.run(session, address.key("store"), max_tasks, f"{max(ended_before_ms, -1):.0f}", limit)
    return found
