"""Writes everything. What is queued goes into one transaction, which is one call of a script.

Runs in the writer's thread. Transactions are numbered, and the server keeps the number of the last one with its reply. So one
whose reply was lost is sent again: if it was made, the server only repeats the reply. One that reaches the server late, after
a later one, is refused by it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec
import redis

from ....a2a.types import STATE_NUMBERS
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
from ..server_link import ServerLink
from ..threaded_store import CommitRequest
from ..worker_thread import Job
from .address import Address
from .connection import Session
from .failures import store_error, translate_errors
from .read_scripts import WRITING
from .reader import packed_text, to_bytes
from .schema import VERSION
from .script import pack, packed_bytes

LEASE_MS: Final = 4000
"""How long a daemon counts as alive after its last transaction. Others look once a second, and take over within 5 seconds."""

SURE_SECONDS: Final = 3.0
"""How long after it has begun its last transaction a daemon may be sure of that, by a clock of its own."""

MAX_TRANSACTION_BYTES: Final = 32 * 1024 * 1024
"""A transaction takes no further job once it has this size."""

MAX_ARGUMENT_BYTES: Final = 512 * 1000 * 1000
"""The server takes no larger one (`proto-max-bulk-len`)."""


class WriteRequest(msgspec.Struct, frozen=True):
    """One operation of the script, and what the server's result is for the caller.

    `grows` says that it takes memory: it fails where the server has none. `changes` and `creates` are the ids of tasks.
    """

    operation: tuple[Any, ...]  # Any: what `pack` takes
    result: Callable[[Any], object]  # Any: bytes, numbers, None, lists of them
    size: int = 0
    grows: bool = False
    changes: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()


Run: TypeAlias = Callable[[WriteRequest], Any]
"""Makes a transaction of one request, and returns its result. Raises `StoreError`."""

AnyRequest: TypeAlias = CommitRequest | WriteRequest | Callable[[Run], object]


def _commit(request: CommitRequest) -> WriteRequest:
    changes = request.changes

    def refusals(refused: Sequence[tuple[int, int, bytes | None]]) -> list[CommitRefusal | None]:
        found = {place: _refusal(changes[place][0], generation, owner) for place, generation, owner in refused}
        return [found.get(place) for place in range(len(changes))]

    encoded = tuple(_encoded(change, each) for change, each in changes)
    size = sum(len(each.snapshot or b"") + sum(map(len, each.events)) + 1024 for _, each in changes)
    size += sum(len(request.body) for change, _ in changes for request in change.requests)
    known = tuple(change.task_id for change, _ in changes if change.expected_generation)
    new = tuple(change.task_id for change, _ in changes if not change.expected_generation)
    return WriteRequest(("commit", encoded), refusals, size, grows=True, changes=known, creates=new)


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
    """What the script keeps of a request."""
    return packed_bytes(to_bytes(request.kind) + b"\0" + request.body)


def _requests(taken: Sequence[tuple[int, bytes, bytes]]) -> list[OwnerRequest]:
    found: list[OwnerRequest] = []
    for _, task_id, member in sorted(taken, key=lambda each: each[0]):
        kind, _, body = member.partition(b"\0")
        found.append(OwnerRequest(task_id.decode(), kind.decode(errors="replace"), body))
    return found


TAKE: Final = WriteRequest(("take",), _requests)
NOTHING: Final = WriteRequest(("nothing",), bool)
PROBE: Final = WriteRequest(("nothing",), bool, grows=True)
"""Fails where nothing can be committed."""

LEAVE: Final = WriteRequest(("leave",), bool)


def claim_request(limit: int) -> WriteRequest:
    return WriteRequest(("claim", limit), lambda ids: [each.decode() for each in ids])


def forget_request(age_seconds: float, limit: int) -> WriteRequest:
    return WriteRequest(("forget_events", int(age_seconds * 1000), limit), int)


def delete_request(ids: Sequence[bytes]) -> WriteRequest:
    return WriteRequest(("delete", tuple(map(packed_bytes, ids))), bool)


@final
class RedisWriter:
    """The only writer of one daemon, whose name is `owner_id`. `clock` is in seconds since 1970; None is that of the server."""

    def __init__(self, address: Address, clock: Callable[[], float] | None) -> None:
        self.owner_id: Final = os.urandom(8).hex()
        self._address = address
        self._clock = clock
        self._transactions = 0
        self._doubtful = 0
        self._abandoned: set[str] = set()

    def begin(self, session: Session) -> None:
        """Be alive, before there are jobs. Raises `redis.RedisError`."""
        WRITING.run(session, self._address.key("store"), self._transaction([NOTHING]))

    def process(self, link: ServerLink[Session], jobs: Sequence[Job[AnyRequest]]) -> None:
        """Run the jobs in order, as many in one transaction as can be; a function runs alone. Those of a transaction that fails
        are told so by their failure."""
        waiting: list[tuple[Job[AnyRequest], WriteRequest]] = []
        for job in jobs:
            if isinstance(job.request, (CommitRequest, WriteRequest)):
                request = _commit(job.request) if isinstance(job.request, CommitRequest) else job.request
                if sum(each.size for _, each in waiting) + request.size > MAX_TRANSACTION_BYTES:
                    self._run_waiting(link, waiting)
                waiting.append((job, request))
            else:
                self._run_waiting(link, waiting)
                job.run(lambda request: self._run_alone(link, request))
        self._run_waiting(link, waiting)

    def _run_alone(self, link: ServerLink[Session], request: AnyRequest) -> object:
        assert callable(request), "others are in one transaction with what is queued"

        def write(each: WriteRequest) -> object:
            (result,) = self.write(link, [each])
            if isinstance(result, StoreError):
                raise result
            return result

        return request(write)

    def _run_waiting(self, link: ServerLink[Session], waiting: list[tuple[Job[AnyRequest], WriteRequest]]) -> None:
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

    def write(self, link: ServerLink[Session], requests: Sequence[WriteRequest]) -> list[object]:
        """One transaction, and the results of its requests; a `StoreError` for one that failed alone. Raises `StoreError`."""
        transaction = self._transaction(requests)
        label = self._address.label
        if len(transaction) > MAX_ARGUMENT_BYTES:
            raise StoreError(f"{label} takes at most {MAX_ARGUMENT_BYTES} bytes at once")
        sent = False

        def send(session: Session) -> Sequence[Any]:  # Any: as in `WriteRequest.result`
            nonlocal sent
            sent = True
            reply: Sequence[Any] = WRITING.run(session, self._address.key("store"), transaction)
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

    def _transaction(self, requests: Sequence[WriteRequest]) -> bytes:
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
                [request.operation for request in requests],
            )
        )

    def _give_up(self, requests: Sequence[WriteRequest], *, sent: bool) -> None:
        """Their callers are told that it failed, and nobody knows whether it did. So the tasks get the name of a daemon that is
        dead, and somebody takes them over as they are in the store; what was given to this daemon goes back."""
        for request in requests:
            self._abandoned.update(request.changes)
            if sent:
                self._abandoned.update(request.creates)
        if sent and not self._doubtful:
            self._doubtful = self._transactions
