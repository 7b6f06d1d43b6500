"""Follows the tasks in memory that other daemons change: reads their new events from the store. Decides nothing about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...a2a.states import INTERRUPTED
from ...daemon.dispatch.execution import Raised, attempt
from ...lazy import anyio
from ..stores.failures import log_failure
from ..stores.interface import QUEUED, Changes, DamagedTaskError, LogTruncatedError, TaskStore
from ..tasks.live_task import LiveTask, LossReason
from ..tasks.task_cache import TaskCache

MAX_READS: Final = 16
"""Tasks whose events are read at the same time."""


@final
class EventFollower:
    """One per daemon. `on_lost(live)` is called for a task whose events can't be read any more, and for one that this daemon
    works on although another one has taken it over."""

    def __init__(self, store: TaskStore, cache: TaskCache, on_lost: Callable[[LiveTask], None]) -> None:
        self._store = store
        self._cache = cache
        self._on_lost = on_lost
        self._behind: dict[LiveTask, None] = {}

    @property
    def behind(self) -> bool:
        """Whether `catch_up` has something to do."""
        return bool(self._behind)

    def hear(self, changes: Changes) -> None:
        """Other daemons have changed something."""
        self._behind.update({live: None for live in self._cache if changes.may_concern(live.id)})

    def add(self, live: LiveTask) -> None:
        """Other daemons may have changed this task."""
        self._behind[live] = None

    async def catch_up(self) -> None:
        """Read the new events of the tasks that were heard of. Raises `StoreError`; they are then still to be read."""
        lives = iter([*self._behind])

        async def read_some() -> None:
            for live in lives:
                del self._behind[live]
                is_read = False
                try:
                    is_read = await self._is_up_to_date(live)
                finally:
                    if not is_read:
                        self._behind[live] = None

        if len(self._behind) < 2:
            return await read_some()
        failures: list[BaseException] = []

        async def attempt_some() -> None:
            done = await attempt(read_some)
            if isinstance(done, Raised):
                failures.append(done.exc)

        async with anyio.create_task_group() as readers:
            for _ in range(min(MAX_READS, len(self._behind))):
                readers.start_soon(attempt_some)
        if failures:
            raise failures[0]

    async def _is_up_to_date(self, live: LiveTask) -> bool:
        """Whether this daemon knows now what was stored when it was called.

        It does not where its commit was not heard of: another daemon may have changed the task, and may never write again.
        """
        if live.shared:
            await self.follow(live)
        elif live.pending:
            return live.lost is not None
        elif not live.ended:
            await self._find_out_if_taken(live)
        return True

    async def _find_out_if_taken(self, live: LiveTask) -> None:
        """A task that this daemon works on is lost if another one has written to it."""
        committed = live.committed
        try:
            events = await self._store.event_log.read(live.id, after=committed, limit=1)
        except LogTruncatedError:
            events = ()
        if events and not live.pending and live.committed == committed and not live.shared and live.lost is None:
            self._lose(live, "conflict")

    async def follow(self, live: LiveTask) -> None:
        """Append the events that other daemons have published. A task whose events can't be read is lost."""
        try:
            await self._append_new_events(live)
        except LogTruncatedError:
            self._lose(live, "behind")
        except DamagedTaskError as exc:  # one that can't be read must not keep the others waiting
            log_failure(exc)
            self._lose(live, "failed")

    def _lose(self, live: LiveTask, reason: LossReason) -> None:
        live.lose(reason)
        self._on_lost(live)

    async def _append_new_events(self, live: LiveTask) -> None:
        while live.shared and not (live.pending or live.lost):
            before = live.generation
            batch = await self._store.event_log.read(live.id, after=before)
            if live.pending or live.lost or not live.shared:  # meanwhile it was changed here: the store will decide
                return
            if live.generation != before:  # somebody else has read these, and maybe not all that there are
                continue
            for logged in batch:
                live.append_stored(logged)
            if batch and not live.ended and live.remote_owner in (None, QUEUED):
                live.remote_owner = ""
            if not (batch or await self._refresh_owner(live)):
                return

    async def _refresh_owner(self, live: LiveTask) -> bool:
        """Find out who works on a task now. True where there are new events to read first."""
        if live.ended:
            live.remote_owner = None
            live.notify()
        elif live.remote_owner == "" or (live.remote and (live.expects or live.state in INTERRUPTED)):
            stored = await self._store.load(live.id)
            if stored is not None and stored.generation != live.generation:
                return stored.generation > live.generation  # else it was changed here meanwhile: the store will decide
            owner = None if stored is None else stored.owner
            live.owned = owner == self._store.owner_id
            live.remote_owner = None if live.owned else owner
            live.notify()
        return False
