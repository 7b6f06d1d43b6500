"""Writes tasks and events. All queued writes of a daemon go into one transaction, with one notification of the others.

Runs in the writer's thread. A transaction that fails changes nothing and fails for all its writes. One whose end nobody heard
of is looked up by the mark that it leaves before anything is written again. (The server's own numbers of transactions do not
tell: after a crash it gives a number again whose transaction left no trace.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, final

import msgspec
import psycopg

from ..interface import StoreUnavailableError, TaskChange
from ..serialization import EncodedChange
from ..worker_thread import Job
from . import statements
from .batch import Batch
from .failures import RETRIED
from .link import Link
from .schema import AnyConnection
from .session import OwnerNames, former_names_held, shares_sessions, take_name

MAX_TRIES: Final = 5
"""How often a transaction that met another daemon's is begun."""

CHANNEL: Final = "discreet"
"""Where daemons tell each other that something was committed; the payload is the name of the one that did."""


class CommitRequest(msgspec.Struct, frozen=True):
    """Changes, each with its encoded form."""

    changes: Sequence[tuple[TaskChange, EncodedChange]]


WriteRequest: TypeAlias = CommitRequest | Callable[[AnyConnection], object]


@final
class PostgresWriter:
    """The only writer of one daemon. `clock` is in seconds since 1970. `owner_id` is its present name."""

    def __init__(self, label: str, names: OwnerNames, owner_id: str, pid: int, clock: Callable[[], float]) -> None:
        self._label = label
        self._names = names
        self.owner_id = owner_id
        self._pid = pid
        self._clock = clock
        self._transactions = 0
        self._in_doubt: int | None = None
        self._former_names: list[str] = []
        self._abandoned: set[str] = set()

    def process(self, link: Link, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Run the jobs in order, all in one transaction. Raises `StoreError` and `psycopg.Error`."""
        tries = 0
        while True:
            tries += 1
            try:
                return link.run(lambda connection: self._attempt(connection, jobs))
            except RETRIED:
                if tries == MAX_TRIES:
                    raise
            except StoreUnavailableError:
                self._abandon(jobs)
                raise

    def _abandon(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Their callers are told that it failed. So these tasks keep the name of a daemon that is dead, and somebody takes
        them over as they are in the store."""
        self._in_doubt = None
        for job in jobs:
            if isinstance(job.request, CommitRequest):
                self._abandoned.update(change.task_id for change, _ in job.request.changes)

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
        now_ms = int(self._clock() * 1000)
        batch = Batch(connection, self._names, self.owner_id, now_ms)
        commits = [job.request for job in jobs if isinstance(job.request, CommitRequest)]
        with connection.pipeline():
            pid = batch.begin([change for commit in commits for change, _ in commit.changes])
            if pid != self._pid:
                raise shares_sessions(self._label)
            for job in jobs:
                if isinstance(job.request, CommitRequest):
                    job.result = [batch.apply(change, encoded) for change, encoded in job.request.changes]
                else:
                    batch.flush()
                    job.result = job.request(connection)
            batch.flush()
            batch.count()
            if any(job.result for job in jobs if not isinstance(job.request, CommitRequest)) or batch.has_changes:
                connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, self._names.base))
            self._transactions += 1
            statements.mark_transaction(connection, self._names.base, self._transactions, now_ms)
            self._in_doubt = self._transactions
            connection.execute("COMMIT")

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
            statements.rename_owner(connection, former, name, self._abandoned)
        self._former_names.clear()
        self._abandoned.clear()
        self.owner_id, self._pid = name, pid
