"""Tasks in this process' memory, gone with it. Never waits.

A task at rest is one object and a few bytes strings, which the garbage collector does not look at. Tasks that have ended
go when they are too old, too many or too large together, the oldest first; others never do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final, final

import msgspec

from ..model.draft import fold
from ..model.states import TERMINAL
from ..model.types import Task, TaskState
from .checks import KEEP_ENDED, KEEP_SECONDS, READ_BYTES, check, conflict, number_below
from .interface import (
    Change,
    Listed,
    Logged,
    LogMovedError,
    PushTarget,
    Query,
    Refusal,
    Stored,
    StoreFullError,
    UnstorableError,
)
from .serialization import Packed, event_from, numbered, pack, pack_change, task_after, task_from
from .task_index import TaskIndex

MOST_LIVE: Final = 100_000
"""Tasks that have not ended. More are refused."""

KEEP_ENDED_BYTES: Final = 256 * 1024 * 1024
"""What all tasks that have ended may take together."""

MOST_LOGGED: Final = 65_536
"""Events behind a task's snapshot. When there are more, the snapshot is brought up to them."""

MOST_LOGGED_BYTES: Final = 64 * 1024 * 1024


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a store keeps; the ages in seconds, the sizes in bytes."""

    live: int = MOST_LIVE
    ended: int = KEEP_ENDED
    ended_bytes: int = KEEP_ENDED_BYTES
    ended_seconds: float = KEEP_SECONDS
    logged: int = MOST_LOGGED
    logged_bytes: int = MOST_LOGGED_BYTES


class _Kept(msgspec.Struct, gc=False):
    """One task. `number` is that of its last change among all of them; `log` are the events behind the snapshot."""

    id: str
    scope: str
    context_id: str
    state: TaskState
    updated: str
    number: int
    generation: int
    owner: str | None
    snapshot: bytes
    log: list[bytes] | None = None
    log_bytes: int = 0

    @property
    def reflects(self) -> int:
        return self.generation - len(self.log or ())

    @property
    def size(self) -> int:
        return len(self.snapshot) + self.log_bytes


@final
class MemoryStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds and never goes back."""

    def __init__(self, limits: StoreLimits | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._tasks: dict[str, _Kept] = {}
        self._by_number: dict[int, _Kept] = {}
        self._shelves: dict[tuple[str, TaskState] | tuple[str, str, TaskState], TaskIndex] = {}
        self._targets: dict[str, dict[str, PushTarget]] = {}
        self._asked: dict[tuple[str, str], None] = {}
        self._last_number = 0
        self._ended = 0
        self._ended_bytes = 0
        self._ended_order: deque[int] = deque()  # numbers of change; one that is no task's any more counts for nothing
        self._ended_times: deque[float] = deque()

    @property
    def durable(self) -> bool:
        return False

    @property
    def owner(self) -> str:
        return "memory"

    @property
    def events(self) -> MemoryStore:
        return self

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> Sequence[Refusal | None]:
        check(changes)
        results = [self._commit(change) for change in changes]
        self._evict()
        return results

    def _commit(self, change: Change) -> Refusal | None:
        kept = self._tasks.get(change.task_id)
        refusal = conflict(change, kept, self.owner)
        if refusal is not None:
            return refusal
        if kept is None and len(self._tasks) - self._ended >= self._limits.live:
            return StoreFullError(change.task_id)
        packed = pack_change(change, covered=False)
        if isinstance(packed, UnstorableError):
            return packed
        if kept is None:
            self._create(change, packed)
        else:
            self._change(kept, change, packed)
        return None

    def _create(self, change: Change, packed: Packed) -> None:
        kept = _Kept(
            change.task_id,
            change.scope,
            change.context_id,
            change.state,
            change.updated,
            0,
            change.generation,
            change.owner,
            packed.snapshot or b"",
        )
        self._append(kept, packed.events)
        self._tasks[kept.id] = kept
        self._put_in_order(kept)

    def _change(self, kept: _Kept, change: Change, packed: Packed) -> None:
        if kept.state in TERMINAL:
            self._ended_bytes -= kept.size
        kept.owner = change.owner
        if change.owner is None:
            self._forget_asked(kept.id)
        kept.generation = change.generation
        if packed.snapshot is not None:
            kept.snapshot, kept.log, kept.log_bytes = packed.snapshot, None, 0
        else:
            self._append(kept, packed.events)
        if kept.state in TERMINAL:
            self._ended_bytes += kept.size
        if change.events:
            self._take_out_of_order(kept)
            kept.state, kept.updated = change.state, change.updated
            self._put_in_order(kept)

    def _append(self, kept: _Kept, events: Sequence[bytes]) -> None:
        if not events:
            return
        kept.log = kept.log or []
        kept.log += events
        kept.log_bytes += sum(map(len, events))
        if len(kept.log) > self._limits.logged or kept.log_bytes > self._limits.logged_bytes:
            kept.snapshot = pack(fold(task_from(kept.snapshot), map(event_from, kept.log)))
            kept.log, kept.log_bytes = None, 0

    # -- the order of changes ----------------------------------------------------------------------------------

    def _put_in_order(self, kept: _Kept) -> None:
        self._last_number += 1
        kept.number = self._last_number
        self._by_number[kept.number] = kept
        for key in _keys(kept):
            self._shelves.setdefault(key, TaskIndex()).add(kept.number, kept.updated)
        if kept.state in TERMINAL:
            self._ended += 1
            self._ended_bytes += kept.size
            self._ended_order.append(kept.number)
            self._ended_times.append(self._clock())

    def _take_out_of_order(self, kept: _Kept) -> None:
        del self._by_number[kept.number]
        for key in _keys(kept):
            shelf = self._shelves[key]
            shelf.remove(kept.number, kept.updated)
            if not len(shelf):
                del self._shelves[key]
        if kept.state in TERMINAL:
            self._ended -= 1
            self._ended_bytes -= kept.size

    def _evict(self) -> None:
        """Let go of what has ended and is too old, too much, or too large."""
        limits = self._limits
        oldest = self._clock() - limits.ended_seconds
        while self._ended_order and (
            self._ended_times[0] < oldest or self._ended > limits.ended or self._ended_bytes > limits.ended_bytes
        ):
            self._ended_times.popleft()
            kept = self._by_number.get(self._ended_order.popleft())
            if kept is not None:
                self._take_out_of_order(kept)
                del self._tasks[kept.id]
                self._targets.pop(kept.id, None)
                self._forget_asked(kept.id)

    # -- reading -----------------------------------------------------------------------------------------------

    async def load(self, task_id: str) -> Stored | None:
        self._evict()
        kept = self._tasks.get(task_id)
        if kept is None:
            return None
        later = numbered(kept.reflects + 1, kept.log or [])
        return Stored(task_from(kept.snapshot), kept.reflects, later, kept.scope, kept.owner)

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[Logged]:
        kept = self._tasks.get(task_id)
        if kept is None or after >= kept.generation:
            return ()
        if after < kept.reflects:
            raise LogMovedError(task_id, kept.generation)
        start = after - kept.reflects
        return numbered(after + 1, _some(islice(kept.log or [], start, start + limit)))

    async def list(self, query: Query) -> Listed:
        below = number_below(query)
        self._evict()
        shelves = [
            shelf
            for state in (TaskState if query.state is None else (query.state,))
            if (shelf := self._shelves.get(_key(query.scope, query.context_id, state))) is not None
        ]
        order = merge(*(shelf.down(below, query.after) for shelf in shelves), reverse=True)
        kept = (self._by_number[number] for number in order)
        found = [*islice((one for one in kept if query.after is None or one.updated >= query.after), query.size + 1)]
        page = found[: query.size]
        return Listed(
            tuple(_task(one, artifacts=query.artifacts) for one in page),
            str(page[-1].number) if len(found) > len(page) else "",
            sum(shelf.count(query.after) for shelf in shelves),
        )

    # -- what belongs to a task --------------------------------------------------------------------------------

    async def put_target(self, task_id: str, target: PushTarget) -> bool:
        if task_id not in self._tasks:
            return False
        self._targets.setdefault(task_id, {})[target.config.id or ""] = target
        return True

    async def targets(self, task_id: str) -> Sequence[PushTarget]:
        return tuple(self._targets.get(task_id, {}).values())

    async def drop_target(self, task_id: str, config_id: str) -> bool:
        targets = self._targets.get(task_id, {})
        dropped = targets.pop(config_id, None) is not None
        if dropped and not targets:
            del self._targets[task_id]
        return dropped

    async def orphans(self) -> Sequence[str]:
        return ()

    async def ask_owner(self, task_id: str, what: str) -> bool:
        kept = self._tasks.get(task_id)
        if kept is None or kept.owner is None:
            return False
        self._asked[task_id, what] = None
        return True

    async def asked(self) -> Sequence[tuple[str, str]]:
        asked = tuple(self._asked)
        self._asked.clear()
        return asked

    def _forget_asked(self, task_id: str) -> None:
        if self._asked:
            self._asked = {ask: None for ask in self._asked if ask[0] != task_id}

    def moves(self) -> int:
        return 0


def _key(scope: str, context_id: str | None, state: TaskState) -> tuple[str, TaskState] | tuple[str, str, TaskState]:
    return (scope, state) if context_id is None else (scope, context_id, state)


def _keys(kept: _Kept) -> tuple[tuple[str, TaskState], tuple[str, str, TaskState]]:
    """The shelves on which a task stands."""
    return (kept.scope, kept.state), (kept.scope, kept.context_id, kept.state)


def _task(kept: _Kept, *, artifacts: bool) -> Task:
    return task_after(kept.snapshot, kept.log or [], artifacts=artifacts)


def _some(events: Iterator[bytes]) -> list[bytes]:
    """As many of them as one reader may want to hold, and at least one."""
    some: list[bytes] = []
    size = 0
    for event in events:
        some.append(event)
        size += len(event)
        if size >= READ_BYTES:
            break
    return some
