"""Writes everything. What is queued goes into one transaction, which is one call of a script.

Runs in the writer's thread. Transactions are numbered, and the server keeps the number of the last one with its reply. So one
whose reply was lost is sent again: if it was made, the server only repeats the reply. One that reaches the server late, after
a later one, is refused by it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import msgspec
import redis

from ....a2a.types import STATE_NUMBERS
from ..checks import EXPIRED_BATCH, RetainedTasks, Retention
from ..failures import DamagedRecordError
from ..interface import (
    CommitConflict,
    CommitRefusal,
    DamagedTask,
    OwnerRequest,
    StoreError,
    StoreUnavailableError,
    TaskChange,
)
from ..serialization import EncodedChange
from ..server_store import ServerLink
from ..threaded_store import (
    Announce,
    ClaimRequest,
    CommitRequest,
    DeleteExpired,
    DeletePushTarget,
    Job,
    Probe,
    PutPushTarget,
    SendRequest,
    TakeRequest,
    WriteJobs,
    WriteRequest,
)
from .reader import packed_text, to_bytes
from .schema import VERSION
from .scripts import WRITING, pack, packed_bytes
from .session import Session, store_error, translate_errors

LEASE_MS: Final = 4000
"""How long a daemon counts as alive after its last transaction. Others look once a second, and take over within 5 seconds."""

SURE_SECONDS: Final = 3.0
"""How long after it has begun its last transaction a daemon may be sure of that, by a clock of its own."""

MAX_TRANSACTION_BYTES: Final = 32 * 1024 * 1024
"""A transaction takes no further job once it has this size."""

MAX_ARGUMENT_BYTES: Final = 512 * 1000 * 1000
"""The server takes no larger one (`proto-max-bulk-len`)."""


EVENTS_SECONDS: Final = 60.0
"""How long the events of a task that has ended are kept, for those who were cut off just before. Later they get the task."""


class Operation(msgspec.Struct, frozen=True):
    """One operation of the script, and what the server's result is for the caller.

    `grows` says that it takes memory: it fails where the server has none. `changes` and `creates` are the ids of tasks.
    """

    values: tuple[Any, ...]  # Any: what `pack` takes
    result: Callable[[Any], object]  # Any: bytes, numbers, None, lists of them
    size: int = 0
    grows: bool = False
    changes: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()


def _commit(request: CommitRequest) -> Operation:
    changes = request.changes

    def refusals(refused: Sequence[tuple[int, int, bytes | None]]) -> list[CommitRefusal | None]:
        found = {place: _refusal(changes[place][0], generation, owner) for place, generation, owner in refused}
        return [found.get(place) for place in range(len(changes))]

    encoded = tuple(_encoded(change, each) for change, each in changes)
    size = sum(len(each.snapshot or b"") + sum(map(len, each.events)) + 1024 for _, each in changes)
    size += sum(len(request.body) for change, _ in changes for request in change.requests)
    known = tuple(change.task_id for change, _ in changes if change.expected_generation)
    new = tuple(change.task_id for change, _ in changes if not change.expected_generation)
    return Operation(("commit", encoded), refusals, size, grows=True, changes=known, creates=new)


def _refusal(change: TaskChange, generation: int, owner: bytes | None) -> CommitRefusal:
    if generation < 0:
        return DamagedTask(str(DamagedRecordError("a key", change.task_id)))
    return CommitConflict(generation, None if owner is None else owner.decode())


def _encoded(change: TaskChange, encoded: EncodedChange) -> tuple[Any, ...]:  # Any: as above; false stands for None
    covered = change.generation if change.snapshot is not None else 1
    return (
        change.task_id,
        change.expected_generation,
        change.generation,
        change.scope,
        change.context_id,
        str(STATE_NUMBERS[change.state]),
        change.status_timestamp.partition("\0")[0],  # NUL ends it in the indexes
        change.owner or False,
        change.previous_owner or False,
        False if encoded.snapshot is None else (packed_bytes(encoded.snapshot), covered),
        tuple(map(packed_bytes, encoded.events)),
        tuple(map(packed_request, change.requests)),
        bool(change.events),
    )


def packed_request(request: OwnerRequest) -> msgspec.Raw:
    """Encode a request as the script keeps it."""
    return packed_bytes(to_bytes(request.kind) + b"\0" + request.body)


def _requests(taken: Sequence[tuple[int, bytes, bytes]]) -> list[OwnerRequest]:
    found: list[OwnerRequest] = []
    for _, task_id, member in sorted(taken, key=lambda each: each[0]):
        kind, _, body = member.partition(b"\0")
        found.append(OwnerRequest(task_id.decode(), kind.decode(errors="replace"), body))
    return found


def _texts(found: Sequence[bytes]) -> list[str]:
    return [each.decode() for each in found]


def _is_batch(deleted: int) -> bool:
    return deleted == EXPIRED_BATCH


NOTHING: Final = Operation(("nothing",), bool)
LEAVE: Final = Operation(("leave",), bool)
FORGET_EVENTS: Final = Operation(("forget_events", int(EVENTS_SECONDS * 1000), EXPIRED_BATCH), _is_batch)
"""Deletes the events of some tasks that ended a while ago, where their snapshots cover them. Whether there may be more."""


@final
class RedisWriter:
    """The only writer of one daemon, whose name is `owner_id`. `clock` is in seconds since 1970; None is that of the server."""

    def __init__(
        self, label: str, retention: Retention, retained: RetainedTasks, clock: Callable[[], float] | None
    ) -> None:
        self.owner_id: Final = os.urandom(8).hex()
        self._label = label
        self._retention = retention
        self._retained = retained
        self._clock = clock
        self._transactions = 0
        self._doubtful = 0
        self._abandoned: set[str] = set()

    def begin(self, session: Session) -> None:
        """Be alive, before there are jobs. Raises `redis.RedisError`."""
        WRITING.run(session, self._transaction([NOTHING]))

    def process(self, link: ServerLink[Session], jobs: WriteJobs) -> None:
        """Run the jobs in order, as many in one transaction as can be. Those of a transaction that fails are told so by their
        failure."""
        waiting: list[tuple[Job[WriteRequest], Operation]] = []
        for job in jobs:
            operation = self._operation(job.request)
            if sum(each.size for _, each in waiting) + operation.size > MAX_TRANSACTION_BYTES:
                self._run_waiting(link, waiting)
            waiting.append((job, operation))
        self._run_waiting(link, waiting)

    def _operation(self, request: WriteRequest) -> Operation:
        match request:
            case CommitRequest():
                return _commit(request)
            case ClaimRequest(limit):
                return Operation(("claim", limit), _texts)
            case TakeRequest():
                return Operation(("take",), _requests)
            case PutPushTarget(task_id, config_id, body):
                put = ("put_target", packed_text(task_id), packed_text(config_id), packed_bytes(body))
                return Operation(put, bool, grows=True)
            case DeletePushTarget(task_id, config_id):
                return Operation(("delete_target", packed_text(task_id), packed_text(config_id)), bool)
            case SendRequest(sent):
                return Operation(("request", packed_text(sent.task_id), packed_request(sent)), bool, grows=True)
            case Announce(names):
                return Operation(("announce", tuple(map(packed_text, names))), bool)
            case DeleteExpired():
                return self._expire()
            case Probe():
                return Operation(("nothing",), bool, grows=True)  # fails where nothing can be committed

    def _expire(self) -> Operation:
        kept, age = self._retention, self._retention.max_seconds
        age_ms = False if age is None else age * 1000
        retained = tuple(map(packed_text, self._retained))
        return Operation(("expire", kept.max_tasks, age_ms, EXPIRED_BATCH, retained), _is_batch)

    def delete_expired(self, link: ServerLink[Session]) -> bool:
        """Delete a batch of tasks, and of events. Returns whether there may be more. Raises `StoreError`."""
        results = self.write(link, [self._expire(), FORGET_EVENTS])
        for result in results:
            if isinstance(result, StoreError):
                raise result
        return any(results)

    def _run_waiting(self, link: ServerLink[Session], waiting: list[tuple[Job[WriteRequest], Operation]]) -> None:
        """One transaction."""
        try:
            results = self.write(link, [request for _, request in waiting]) if waiting else ()
            for (job, _), result in zip(waiting, results, strict=True):
                if isinstance(result, StoreError):
                    job.failure = result
                else:
                    job.result = result
        except StoreError as exc:
            for job, _ in waiting:
                job.failure = exc
        waiting.clear()

    def write(self, link: ServerLink[Session], requests: Sequence[Operation]) -> list[object]:
        """One transaction, and the results of its requests; a `StoreError` for one that failed alone. Raises `StoreError`."""
        transaction = self._transaction(requests)
        label = self._label
        if len(transaction) > MAX_ARGUMENT_BYTES:
            raise StoreError(f"{label} takes at most {MAX_ARGUMENT_BYTES} bytes at once")
        sent = False

        def send(session: Session) -> Sequence[Any]:  # Any: as in `Operation.result`
            nonlocal sent
            sent = True
            reply: Sequence[Any] = WRITING.run(session, transaction)
            return reply

        try:
            with translate_errors(label):
                results = link.run(send)
        except StoreUnavailableError:
            self._give_up(requests, sent=sent)
            raise
        self._doubtful = 0
        self._abandoned.clear()
        return [
            store_error(label, result) if isinstance(result, redis.ResponseError) else request.result(result)
            for request, result in zip(requests, results, strict=True)
        ]

    def _transaction(self, requests: Sequence[Operation]) -> bytes:
        self._transactions += 1
        return pack(
            (
                VERSION,
                self.owner_id,
                self._transactions,
                LEASE_MS,
                False if self._clock is None else int(self._clock() * 1000),
                any(request.grows for request in requests),
                self._doubtful or False,
                tuple(map(packed_text, self._abandoned)),
                [request.values for request in requests],
            )
        )

    def _give_up(self, requests: Sequence[Operation], *, sent: bool) -> None:
        """Note failed writes whose outcome is unknown. Their tasks get the name of a dead daemon as owner, so that they are taken
        over as they are in the store. Tasks and requests that were given to this daemon go back."""
        for request in requests:
            self._abandoned.update(request.changes)
            if sent:
                self._abandoned.update(request.creates)
        if sent and not self._doubtful:
            self._doubtful = self._transactions
