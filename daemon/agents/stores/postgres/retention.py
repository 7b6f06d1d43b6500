"""Deletes tasks that ended long ago, a few at a time.

Runs in the writer's thread. Touches no task that has not ended, and none whose log is being read in this process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, final

from ..retained_tasks import RetainedTasks
from .batch import add_counts
from .reader import expired_tasks
from .schema import AnyConnection

INTERVAL_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""

WRITER_SECONDS: Final = 3600.0
"""How long the mark of a daemon's last transaction is kept: it is asked for within seconds, or never."""

_DELETE_WRITERS: Final = "DELETE FROM discreet.writers WHERE written_ms < %s"
_DELETE: Final = """
    DELETE FROM discreet.tasks WHERE key IN (
        SELECT key FROM discreet.tasks WHERE key = ANY(%s::bigint[]) AND ended_ms IS NOT NULL FOR UPDATE SKIP LOCKED
    ) RETURNING key, scope, state
"""


@final
class Retention:
    """Keeps at most `max_tasks` ended tasks, each for at most `max_seconds`, and until the next run some more.

    `clock` is in seconds since 1970.
    """

    def __init__(
        self, retained: RetainedTasks, *, max_tasks: int, max_seconds: float, clock: Callable[[], float]
    ) -> None:
        self._retained = retained
        self._max_tasks = max_tasks
        self._max_seconds = max_seconds
        self._clock = clock

    def _expired(self, connection: AnyConnection) -> list[int]:
        """The keys of tasks that may be deleted, of one batch."""
        return expired_tasks(
            connection,
            self._retained,
            ended_before_ms=int((self._clock() - self._max_seconds) * 1000),
            max_tasks=self._max_tasks,
            limit=BATCH,
        )

    def delete_batch(self, connection: AnyConnection, owner_id: str) -> bool:
        """Delete one batch inside a transaction. Returns whether there may be more to delete."""
        connection.execute(_DELETE_WRITERS, (int((self._clock() - WRITER_SECONDS) * 1000),))
        keys = self._expired(connection)
        if not keys:
            return False
        rows = connection.execute(_DELETE, (keys,)).fetchall()
        deleted = [key for key, _, _ in rows]
        for table in ("snapshots", "events", "push_targets", "owner_requests"):
            connection.execute(f"DELETE FROM discreet.{table} WHERE task_key = ANY(%s::bigint[])", (deleted,))
        counts: Counter[tuple[str, int]] = Counter()
        for _, scope, state in rows:
            counts[scope, state] -= 1
        add_counts(connection, owner_id, counts)
        return len(keys) == BATCH and bool(rows)
