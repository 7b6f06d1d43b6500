"""Stores tasks in the memory of this process; they are lost when it ends. Never waits, never touches the disk.

A stored task is one object and a few byte strings, which the garbage collector does not traverse. Tasks that have ended are
deleted, oldest first, when they are too old, too many or too large together; one whose log is being read only if all the others
together are still too large. Of the events that a snapshot covers the last ones can still be read.
"""

from __future__ import annotations

import math
import time
from array import array
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import count
from sys import maxsize
from typing import Final, TypeAlias, final

import msgspec

from ...a2a.types import TERMINAL, TaskPage, TaskQuery, TaskState
from ...daemon.memory import MemoryBudget
from ...lazy import anyio
from .checks import (
    DEFAULT_RETENTION,
    Listed,
    RetainedTasks,
    Retention,
    page_bound,
    read_page,
    up_to_max_read_bytes,
)
from .interface import (
    QUEUED,
    Changes,
    CommitRefusal,
    LoggedEvent,
    LogTruncatedError,
    OwnerRequest,
    PushTarget,
    StoredTask,
    StoreFull,
    TaskChange,
    Unserializable,
)
from .serialization import (
    EncodedChange,
    check_changes,
    compact,
    decode_events,
    decode_stored,
    encode_change,
    find_conflict,
)

MAX_ACTIVE_TASKS: Final = 100_000
"""Tasks that have not ended. Further ones are refused."""

MAX_ENDED_BYTES: Final = 256 * 1024 * 1024
"""Total size of the tasks that have ended."""

MAX_LOG_EVENTS: Final = 65_536
"""Events that a task keeps after its snapshot. When there are more, they become part of the snapshot."""

MAX_LOG_BYTES: Final = 64 * 1024 * 1024


MAX_TAIL_BYTES: Final = 32 * 1024 * 1024
"""Total size of the tails of all tasks; see `EventTails`."""


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a memory store holds, and for how long."""

    retention: Retention = DEFAULT_RETENTION
    active_tasks: int = MAX_ACTIVE_TASKS
    ended_bytes: int = MAX_ENDED_BYTES
    log_events: int = MAX_LOG_EVENTS
    log_bytes: int = MAX_LOG_BYTES
    tail_bytes: int = MAX_TAIL_BYTES


# One task in the memory store: encoded, so that the garbage collector does not traverse it. Decides nothing.


RECORD_BYTES: Final = 1024
"""About what a task takes beside its snapshot and its log: its ids and its places in the indexes."""


class TaskRecord(msgspec.Struct, gc=False):
    """One task. `sequence` numbers its last change among those of all tasks; `log` holds the events after the snapshot;
    `counted` is its size in the budget."""

    id: str
    scope: str
    context_id: str
    state: TaskState
    status_timestamp: str
    sequence: int
    generation: int
    owner: str | None
    snapshot: bytes
    log: list[bytes] | None = None
    log_bytes: int = 0
    counted: int = 0

    @property
    def snapshot_generation(self) -> int:
        return self.generation - len(self.log or ())

    @property
    def size(self) -> int:
        return len(self.snapshot) + self.log_bytes

    def parts(self) -> tuple[bytes, Sequence[bytes]]:
        """The snapshot, and the events after it."""
        return self.snapshot, self.log or ()


# An index of tasks in the order of their last change. Holds sequence numbers and timestamps, never tasks.


@final
class TaskIndex:
    """Sequence numbers in ascending order, and the timestamps of the tasks' statuses.

    Both are dense sorted arrays. Most changes concern recent tasks, so few entries move; a change in the middle of 100,000
    entries costs one `memmove` of some hundred kilobytes.
    """

    __slots__ = ("_max_timestamps", "_sequences", "_timestamps")

    def __init__(self) -> None:
        self._sequences = array("Q")
        self._timestamps: list[str] = []
        self._max_timestamps: list[str] = []  # by position: no task up to here has a later timestamp

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, sequence: int, timestamp: str) -> None:
        """Add a task. `sequence` is larger than every one in the index."""
        self._sequences.append(sequence)
        insort(self._timestamps, timestamp)
        self._max_timestamps.append(max(timestamp, self._max_timestamps[-1]) if self._max_timestamps else timestamp)

    def remove(self, sequence: int, timestamp: str) -> bool:
        """Remove a task that was added with these values. Returns whether others are left."""
        position = bisect_left(self._sequences, sequence)
        del self._sequences[position], self._max_timestamps[position]
        del self._timestamps[bisect_left(self._timestamps, timestamp)]
        return bool(self._timestamps)

    def count(self, from_timestamp: str | None) -> int:
        """How many tasks have this timestamp or a later one."""
        return len(self._timestamps) - (
            bisect_left(self._timestamps, from_timestamp) if from_timestamp is not None else 0
        )

    def descending(self, below: int, from_timestamp: str | None) -> Iterator[int]:
        """Sequence numbers smaller than `below`, largest first.

        Ends where no further task can have `from_timestamp` or a later one. Tasks with earlier ones may be among the results.
        """
        sequences, max_timestamps = self._sequences, self._max_timestamps
        for position in range(bisect_left(sequences, below) - 1, -1, -1):
            if from_timestamp is not None and max_timestamps[position] < from_timestamp:
                return
            yield sequences[position]


# The requests to the owners of tasks in memory, in the order in which they came. Knows no task and no owner.


_REQUEST_BYTES: Final = 256
"""Bytes that a request takes beside its body."""


@final
class OwnerRequests:
    """One per memory store. Counts in `budget`."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._numbers = count()
        self.by_task: Final[dict[str, dict[OwnerRequest, int]]] = {}
        self._deliverable: set[str] = set()

    def add(self, request: OwnerRequest) -> None:
        """An equal one that is there already stays where it is."""
        requests = self.by_task.setdefault(request.task_id, {})
        if request not in requests:
            requests[request] = next(self._numbers)
            self._budget.add("tasks", _size(request))

    def deliver(self, task_id: str) -> None:
        """Let the next `take` see whether the task is owned. To be called when that may have begun, and after `add`."""
        if task_id in self.by_task:
            self._deliverable.add(task_id)

    def take(self, is_owned: Callable[[str], bool]) -> list[OwnerRequest]:
        """Remove and return, oldest first, the requests of tasks that were delivered and are owned."""
        taken = [item for task_id in self._deliverable if is_owned(task_id) for item in self._remove(task_id).items()]
        self._deliverable.clear()
        return [request for request, _ in sorted(taken, key=lambda item: item[1])]

    def delete(self, task_id: str) -> None:
        """Remove the requests of this task."""
        self._remove(task_id)
        self._deliverable.discard(task_id)

    def _remove(self, task_id: str) -> dict[OwnerRequest, int]:
        removed = self.by_task.pop(task_id, {})
        if removed:
            self._budget.add("tasks", -sum(map(_size, removed)))
        return removed


def _size(request: OwnerRequest) -> int:
    return _REQUEST_BYTES + len(request.body)


_IndexKey: TypeAlias = tuple[str, TaskState] | tuple[str, str, TaskState]
"""Scope and state, or scope, context id and state."""


@final
class MemoryStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds and never goes back. Ended tasks take a quarter of `budget`."""

    def __init__(
        self,
        limits: StoreLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._budget = budget or MemoryBudget(maxsize)
        max_seconds = self._limits.retention.max_seconds
        self._max_seconds = math.inf if max_seconds is None else max_seconds
        ended_bytes = min(self._limits.ended_bytes, self._budget.limit // 4)
        self._limits = msgspec.structs.replace(self._limits, ended_bytes=ended_bytes)
        self._tails = EventTails(self._limits.tail_bytes, self._budget)
        self._tasks: dict[str, TaskRecord] = {}
        self._by_sequence: dict[int, TaskRecord] = {}
        self._indexes: dict[_IndexKey, TaskIndex] = {}
        self._push_targets: dict[str, dict[str, PushTarget]] = {}
        self._requests = OwnerRequests(self._budget)
        self._queued: list[int] = []  # sequence numbers, ascending
        self._last_sequence = 0
        self._states: Counter[TaskState] = Counter()
        self._ended_tasks = 0
        self._ended_bytes = 0
        self._ended_sequences: deque[int] = deque()  # oldest first; a task that changed again leaves a stale entry
        self._ended_times: deque[float] = deque()
        self._retained = RetainedTasks()
        self._overdue: dict[str, TaskRecord] = {}  # to be deleted when their last reader has gone; oldest first

    @property
    def durable(self) -> bool:
        return False

    @property
    def owner_id(self) -> str:
        return "memory"

    @property
    def event_log(self) -> MemoryStore:
        return self

    @property
    def grace_seconds(self) -> float:
        return 0.0

    def lease_end(self) -> float:
        return math.inf

    def open_early(self) -> None:
        pass

    def close_early(self) -> None:
        pass

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        return self.commit_nowait(changes)

    def commit_nowait(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        check_changes(changes)
        results = [*map(self._commit, changes)]
        self._evict()
        return results

    def _commit(self, change: TaskChange) -> CommitRefusal | None:
        record = self._tasks.get(change.task_id)
        generation, owner = (0, None) if record is None else (record.generation, record.owner)
        conflict = find_conflict(change, generation, owner, owner_id=self.owner_id)
        if conflict is not None:
            return conflict
        if record is None and len(self._tasks) - self._ended_tasks >= self._limits.active_tasks:
            return StoreFull()
        encoded = encode_change(change)
        if isinstance(encoded, Unserializable):
            return encoded
        if record is None:
            record = self._create(change, encoded)
        else:
            self._update(record, change, encoded)
        if record.owner == QUEUED:
            insort(self._queued, record.sequence)
        for request in change.requests:
            self._requests.add(request)
        if self._requests.by_task:
            self._requests.deliver(record.id)
        return None

    def _create(self, change: TaskChange, encoded: EncodedChange) -> TaskRecord:
        record = TaskRecord(
            change.task_id,
            change.scope,
            change.context_id,
            change.state,
            change.status_timestamp,
            0,
            len(change.events),
            change.owner,
            encoded.snapshot or b"",
        )
        if encoded.events:
            self._append(record, encoded.events, covered=change.snapshot is not None)
        self._tasks[record.id] = record
        self._add_to_indexes(record)
        return record

    def _update(self, record: TaskRecord, change: TaskChange, encoded: EncodedChange) -> None:
        if record.state in TERMINAL:
            self._ended_bytes -= record.size
        self._dequeue(record)
        record.owner = change.owner
        if change.owner is None and self._requests.by_task:
            self._requests.delete(record.id)
        record.generation += len(change.events)
        if encoded.snapshot is not None:
            record.snapshot = encoded.snapshot
        if record.log or encoded.events:
            self._append(record, encoded.events, covered=encoded.snapshot is not None)
        if record.state in TERMINAL:
            self._ended_bytes += record.size
        if change.events:
            self._remove_from_indexes(record)
            record.state, record.status_timestamp = change.state, change.status_timestamp
            self._add_to_indexes(record)

    def _dequeue(self, record: TaskRecord) -> None:
        if record.owner == QUEUED:
            del self._queued[bisect_left(self._queued, record.sequence)]

    def _append(self, record: TaskRecord, events: Sequence[bytes], *, covered: bool) -> None:
        """Append the events to the log. `covered`: the task's snapshot covers the log and them."""
        record.log = record.log or []
        record.log += events
        record.log_bytes += sum(map(len, events))
        if not covered and (len(record.log) > self._limits.log_events or record.log_bytes > self._limits.log_bytes):
            record.snapshot = compact(record.snapshot, record.log, record.id)
            covered = True
        if covered:
            self._tails.extend(record.id, record.log)
            record.log, record.log_bytes = None, 0

    # -- indexes -----------------------------------------------------------------------------------------------

    def _add_to_indexes(self, record: TaskRecord) -> None:
        """Give the task the next sequence number and index it."""
        self._last_sequence += 1
        record.sequence = self._last_sequence
        self._by_sequence[record.sequence] = record
        self._count(record, RECORD_BYTES + record.size)
        self._states[record.state] += 1
        for key in _index_keys(record):
            index = self._indexes.get(key)
            if index is None:
                index = self._indexes[key] = TaskIndex()
            index.add(record.sequence, record.status_timestamp)
        if record.state in TERMINAL:
            self._ended_tasks += 1
            self._ended_bytes += record.size
            self._ended_sequences.append(record.sequence)
            self._ended_times.append(self._clock())

    def _remove_from_indexes(self, record: TaskRecord) -> None:
        self._overdue.pop(record.id, None)
        del self._by_sequence[record.sequence]
        self._states[record.state] -= 1
        for key in _index_keys(record):
            if not self._indexes[key].remove(record.sequence, record.status_timestamp):
                del self._indexes[key]
        if record.state in TERMINAL:
            self._ended_tasks -= 1
            self._ended_bytes -= record.size

    def _count(self, record: TaskRecord, size: int) -> None:
        self._budget.add("tasks", size - record.counted)
        record.counted = size

    def free(self, size: int) -> None:
        size -= self._tails.free(size)
        limits = self._limits
        self._limits = msgspec.structs.replace(limits, ended_bytes=max(0, self._ended_bytes - max(0, size)))
        self._evict()
        self._limits = limits

    def _evict(self) -> None:
        """Delete ended tasks, oldest first, until they keep every limit."""
        limits = self._limits
        oldest = self._clock() - self._max_seconds
        while self._ended_sequences and (
            self._ended_times[0] < oldest
            or self._ended_tasks - len(self._overdue) > limits.retention.max_tasks
            or self._ended_bytes > limits.ended_bytes
        ):
            self._ended_times.popleft()
            record = self._by_sequence.get(self._ended_sequences.popleft())
            if record is not None and record.id in self._retained:
                self._overdue[record.id] = record
            elif record is not None:
                self._delete(record)
        while self._overdue and self._ended_bytes > limits.ended_bytes:
            self._delete(next(iter(self._overdue.values())))

    def _delete(self, record: TaskRecord) -> None:
        self._dequeue(record)
        self._remove_from_indexes(record)
        self._count(record, 0)
        del self._tasks[record.id]
        self._tails.drop(record.id)
        self._push_targets.pop(record.id, None)
        self._requests.delete(record.id)

    # -- reading -----------------------------------------------------------------------------------------------

    async def load(self, task_id: str) -> StoredTask | None:
        self._evict()
        record = self._tasks.get(task_id)
        if record is None:
            return None
        return decode_stored(
            task_id, record.snapshot, record.snapshot_generation, record.log or (), record.scope, record.owner
        )

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        record = self._tasks.get(task_id)
        if record is None:
            raise LogTruncatedError(task_id, 0)
        if after >= record.generation:
            return ()
        log: Sequence[bytes] = record.log or ()
        start = after - record.snapshot_generation
        if start < 0:
            tail = self._tails.get(task_id)
            start += len(tail)
            if start < 0:
                raise LogTruncatedError(task_id, record.generation)
            log = [*tail, *log]
        events = up_to_max_read_bytes(log[start : start + limit])
        return decode_events(events, task_id, first_generation=after + 1)

    def retain(self, task_id: str) -> None:
        self._retained.add(task_id)

    def release(self, task_id: str) -> None:
        if self._retained.remove(task_id) and task_id in self._overdue:
            self._delete(self._overdue[task_id])

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        self._evict()
        if query.scope is None:
            last_first = reversed(self._by_sequence.values())
            below = (each for each in last_first if each.sequence < bound and _matches(each, query))
            return read_page(map(_listed, below), query, self._count_all(query)).page
        from_timestamp = query.status_timestamp_after
        indexes = [
            index
            for state in (TaskState if query.state is None else (query.state,))
            if (index := self._indexes.get(_index_key(query.scope, query.context_id, state))) is not None
        ]
        sequences = merge(*(index.descending(bound, from_timestamp) for index in indexes), reverse=True)
        records = (self._by_sequence[sequence] for sequence in sequences)
        found = (record for record in records if from_timestamp is None or record.status_timestamp >= from_timestamp)
        return read_page(map(_listed, found), query, sum(index.count(from_timestamp) for index in indexes)).page

    def _count_all(self, query: TaskQuery) -> int:
        """Count the tasks of a query of all callers: one by one only those of a context, and those that changed lately."""
        if query.context_id is not None or query.status_timestamp_after is not None:
            return sum(_matches(record, query) for record in self._by_sequence.values())
        return sum(self._states.values()) if query.state is None else self._states.get(query.state, 0)

    async def count(self) -> Mapping[TaskState, int]:
        self._evict()
        return dict(self._states)

    def check_reachable(self) -> None:
        pass

    async def probe(self) -> None:
        pass

    # -- push targets and owner requests -----------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        if task_id not in self._tasks:
            return False
        self._push_targets.setdefault(task_id, {})[target.config.id or ""] = target
        return True

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return tuple(self._push_targets.get(task_id, {}).values())

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        targets = self._push_targets.get(task_id, {})
        deleted = targets.pop(config_id, None) is not None
        if deleted and not targets:
            del self._push_targets[task_id]
        return deleted

    async def list_orphans(self) -> Sequence[str]:
        return ()

    async def claim(self, limit: int) -> Sequence[str]:
        records = [self._by_sequence[sequence] for sequence in self._queued[: max(limit, 0)]]
        del self._queued[: len(records)]
        for record in records:
            record.owner = self.owner_id
            self._requests.deliver(record.id)
        return [record.id for record in records]

    async def list_owned(self) -> Sequence[str]:
        owned = (record for record in self._tasks.values() if record.owner == self.owner_id)
        return [record.id for record in owned if record.state not in TERMINAL]

    async def count_queued(self) -> int:
        return len(self._queued)

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        record = self._tasks.get(request.task_id)
        if record is None or record.owner is None:
            return False
        self._requests.add(request)
        self._requests.deliver(record.id)
        return True

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        return self._requests.take(lambda task_id: self._tasks[task_id].owner == self.owner_id)

    async def announce(self, names: Sequence[str]) -> None:
        """Nothing: no other daemon can hear it."""

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        await anyio.sleep_forever()
        raise AssertionError("no other daemon can change this store")


def _matches(record: TaskRecord, query: TaskQuery) -> bool:
    """Whether it is a task of the query, whoever is its caller."""
    return (
        query.context_id in (None, record.context_id)
        and query.state in (None, record.state)
        and record.status_timestamp >= (query.status_timestamp_after or "")
    )


def _listed(record: TaskRecord) -> Listed:
    return Listed(record.id, record.context_id, record.state, record.sequence, record.scope, record.owner, record.parts)


def _index_key(scope: str, context_id: str | None, state: TaskState) -> _IndexKey:
    return (scope, state) if context_id is None else (scope, context_id, state)


def _index_keys(record: TaskRecord) -> tuple[_IndexKey, _IndexKey]:
    """The indexes that hold a task."""
    return (record.scope, record.state), (record.scope, record.context_id, record.state)


# The last events that the snapshots of tasks cover. A reader cut off just before such a snapshot, made when a task
# ends, reads them and goes on without a loss. Never part of a task.


_TASK_SHARE: Final = 4
"""The tail of one task takes at most this part of the total."""

_BUDGET_SHARE: Final = 16
"""All tails take at most this part of the memory budget."""

_TAIL_EVENT_BYTES: Final = 48
"""Bytes that an event takes beside its own."""

_TAIL_BYTES: Final = 512
"""Bytes that a tail takes beside its events."""


class _Tail(msgspec.Struct, gc=False):
    events: list[bytes]
    size: int = _TAIL_BYTES


@final
class EventTails:
    """One per memory store. Counts in `budget`. The tails to which nothing was added for the longest time are dropped first."""

    def __init__(self, limit: int, budget: MemoryBudget) -> None:
        self._limit = min(limit, budget.limit // _BUDGET_SHARE)
        self._budget = budget
        self._tails: dict[str, _Tail] = {}
        self._bytes = 0

    def get(self, task_id: str) -> Sequence[bytes]:
        """Events without gaps, the last of which is the last that the task's snapshot covers. None where none are kept."""
        tail = self._tails.get(task_id)
        return () if tail is None else tail.events

    def extend(self, task_id: str, events: Sequence[bytes]) -> None:
        """The task's snapshot covers these events now, which follow those that it covered before."""
        tail = self._tails.pop(task_id, None)
        before = 0 if tail is None else tail.size
        tail = self._tails[task_id] = tail or _Tail([])
        tail.events += events
        tail.size += sum(map(len, events)) + _TAIL_EVENT_BYTES * len(events)
        count = 0
        while tail.size > self._limit // _TASK_SHARE and count < len(tail.events):
            tail.size -= len(tail.events[count]) + _TAIL_EVENT_BYTES
            count += 1
        del tail.events[:count]
        self._count(tail.size - before)
        if self._bytes > self._limit:
            self.free(self._bytes - self._limit)

    def drop(self, task_id: str) -> None:
        """The task has no tail any more."""
        tail = self._tails.pop(task_id, None)
        if tail is not None:
            self._count(-tail.size)

    def free(self, size: int) -> int:
        """Drop tails until so many bytes are free; returns how many are."""
        before = self._bytes
        while self._tails and before - self._bytes < size:
            self.drop(next(iter(self._tails)))
        return before - self._bytes

    def _count(self, size: int) -> None:
        self._bytes += size
        self._budget.add("tasks", size)
