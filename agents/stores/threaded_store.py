"""What stores have in common that read in one thread and write in another: the calls, as jobs of these threads. Knows no SQL.

The event loop never waits for a disk or a server; and both event loops run the same code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from ...a2a.types import TaskPage, TaskQuery, TaskState
from ...lazy import anyio
from .checks import ReadPage, RetainedTasks, check_changes, page_bound
from .failures import damaged_task_error, log_failure
from .interface import (
    CommitRefusal,
    LoggedEvent,
    OwnerRequest,
    PushTarget,
    StoredTask,
    StoreError,
    TaskChange,
    Unserializable,
)
from .serialization import EncodedChange, encode, encode_change
from .worker_thread import WorkerThread

R = TypeVar("R")
"""What a read gets, such as a connection."""

W = TypeVar("W")
"""What a write gets, such as a connection in a transaction."""

R_contra = TypeVar("R_contra", contravariant=True)
W_contra = TypeVar("W_contra", contravariant=True)
T = TypeVar("T")

MAX_TOLD: Final = 1024
"""Damaged tasks that the log tells of when they are listed. Each is told once."""


class CommitRequest(msgspec.Struct, frozen=True):
    """Changes, each with its encoded form."""

    changes: Sequence[tuple[TaskChange, EncodedChange]]


class Reads(Protocol[R_contra]):
    """A store's module of functions that read. They run in the reader's thread."""

    def load_task(self, source: R_contra, task_id: str, /) -> StoredTask | None: ...
    def read_events(self, source: R_contra, task_id: str, after: int, limit: int, /) -> Sequence[LoggedEvent]: ...
    def list_tasks(self, source: R_contra, query: TaskQuery, bound: int, /) -> ReadPage: ...
    def count_states(self, source: R_contra, /) -> Mapping[TaskState, int]: ...
    def load_push_targets(self, source: R_contra, task_id: str, /) -> Sequence[PushTarget]: ...
    def list_owned_tasks(self, source: R_contra, owner_id: str, /) -> Sequence[str]: ...
    def has_queued(self, source: R_contra, /) -> bool: ...
    def count_queued(self, source: R_contra, /) -> int: ...


class Writes(Protocol[W_contra]):
    """A store's module of functions that write. They run in the writer's thread, each within a transaction."""

    def put_push_target(self, target: W_contra, task_id: str, push_target: PushTarget, body: bytes, /) -> bool: ...
    def delete_push_target(self, target: W_contra, task_id: str, config_id: str, /) -> bool: ...
    def insert_owner_request(self, target: W_contra, request: OwnerRequest, /) -> bool: ...


class OpenStore(Protocol):
    """What exists while a store is open. The writer's thread takes `CommitRequest` and functions of a `W`, and others if it
    likes; the reader's takes functions of an `R`. A closed one is not opened again."""

    @property
    def owner_id(self) -> str: ...

    @property
    def reader_thread(self) -> WorkerThread[Any]: ...  # Any: see above

    @property
    def writer_thread(self) -> WorkerThread[Any]: ...  # Any: see above

    def attach(self) -> None:
        """Take jobs from this event loop."""
        ...

    async def close(self) -> None:
        """Within a bounded time. Not cancelled."""
        ...

    def close_unattached(self) -> None: ...


S = TypeVar("S", bound=OpenStore)


class ThreadedStore(ABC, Generic[S, R, W]):
    """A `TaskStore` and its `EventLog`, but for what a store does in its own way. `label` names it in errors."""

    def __init__(self, label: str, reads: Reads[R], writes: Writes[W]) -> None:
        self._label = label
        self._reads = reads
        self._writes = writes
        self._retained = RetainedTasks()
        self._told_damaged: set[str] = set()
        self._opened: S | None = None

    @abstractmethod
    def _open(self) -> S:
        """Blocks. Raises `StoreError`, and `RuntimeError` if there is no thread; then nothing is left open."""

    @property
    def durable(self) -> bool:
        return True

    @property
    def event_log(self) -> ThreadedStore[S, R, W]:
        return self

    @property
    def owner_id(self) -> str:
        return self._open_store.owner_id

    @property
    def _open_store(self) -> S:
        if self._opened is None:
            raise StoreError(f"{self._label} is not open")
        return self._opened

    # -- open and close ----------------------------------------------------------------------------------------

    def open_early(self) -> None:
        try:
            self._opened = self._open()
        except RuntimeError as exc:
            raise StoreError(f"{self._label} needs threads, which the system does not provide") from exc

    def close_early(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close_unattached()

    async def open(self) -> None:
        if self._opened is None:
            await anyio.to_thread.run_sync(self.open_early)
        self._open_store.attach()

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with anyio.CancelScope(shield=True):  # `OpenStore.close` is bounded
                await opened.close()

    # -- jobs of the threads -----------------------------------------------------------------------------------

    async def _read(self, read: Callable[[R], T]) -> T:
        result: T = await self._open_store.reader_thread.run(read)
        return result

    async def _write(self, write: Callable[[W], T]) -> T:
        result: T = await self._open_store.writer_thread.run(write)
        return result

    async def _receive(self, request: object) -> Any:  # Any: its type depends on the request
        """What a write takes out of the store, which must reach the caller: the wait for it is not cancelled."""
        with anyio.CancelScope(shield=True):  # for one write
            return await self._open_store.writer_thread.run(request)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        check_changes(changes)
        encoded = [(change, encode_change(change)) for change in changes]
        valid = [(change, each) for change, each in encoded if isinstance(each, EncodedChange)]
        results = iter(await self._open_store.writer_thread.run(CommitRequest(valid)) if valid else ())
        return [each if isinstance(each, Unserializable) else next(results) for _, each in encoded]

    async def load(self, task_id: str) -> StoredTask | None:
        return await self._read(lambda source: self._reads.load_task(source, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        return await self._read(lambda source: self._reads.read_events(source, task_id, after, limit))

    def retain(self, task_id: str) -> None:
        self._retained.add(task_id)

    def release(self, task_id: str) -> None:
        self._retained.remove(task_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        read = await self._read(lambda source: self._reads.list_tasks(source, query, bound))
        for exc in read.damaged:
            if exc.task_id not in self._told_damaged and len(self._told_damaged) < MAX_TOLD:
                self._told_damaged.add(exc.task_id)
                log_failure(damaged_task_error(self._label, exc))
        return read.page

    async def count(self) -> Mapping[TaskState, int]:
        return await self._read(self._reads.count_states)

    def check_reachable(self) -> None:
        """Nothing: a file is reached or not."""

    async def probe(self) -> None:
        self.check_reachable()
        await self._write(lambda _: None)  # a transaction with nothing in it but its own mark, which goes to the disk

    @property
    def grace_seconds(self) -> float:
        return 0.0

    def lease_end(self) -> float:
        return math.inf

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""

    # -- push targets ------------------------------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        body = encode(target)
        return await self._write(lambda store: self._writes.put_push_target(store, task_id, target, body))

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda source: self._reads.load_push_targets(source, task_id))

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        return await self._write(lambda store: self._writes.delete_push_target(store, task_id, config_id))

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_owned(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(lambda source: self._reads.list_owned_tasks(source, owner_id))

    async def count_queued(self) -> int:
        return await self._read(self._reads.count_queued)

    async def claim(self, limit: int) -> Sequence[str]:
        if limit < 1 or not await self._read(self._reads.has_queued):  # an idle daemon never writes
            return ()
        claimed: Sequence[str] = await self._receive(self._claim_request(limit))
        return claimed

    @abstractmethod
    def _claim_request(self, limit: int) -> object:
        """A job of the writer's thread that makes this daemon the owner of queued tasks, and returns their ids."""

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        return await self._write(lambda store: self._writes.insert_owner_request(store, request))
