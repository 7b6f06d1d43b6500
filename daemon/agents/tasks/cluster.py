"""The other daemons on the same store: follows the tasks that they work on, does what they request, takes over from the dead.

Polls the store, more often while a caller here waits for another daemon's task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, final

from ....errors.exceptions import FailureError
from ....lazy import anyio
from ...dispatch.execution import Raised, attempt
from ...logs import log
from ..errors import TaskConflict
from ..model.states import INACTIVE, INTERRUPTED
from ..model.types import Part
from ..stores.failures import log_failure
from ..stores.interface import CANCEL, RELOAD_PUSH_TARGETS, DamagedTaskError, LogTruncatedError, StoreError, TaskStore
from .executor import RequestContext
from .live_task import LiveTask, LossReason
from .runner import Runner
from .status_messages import ORPHANED_TEXT, fail_task
from .task_cache import TaskCache

SHARED_POLL_SECONDS: Final = 0.1
"""How often the store is read for changes while a task in memory may be changed by another daemon."""

IDLE_POLL_SECONDS: Final = 1.0
"""How often it is read otherwise, and how often it is searched for the tasks of dead daemons."""


@final
class Cluster:
    """One per durable store. `on_lost(live)` is called for a task whose events can't be read any more."""

    def __init__(
        self,
        store: TaskStore,
        cache: TaskCache,
        runner: Runner,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        on_lost: Callable[[LiveTask], None],
        *,
        shared_poll_seconds: float,
    ) -> None:
        self._store = store
        self._cache = cache
        self._runner = runner
        self._spawn = spawn
        self._on_lost = on_lost
        self._shared_poll_seconds = shared_poll_seconds
        self._seen: tuple[int, int] | None = None
        self._poll_sooner: anyio.Event | None = None
        cache.on_load = self._request_poll

    def _request_poll(self) -> None:
        if self._poll_sooner is not None:
            self._poll_sooner.set()

    async def run(self) -> None:
        """Poll until cancelled. A fault of the store is logged, and the next poll tries again."""
        since_adoption = IDLE_POLL_SECONDS
        while True:
            adopt = since_adoption >= IDLE_POLL_SECONDS
            if adopt:
                since_adoption = 0.0
            polled = await attempt(partial(self._poll, adopt=adopt))
            if isinstance(polled, Raised):
                log_failure(polled.exc)
            self._poll_sooner = anyio.Event()
            shared = any(live.shared for live in self._cache)
            began = anyio.current_time()
            with anyio.move_on_after(self._shared_poll_seconds if shared else IDLE_POLL_SECONDS):
                await self._poll_sooner.wait()
                # One poll for all tasks that are loaded at about the same time.
                await anyio.sleep(self._shared_poll_seconds)
            since_adoption += anyio.current_time() - began

    async def _poll(self, *, adopt: bool) -> None:
        if adopt:
            await self._adopt_orphans()
        now = (self._store.data_version(), self._cache.loads)
        if now != self._seen:
            self._seen = now if await self._sync() else None

    # -- tasks of others ---------------------------------------------------------------------------------------

    async def _sync(self) -> bool:
        """Whether everything that is stored by now was seen.

        Not so where this daemon has a task that it has asked a caller about and does not follow yet: its execution is not
        over, or its commit was not heard of. Another daemon may have changed it, and may never write again.
        """
        for live in self._cache:
            await self._follow(live)
        complete = not any(live.state in INTERRUPTED and not live.shared for live in self._cache)
        for request in await self._store.take_owner_requests():
            if request.kind == CANCEL:
                self._spawn(partial(self._cancel, request.task_id))
            elif request.kind == RELOAD_PUSH_TARGETS:
                await self._reload_push_targets(request.task_id)
        return complete

    async def _follow(self, live: LiveTask) -> None:
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
        while live.shared and live.lost is None:
            before = live.generation
            batch = await self._store.event_log.read(live.id, after=before)
            if live.generation != before or not live.shared:  # meanwhile it was changed here: the store will decide
                return
            for logged in batch:
                live.append_stored(logged)
            if batch and live.state not in INACTIVE:
                live.remote_owner = live.remote_owner or ""
            if not (batch or await self._refresh_owner(live)):
                return

    async def _refresh_owner(self, live: LiveTask) -> bool:
        """Find out who works on a task now. True where there are new events to read first."""
        if live.state in INACTIVE:
            live.remote_owner = None
            live.notify()
        elif not live.remote_owner:
            stored = await self._store.load(live.id)
            if stored is not None and stored.generation != live.generation:
                return stored.generation > live.generation  # else it was changed here meanwhile: the store will decide
            owner = None if stored is None else stored.owner
            live.remote_owner = None if owner == self._store.owner_id else owner
        return False

    # -- requests of others ------------------------------------------------------------------------------------

    async def _reload_push_targets(self, task_id: str) -> None:
        try:
            async with self._cache.pinned(task_id, None) as live:
                live.push_targets = await self._store.load_push_targets(task_id)
        except FailureError:  # the task is gone
            pass
        except StoreError as exc:  # the other requests are taken, too
            log_failure(exc)

    async def _cancel(self, task_id: str) -> None:
        try:
            async with self._cache.pinned(task_id, None) as live:
                if not (live.ended or live.remote):
                    await self._runner.cancel(live, RequestContext(live.task()))
        except (FailureError, TaskConflict):  # refused, or taken over: the daemon that asked watches the task
            pass
        except StoreError as exc:
            log_failure(exc)

    # -- tasks of the dead -------------------------------------------------------------------------------------

    async def _adopt_orphans(self) -> None:
        """Resume, or fail, the tasks of dead daemons.

        Another daemon may do the same now: each task's owner is read before the list of orphans is read again.
        """
        lives: list[LiveTask] = []
        try:
            for task_id in await self._store.list_orphans():
                live = await self._pin_orphan(task_id)
                if live is not None:
                    lives.append(live)
                    live.remote_owner = "" if live.remote else None
                    await self._follow(live)
            orphans = frozenset(await self._store.list_orphans()) if lives else frozenset[str]()
            for live in lives:
                if live.remote and live.lost is None and live.id in orphans:
                    self._take_over(live)
        except FailureError:  # overloaded: the next poll tries again
            pass
        finally:
            for live in lives:
                self._cache.unpin(live)

    async def _pin_orphan(self, task_id: str) -> LiveTask | None:
        try:
            return await self._cache.pin(task_id, None)
        except FailureError:  # the task is gone
            return None
        except StoreError as exc:  # one that can't be read must not keep the others waiting
            log_failure(exc)
            return None

    def _take_over(self, live: LiveTask) -> None:
        previous_owner, live.remote_owner = live.remote_owner, None
        try:
            if self._runner.supports_resume:
                self._runner.resume(live)
            else:
                log.warning("task.orphaned", task=live.id)
                fail_task(live, Part(text=ORPHANED_TEXT))
        except FailureError:
            live.remote_owner = previous_owner
            raise
        live.take_over(previous_owner)
