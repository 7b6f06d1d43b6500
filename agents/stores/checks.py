"""Rules and limits that every store applies alike. Stores nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, final

import msgspec

from ...a2a.task import size_of_task
from ...a2a.types import MAX_PAGE_SIZE, STATE_NUMBERS, Task, TaskPage, TaskQuery, TaskState, UnreadableTask
from .failures import DamagedRecordError
from .serialization import decode_current_task

# Counts who reads the log of a task, so that no store deletes it meanwhile. Deletes nothing itself.


@final
class RetainedTasks:
    """Changed on the event loop. All else may be used from any thread."""

    def __init__(self) -> None:
        self._readers: dict[str, int] = {}

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._readers

    def __len__(self) -> int:
        return len(self._readers)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._readers])

    def add(self, task_id: str) -> None:
        """One more reader."""
        self._readers[task_id] = self._readers.get(task_id, 0) + 1

    def remove(self, task_id: str) -> bool:
        """One reader less. True if that was the last one."""
        self._readers[task_id] -= 1
        if self._readers[task_id]:
            return False
        del self._readers[task_id]
        return True


MAX_PAGE_BYTES: Final = 10 * 1024 * 1024
"""Size of the tasks on one page, unless one alone is larger."""

MAX_READ_BYTES: Final = 4 * 1024 * 1024
"""Approximate size of what one `EventLog.read` returns."""

EXPIRED_BATCH: Final = 200
"""Tasks that a shared store deletes in one transaction. Commits may run between two of them."""

COVERED_EVENTS_KEPT: Final = 1024
"""Events kept although a snapshot covers them: a daemon that follows a task reads it a few times a second only."""

_MAX_SEQUENCE: Final = 2**63 - 1
_MAX_SEQUENCE_DIGITS: Final = len(str(_MAX_SEQUENCE))


class Retention(msgspec.Struct, frozen=True):
    """Limits of ended tasks in a store: at most `max_tasks` of them, and for each at most `max_seconds` (None: no limit).

    The store may have more until it deletes the next ones. Of daemons on one store, the lowest limits count.
    """

    max_tasks: int = 10_000
    max_seconds: float | None = 24 * 3600.0

    def ended_before(self, now: float) -> float:
        """Tasks that ended before this time, in seconds as `now`, are too old."""
        return -math.inf if self.max_seconds is None else now - self.max_seconds


DEFAULT_RETENTION: Final = Retention()


class Listed(msgspec.Struct, frozen=True):
    """A task that belongs into a list. `read()` gives its snapshot and the events after it, and raises `DamagedRecordError`."""

    id: str
    context_id: str
    state: TaskState | None
    sequence: int
    scope: str
    owner: str | None
    read: Callable[[], tuple[bytes, Sequence[bytes]]]


class ReadPage(msgspec.Struct, frozen=True):
    """A page, and what is wrong with the tasks that could not be read."""

    page: TaskPage
    damaged: tuple[DamagedRecordError, ...] = ()


def read_page(listed: Iterable[Listed], query: TaskQuery, total: int, *, is_cut: bool = False) -> ReadPage:
    """The first of the listed tasks, up to `MAX_PAGE_BYTES` of them. One that is damaged is left out.

    At most one more is taken from the iterable than is on the page, and at most one more is read. `is_cut`: more follow.
    """
    tasks: list[Task] = []
    holders: list[tuple[str, str | None]] = []
    unreadable: list[UnreadableTask] = []
    damaged: list[DamagedRecordError] = []
    size, seen, token, last = 0, 0, "", ""
    for each in listed:
        if seen == query.page_size:
            token = last
            break
        try:
            task = decode_current_task(*each.read(), each.id, include_artifacts=query.include_artifacts)
        except DamagedRecordError as exc:
            damaged.append(exc)
            if each.state is not None:
                unreadable.append(UnreadableTask(each.id, each.context_id, each.state))
        else:
            size += size_of_task(task)
            if tasks and size > MAX_PAGE_BYTES:
                token = last
                break
            tasks.append(task)
            holders.append((each.scope, each.owner))
        seen, last = seen + 1, str(each.sequence)
    token = token or (last if is_cut else "")
    scopes, owners = (tuple(scope for scope, _ in holders), tuple(owner for _, owner in holders))
    return ReadPage(TaskPage(tuple(tasks), token, total, tuple(unreadable), scopes, owners), tuple(damaged))


def by_state(counts: Mapping[int, int]) -> dict[TaskState, int]:
    """Numbers of tasks by their state, of those by the state's number."""
    return {state: int(counts[number]) for state, number in STATE_NUMBERS.items() if number in counts}


def up_to_max_read_bytes(events: Iterable[bytes]) -> list[bytes]:
    """At least one of the events, and no more once they reach `MAX_READ_BYTES`."""
    taken: list[bytes] = []
    size = 0
    for event in events:
        taken.append(event)
        size += len(event)
        if size >= MAX_READ_BYTES:
            break
    return taken


def page_bound(query: TaskQuery) -> int:
    """The sequence number below which the page's tasks are. A page token is that of the last task of the page before.

    Raises `ValueError` for a token that no store made, and for a bad page size.
    """
    if not 1 <= query.page_size <= MAX_PAGE_SIZE:
        raise ValueError(f"a page has 1 to {MAX_PAGE_SIZE} tasks")
    token = query.page_token
    if not token:
        return _MAX_SEQUENCE
    is_number = token.isascii() and token.isdigit() and token[0] != "0" and len(token) <= _MAX_SEQUENCE_DIGITS
    if not is_number or int(token) > _MAX_SEQUENCE:
        raise ValueError("the page token is not one of this store")
    return int(token)
