"""Other daemons on the same store: follows what they work on, does what they ask, takes over what the dead have left.

Looks at the store now and then, more often while somebody here waits for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ....errors.exceptions import FailureError
from ...dispatch import execution
from ...logs import log
from ..model.states import RESTING
from ..model.types import Part
from ..service.push_configs import TARGETS
from ..service.request_handler import CANCEL
from ..stores.interface import LogMovedError, StoreError, TaskStore
from .executor import RequestContext
from .live_task import LiveTask
from .runner import ORPHANED, Runner, TaskConflict, fail
from .task_cache import TaskCache

if TYPE_CHECKING:
    import anyio

NEAR_SECONDS: Final = 0.1
"""How often the store is asked for news of tasks that other daemons work on, while somebody here waits for them."""

FAR_SECONDS: Final = 1.0
"""How often it is asked for requests to this daemon and for tasks without one."""


@final
class Cluster:
    """One per durable store. `on_lost(live)` is called for a task whose events are not to be had any more."""

    def __init__(
        self,
        store: TaskStore,
        residents: TaskCache,
        runner: Runner,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        on_lost: Callable[[LiveTask], None],
    ) -> None:
        self._store = store
        self._residents = residents
        self._runner = runner
        self._spawn = spawn
        self._on_lost = on_lost
        self._seen = (-1, -1)
        self._nudged: anyio.Event | None = None
        residents.on_load = self._nudge

    def _nudge(self) -> None:
        if self._nudged is not None:
            self._nudged.set()

    async def run(self) -> None:
        """Adopt orphans, follow what others work on, and do what others ask of this daemon."""
        import anyio  # late: the first replies leave without an event loop

        waited = FAR_SECONDS
        while True:
            far = waited >= FAR_SECONDS
            if far:
                waited = 0.0
            fault = await execution.attempt(partial(self._look, far=far))
            if fault is not None:
                log.error("store.failed", exc=fault)
            self._nudged = anyio.Event()
            pause = NEAR_SECONDS if any(live.shared for live in self._residents) else FAR_SECONDS
            began = anyio.current_time()
            with anyio.move_on_after(pause):
                await self._nudged.wait()
                await anyio.sleep(NEAR_SECONDS)  # not for each of many
            waited += anyio.current_time() - began

    async def _look(self, *, far: bool) -> None:
        if far:
            await self._adopt()
        now = (self._store.moves(), self._residents.loaded)
        if now != self._seen:
            await self._catch_up()
            self._seen = now

    async def _catch_up(self) -> None:
        for live in self._residents:
            await self._follow(live)
        for task_id, what in await self._store.asked():
            if what == CANCEL:
                self._spawn(partial(self._cancel, task_id))
            elif what == TARGETS:
                await self._retarget(task_id)

    async def _retarget(self, task_id: str) -> None:
        try:
            async with self._residents.held(task_id, None) as live:
                live.targets = await self._store.targets(task_id)
        except FailureError:  # it is gone
            pass

    async def _follow(self, live: LiveTask) -> None:
        """Bring a task to where the store has it, as far as others may have changed it."""
        while live.shared and live.lost is None:
            before = live.generation
            try:
                batch = await self._store.events.read(live.id, after=before)
            except LogMovedError:
                live.lose("behind")
                return self._on_lost(live)
            if live.generation != before or not live.shared:  # meanwhile it was changed here: the store will decide
                return
            for logged in batch:
                live.follow(logged)
            if batch and live.state not in RESTING:
                live.keeper = live.keeper or ""
            if not (batch or await self._is_unsure(live)):
                return

    async def _is_unsure(self, live: LiveTask) -> bool:
        """Find out who works on a task now; whether there are events to read first."""
        if live.state in RESTING:
            live.keeper = None
            live.wake()
        elif not live.keeper:
            stored = await self._store.load(live.id)
            if stored is not None and stored.generation != live.generation:
                return True
            owner = None if stored is None else stored.owner
            live.keeper = None if owner == live.owner else owner
        return False

    async def _cancel(self, task_id: str) -> None:
        try:
            async with self._residents.held(task_id, None) as live:
                if not (live.ended or live.foreign):
                    await self._runner.cancel(live, RequestContext(live.task()))
        except (FailureError, TaskConflict):  # the agent keeps on, or another has it: who asked sees what becomes of it
            pass
        except StoreError as exc:
            log.error("store.failed", exc=exc)

    async def _adopt(self) -> None:
        """Go on with, or fail, the tasks whose daemon is no more.

        Another daemon may be about to do the same: who works on a task is asked before it is asked who is dead.
        """
        lives: list[LiveTask] = []
        try:
            for task_id in await self._store.orphans():
                try:
                    live = await self._residents.hold(task_id, None)
                except FailureError:  # it is gone
                    continue
                except StoreError as exc:  # one that can't be read must not keep the others waiting
                    log.error("store.failed", exc=exc)
                    continue
                lives.append(live)
                live.keeper = "" if live.foreign else None
                await self._follow(live)
            left = frozenset(await self._store.orphans()) if lives else frozenset[str]()
            for live in lives:
                if live.foreign and live.lost is None and live.id in left:
                    self._take_over(live)
        except FailureError:  # too much to do already: later
            pass
        finally:
            for live in lives:
                self._residents.release(live)

    def _take_over(self, live: LiveTask) -> None:
        keeper, live.keeper = live.keeper, None
        try:
            if self._runner.resumes:
                self._runner.resume(live)
            else:
                log.warning("task.orphaned", task=live.id)
                fail(live, Part(text=ORPHANED))
        except FailureError:
            live.keeper = keeper
            raise
        live.claim(keeper)
