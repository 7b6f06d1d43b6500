"""Writes tasks and events. All queued writes of a daemon go into one transaction, with one notification of the others.

Runs in the writer's thread. A transaction that fails changes nothing and fails for all its writes. One whose end nobody heard
of is looked up by the mark that it leaves before anything is written again. (The server's own numbers of transactions do not
tell: after a crash it gives a number again whose transaction left no trace.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar, final

import msgspec
import psycopg

from ..interface import OwnerRequest, StoreUnavailableError
from ..threaded_store import CommitRequest
from ..worker_thread import Job
from . import statements
from .batch import Batch
from .failures import RETRIED
from .link import Link
from .notices import Notice
from .schema import AnyConnection
from .session import OwnerNames, former_names_held, shares_sessions, take_name

T = TypeVar("T")

MAX_TRIES: Final = 5
"""How often a transaction that met another daemon's is begun."""

CHANNEL: Final = "discreet"
"""Where daemons tell each other what they committed; see `Notice`."""


class ClaimRequest(msgspec.Struct, frozen=True):
    """Claims tasks, at most so many."""

    limit: int


class TakeRequest(msgspec.Struct, frozen=True):
    """Takes the requests to this daemon, under its present name."""


WriteRequest: TypeAlias = CommitRequest | ClaimRequest | TakeRequest | Callable[[Batch], object]


@final
class PostgresWriter:
    """The only writer of one daemon. `clock` is as that of `Batch`. `owner_id` is its present name."""

    def __init__(
        self, label: str, names: OwnerNames, owner_id: str, pid: int, clock: Callable[[], float] | None
    ) -> None:
        self._label = label
        self._names = names
        self.owner_id = owner_id
        self._pid = pid
        self._clock = clock
        self._transactions = 0
        self._in_doubt: int | None = None
        self._former_names: list[str] = []
        self._abandoned: set[str] = set()
        self._unseen_claims: set[str] = set()
        self._unseen_requests: list[tuple[int, list[OwnerRequest]]] = []

    def process(self, link: Link, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Run the jobs in order, all in one transaction. Raises `StoreError` and `psycopg.Error`."""
        tries = 0
        while True:
            tries += 1
            try:
                return link.run(lambda session: session.run(lambda connection: self._attempt(connection, jobs)))
            except RETRIED:
                if tries == MAX_TRIES:
                    raise
            except StoreUnavailableError:
                self._abandon(jobs)
                raise

    def _abandon(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Their callers are told that it failed. So the tasks of commits keep the name of a daemon that is dead, and somebody
        takes them over as they are in the store. What was claimed or taken, if it was, is given back."""
        in_doubt, self._in_doubt = self._in_doubt, None
        for job in jobs:
            match job.request:
                case CommitRequest(changes):
                    self._abandoned.update(change.task_id for change, _ in changes)
                case ClaimRequest() if in_doubt is not None:
                    self._unseen_claims.update(job.result)
                case TakeRequest() if in_doubt is not None:
                    self._unseen_requests.append((in_doubt, job.result))
                case _:
                    pass

    def _attempt(self, connection: AnyConnection, jobs: Sequence[Job[WriteRequest]]) -> None:
        if self._in_doubt is not None and statements.last_transaction(connection, self._names.base) == self._in_doubt:
            self._in_doubt = None
            return
        self._in_doubt = None
        try:
            self._write(connection, jobs)
        except BaseException:
            with suppress(psycopg.Error):  # a lost one is rolled back by the server
                connection.rollback()
            if not connection.closed:
                self._in_doubt = None
            raise
        self._in_doubt = None

    def _write(self, connection: AnyConnection, jobs: Sequence[Job[WriteRequest]]) -> None:
        batch = Batch(connection, self._names, self.owner_id, self._clock)
        commits = [job.request for job in jobs if isinstance(job.request, CommitRequest)]
        with connection.pipeline():
            connection.execute("BEGIN")
            pid = batch.begin([change for commit in commits for change, _ in commit.changes])
            if pid != self._pid:
                raise shares_sessions(self._label)
            for job in jobs:
                job.result = self._run(batch, job.request)
            batch.flush()
            batch.count()
            self._notify(connection, batch.notice)
            self._transactions += 1
            statements.mark_transaction(connection, self._names.base, self._transactions, batch.now_ms)
            self._in_doubt = self._transactions
            connection.execute("COMMIT")

    def _run(self, batch: Batch, request: WriteRequest) -> object:
        if isinstance(request, CommitRequest):
            return [batch.apply(change, encoded) for change, encoded in request.changes]
        batch.flush()
        match request:
            case ClaimRequest(limit):
                return batch.claim(limit)
            case TakeRequest():
                return statements.take_owner_requests(batch.connection, self.owner_id)
            case _:
                return request(batch)

    def run_alone(self, connection: AnyConnection, write: Callable[[Batch], T]) -> T:
        """What a write returns that is in a transaction of its own and may be repeated: it leaves no mark."""
        batch = Batch(connection, self._names, self.owner_id, self._clock)
        with connection.transaction():
            batch.begin(())
            result = write(batch)
            self._notify(connection, batch.notice)
        return result

    def _notify(self, connection: AnyConnection, notice: Notice) -> None:
        payload = notice.payload(self._names.base)
        if payload is not None:
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    # -- a new session -----------------------------------------------------------------------------------------

    def take_new_name(self, connection: AnyConnection, pid: int) -> None:
        """After a session was lost: give the tasks that this daemon works on, and nobody has taken over, a new owner.

        Nothing is written before. Raises `psycopg.Error`.
        """
        if self.owner_id not in self._former_names:
            self._former_names.append(self.owner_id)
        name = self._names.new()
        take_name(connection, name)
        former = tuple(self._former_names)
        with former_names_held(connection, former):
            self._former_names.append(name)  # it may be in the store from here on
            self._give_back(connection, former, name)
        self._former_names.clear()
        self._abandoned.clear()
        self._unseen_claims.clear()
        self.owner_id, self._pid = name, pid

    def _give_back(self, connection: AnyConnection, former: Sequence[str], name: str) -> None:
        notice = Notice()
        with connection.transaction():
            last = statements.last_transaction(connection, self._names.base)
            for number, requests in self._unseen_requests:
                if number == last:
                    statements.give_back_requests(connection, requests)
            queued = statements.give_back_claims(connection, former, self._unseen_claims)
            renamed = statements.rename_owner(connection, former, name, self._abandoned)
            notice.task_ids.update(queued, renamed)
            notice.queued = bool(queued)
            notice.requests = bool(self._unseen_requests)
            self._notify(connection, notice)
        self._unseen_requests.clear()
