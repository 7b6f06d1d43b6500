"""Deletes tasks that ended long ago, and soon after their end the events that their snapshots cover. A few at a time.

Runs in the writer's thread. Touches no task that has not ended, and deletes none whose log is being read in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ..checks import Retention
from ..retained_tasks import RetainedTasks
from ..server_link import ServerLink
from .address import Address
from .connection import Session
from .failures import translate_errors
from .reader import Source, expired_tasks
from .writer import RedisWriter, delete_request, forget_request

INTERVAL_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

EVENTS_SECONDS: Final = 60.0
"""How long the events of a task that has ended are kept, for those who were cut off just before. Later they get the task."""

BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""


@final
class ExpiredTasks:
    """Deletes what `limits` does not keep. `clock` is in seconds since 1970; None is that of the server."""

    def __init__(
        self, address: Address, retained: RetainedTasks, limits: Retention, clock: Callable[[], float] | None
    ) -> None:
        self._address = address
        self._retained = retained
        self._limits = limits
        self._clock = clock

    def find(self, source: Source) -> list[bytes]:
        """The ids of one batch. Raises `redis.RedisError`."""
        now = None if self._clock is None else self._clock()
        found = expired_tasks(source, self._limits, now=now, limit=BATCH + len(self._retained))
        return [task_id for task_id in found if task_id.decode() not in self._retained][:BATCH]

    def forget_batch(self, link: ServerLink[Session], writer: RedisWriter) -> bool:
        """Delete the events of some tasks that ended a while ago, where their snapshots cover them. Returns whether there may be
        more. Raises `StoreError`."""
        (seen,) = writer.write(link, [forget_request(EVENTS_SECONDS, BATCH)])
        return seen == BATCH

    def delete_batch(self, link: ServerLink[Session], writer: RedisWriter) -> bool:
        """Delete one batch. Returns whether there may be more. Raises `StoreError`."""
        with translate_errors(self._address.label):
            ids = link.run(lambda session: self.find(Source(session, self._address)))
        if ids:
            writer.write(link, [delete_request(ids)])
        return len(ids) == BATCH
