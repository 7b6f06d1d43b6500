"""The other daemons on the same store: hears what they change, follows the tasks that they work on, and does what they leave to
this one. The composition root of this folder: decides when each of these is due, and nothing of a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from math import inf
from time import monotonic
from typing import Final, final

from ..change_signal import ChangeSignal
from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.logs import log
from ..lazy import anyio
from .live_task import LiveTask
from .runner import Runner
from .stores.failures import log_failure
from .stores.interface import TaskStore
from .task_cache import TaskCache
from .task_worker import EventFollower, TaskWorker

SHARED_POLL_SECONDS: Final = 0.04
"""How often a store that nobody tells of changes is read, while a task in memory may be changed by another daemon."""

IDLE_POLL_SECONDS: Final = 1.0
"""How often it is read otherwise, and how often it is searched for the tasks of dead daemons and for work that nobody has told
of."""

LEASE_POLL_SECONDS: Final = 0.1
"""How often it is asked for the store while it does not answer."""

OWNED_TURNS: Final = 5
"""Every so many of these looks, it is asked which tasks this daemon owns."""


@final
class Cluster:
    """One per durable store. With `executes` it takes tasks from the queue and from the dead, while fewer than `max_runs`
    executions are under way."""

    def __init__(
        self,
        store: TaskStore,
        cache: TaskCache,
        runner: Runner,
        *,
        executes: bool,
        max_runs: int,
        shared_poll_seconds: float,
    ) -> None:
        self._store = store
        self._cache = cache
        self._runner = runner
        self._executes = executes
        self._shared_poll_seconds = shared_poll_seconds
        self._event_follower = EventFollower(store, cache)
        self._task_worker = TaskWorker(store, cache, runner, self._event_follower, max_runs=max_runs)
        self._requests = self._queued = True
        self._work_signal, self._following_signal = ChangeSignal(), ChangeSignal()
        self._listening: anyio.CancelScope | None = None

    def _on_load(self, live: LiveTask) -> None:
        """It may have been changed while it was loaded, and is listened for from now on."""
        self._event_follower.add(live)
        self._following_signal.notify()
        if self._listening is not None:
            self._listening.cancel()

    def _on_done(self) -> None:
        if self._queued:
            self._work_signal.notify()

    async def follow(self, live: LiveTask) -> None:
        """Read what other daemons have done to this task. Raises `StoreError`."""
        await self._event_follower.follow(live)

    def drain(self) -> None:
        """Take no more work from others, and leave them what waits here."""
        self._task_worker.draining = True
        self._runner.drain()

    async def run(self) -> None:
        """Run until cancelled. A fault of the store is logged, and the next turn tries again."""
        self._cache.on_load = self._on_load
        self._runner.on_done = self._on_done
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            tasks.start_soon(self._repeat, self._following_signal, lambda: self._event_follower.behind, self._follow)
            tasks.start_soon(self._watch_lease)
            if self._executes:
                tasks.start_soon(self._look_after)
                await self._repeat(self._work_signal, lambda: self._has_work, self._do_work)

    async def _listen(self) -> None:
        while True:
            shared = any(live.shared for live in self._cache)
            with anyio.CancelScope() as self._listening:
                changes = await self._store.wait_for_changes(self._shared_poll_seconds if shared else IDLE_POLL_SECONDS)
                self._event_follower.hear(changes)
                self._requests |= changes.requests
                self._queued |= changes.queued
                self._following_signal.notify()
                self._work_signal.notify()

    async def _repeat(
        self, signal: ChangeSignal, is_due: Callable[[], bool], work: Callable[[], Awaitable[None]]
    ) -> None:
        """Do the work whenever it is due, which each change is signalled for."""
        while True:
            while not is_due():
                await signal.wait()
            if not await self._try(work):
                await anyio.sleep(IDLE_POLL_SECONDS)

    @staticmethod
    async def _try(work: Callable[[], Awaitable[None]]) -> bool:
        done = await attempt(work)
        if isinstance(done, Raised):
            log_failure(done.exc)
        return not isinstance(done, Raised)

    async def _follow(self) -> None:
        while self._event_follower.behind:
            await self._event_follower.catch_up()
            if self._event_follower.behind:  # a commit of this daemon is to be heard of first
                await anyio.sleep(self._shared_poll_seconds)

    @property
    def _has_work(self) -> bool:
        return self._requests or self._task_worker.inherited or (self._queued and self._task_worker.room > 0)

    async def _do_work(self) -> None:
        """What is left undone because the store fails is due again with the next look."""
        if self._requests:
            self._requests = False
            await self._task_worker.take_requests()
        while self._queued and self._task_worker.room:
            self._queued = False
            self._queued |= await self._task_worker.claim()
        if self._task_worker.inherited:
            self._task_worker.inherited = False
            await self._task_worker.take_requests()

    async def _adopt_orphans(self) -> None:
        while await self._task_worker.adopt_orphans():
            pass

    async def _watch_lease(self) -> None:
        """Stop what runs when other daemons may take over its tasks, as this one has not heard of the store for long."""
        while (left := self._store.lease_end() - monotonic()) < inf:
            lives = [live for live in self._runner.tasks if live.lost is None] if left <= 0 else ()
            if lives:
                log.warning("task.lease_ended", tasks=len(lives))
            for live in lives:
                self._cache.lose(live, "unavailable")
            await anyio.sleep(min(max(left, LEASE_POLL_SECONDS), IDLE_POLL_SECONDS))

    async def _look_after(self) -> None:
        for turn in count():
            self._requests = self._queued = True
            self._work_signal.notify()
            await self._try(self._adopt_orphans)
            if turn % OWNED_TURNS == 0:
                await self._try(self._task_worker.begin_forgotten)
            self._work_signal.notify()
            await anyio.sleep(IDLE_POLL_SECONDS)
