"""Cancels tasks for their callers: here, or by the daemon that works on the task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import final

from ...a2a.errors import TaskConflict, not_cancelable_any_more
from ...a2a.types import JsonObject, Task, TaskState
from ...errors.exceptions import FailureError
from ...errors.failures import TimedOut
from ...lazy import anyio
from ..caller import Caller
from ..cluster.task_worker import take_ownership
from ..stores.interface import CANCEL, QUEUED, OwnerRequest, TaskStore
from ..tasks.executor import RequestContext
from ..tasks.live_task import MAX_LOSSES, LiveTask, raise_if_lost, wait_committed
from ..tasks.runner import Runner
from ..tasks.task_cache import TaskCache


@final
class Cancellation:
    """One per daemon. `remote_seconds` is how long another daemon may take."""

    def __init__(self, store: TaskStore, cache: TaskCache, runner: Runner, *, remote_seconds: float) -> None:
        self._store = store
        self._cache = cache
        self._runner = runner
        self._remote_seconds = remote_seconds

    async def cancel(self, task_id: str, metadata: JsonObject | None, caller: Caller) -> Task:
        """Cancel a task; returns it as it is then. Raises `FailureError` where it can't be cancelled."""
        for _ in range(MAX_LOSSES):
            with suppress(TaskConflict):  # another daemon has changed it meanwhile: look again
                return await self._cancel(task_id, metadata, caller)
        raise TaskConflict

    async def _cancel(self, task_id: str, metadata: JsonObject | None, caller: Caller) -> Task:
        async with self._cache.pinned(task_id, caller.scope) as live:
            if live.ended:
                raise FailureError(not_cancelable_any_more(live))
            was_queued = await self._cancel_remotely(live)
            if live.ended and live.state is not TaskState.CANCELED:  # it ended by itself before
                raise FailureError(not_cancelable_any_more(live))
            if live.ended:
                return await wait_committed(live)
            context = RequestContext(
                live.task(), None, metadata, None, caller.extensions, caller.identity, caller.service_params
            )
            try:
                return await self._runner.cancel(live, context)
            finally:
                if was_queued and not live.busy:  # the executor has refused, or the caller has gone
                    live.queue()

    async def _cancel_remotely(self, live: LiveTask) -> bool:
        """Have the task cancelled by the daemon that works on it. Returns when none does any more: a task that has stopped
        without having ended is to be cancelled here. True where it was taken from the queue for that.

        The store drops the request when the task stops. If the other daemon works on it again by now, it is asked again.
        Raises `FailureError(TimedOut)` where it still works on it after `remote_seconds`: that daemon refuses, is busy, or
        is stopped and will do it later. The request stays in the store. Raises what `raise_if_lost` raises.
        """
        with anyio.move_on_after(self._remote_seconds):
            while live.remote and not live.ended and live.lost is None:
                if await self._take_from_queue(live):
                    return True
                stop = live.stop_generation
                await self._store.send_owner_request(OwnerRequest(live.id, CANCEL))
                while live.remote and live.stop_generation == stop and live.lost is None:
                    await live.wait_for_change()
        raise_if_lost(live)
        if live.remote and not live.ended:
            raise FailureError(TimedOut())
        return False

    async def _take_from_queue(self, live: LiveTask) -> bool:
        """Become the owner of a task that waits until somebody has room for it; False where nobody need be waited for."""
        if live.remote_owner not in (QUEUED, ""):
            return False
        stored = await self._store.load(live.id)
        if stored is None or stored.generation != live.generation or not live.remote:
            return False
        live.remote_owner = stored.owner or ""
        if stored.owner != QUEUED:
            return False
        taken: Sequence[LiveTask] = ()
        with anyio.CancelScope(shield=True):  # for one write, of which this daemon must know
            taken = await take_ownership(self._store, [(live, QUEUED)])
        return bool(taken)
