"""The agent's life in a daemon: opens the store, keeps the tasks moving, takes over what other daemons left behind.

The composition root of this package. Begins when the agent is first needed, or with the daemon where the store outlives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ....errors.exceptions import FailureError
from ....errors.failures import Internal
from ...dispatch import execution
from ...logs import log
from ..model.states import RESTING, TERMINAL
from ..model.types import Event, Part, StatusChanged
from ..stores.interface import PushTarget, StoreError, TaskStore
from ..tasks.cluster import Cluster
from ..tasks.committer import Committer
from ..tasks.executor import AgentExecutor
from ..tasks.live_task import LiveTask
from ..tasks.runner import BROKEN, Runner, TaskConflict, committed, fail
from ..tasks.task_cache import TaskCache
from .push_configs import PushConfigs
from .request_handler import RequestHandler

if TYPE_CHECKING:
    import anyio
    import anyio.abc

    from ..push.notifier import PushNotifier

RETRY_SECONDS: Final = 1.0
"""The first pause before a store that has failed is tried again."""

MOST_SECONDS: Final = 60.0
"""The longest one."""

PUSH_SECONDS: Final = 0.3
"""How long push notifications that still wait are tried at the end."""

CLOSE_SECONDS: Final = 1.0


@final
class Runtime:
    """One per daemon. `body(live, event, dialect)` is what is pushed of an event, None for nothing."""

    def __init__(
        self,
        store: TaskStore,
        executor: AgentExecutor,
        pusher: PushNotifier | None,
        body: Callable[[LiveTask, Event, str], bytes | None],
    ) -> None:
        self._store = store
        self._pusher = pusher
        self._body = body
        self._committer = Committer(store, self._on_committed, self._on_lost)
        self._residents = TaskCache(store, self._committer.publish)
        self._runner = Runner(executor, self._residents, self._spawn)
        self._neighbours = Cluster(store, self._residents, self._runner, self._spawn, self._on_lost)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._opened: anyio.Event | None = None
        self._broken = False
        self.handler = RequestHandler(store, self._residents, self._runner, PushConfigs(store, self._residents, pusher))

    @property
    def idle(self) -> bool:
        """True when nothing is executed and the store has everything."""
        return self._runner.idle and self._committer.idle

    def on_idle(self, look: Callable[[], None]) -> None:
        """Have `look()` called whenever it may have become idle."""
        self._runner.on_idle = self._committer.on_idle = look

    def start(self, spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object]) -> anyio.Event:
        """Begin, by `spawn` in the daemon's task group, if that has not happened; the event tells that the store is open."""
        import anyio  # late: the first replies leave without an event loop

        if self._opened is None:
            self._opened = anyio.Event()
            spawn(partial(self._run, self._opened))
        return self._opened

    async def ready(self, spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object]) -> RequestHandler:
        """The handler, once the store is open; the first caller starts the runtime.

        Raises `FailureError(Internal)` when the store can't be opened; the log says why.
        """
        opened = self.start(spawn)
        if not opened.is_set():
            await opened.wait()
        if self._broken:
            raise FailureError(Internal())
        return self.handler

    async def _run(self, opened: anyio.Event) -> None:
        """Live until cancelled."""
        import anyio  # late, as above

        try:
            await self._store.open()
        except StoreError as exc:
            log.error("store.failed", exc=exc)
            self._broken = True
            return opened.set()
        try:
            async with anyio.create_task_group() as self._tasks, self._pushing(self._tasks):
                self._tasks.start_soon(self._committer.run)
                opened.set()
                await (self._neighbours.run() if self._store.durable else anyio.sleep_forever())
        finally:
            await self._close()

    @asynccontextmanager
    async def _pushing(self, tasks: anyio.abc.TaskGroup) -> AsyncIterator[None]:
        """Deliver push notifications, also while this is cancelled, until the last ones had their chance."""
        import anyio  # late, as above

        pusher = self._pusher
        if pusher is None:
            yield
            return
        scope = anyio.CancelScope(shield=True)

        async def push() -> None:
            with scope:
                await pusher.run()

        tasks.start_soon(push)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):  # as long as `drain` is told
                await pusher.drain(PUSH_SECONDS)
            scope.cancel()

    async def _close(self) -> None:
        import anyio  # late, as above

        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
            try:
                await self._store.close()
            except StoreError as exc:
                log.error("store.failed", exc=exc)

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._tasks is None:
            raise RuntimeError("an agent runs in a daemon")
        self._tasks.start_soon(self._attempt, work)

    @staticmethod
    async def _attempt(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What goes wrong with one task must not end the others."""
        fault = await execution.attempt(work)
        if fault is not None:
            log.error("agent.failed", exc=fault)

    def _on_committed(self, live: LiveTask, events: Sequence[Event]) -> None:
        if self._pusher is not None:
            for event in events:
                for target in live.targets:
                    self._tell(self._pusher, target, live, event)
        self._residents.tidy(live)

    def _tell(self, pusher: PushNotifier, target: PushTarget, live: LiveTask, event: Event) -> None:
        """Have an event pushed. Never raises, whatever it takes to write it."""
        bodies: list[bytes | None] = []
        if execution.attempt_now(lambda: bodies.append(self._body(live, event, target.dialect))) is not None:
            log.warning("push.failed", task=live.id, config=target.config.id, reason="unwritable")
        elif bodies[0] is not None:
            last = isinstance(event, StatusChanged) and event.status.state in TERMINAL
            pusher.offer(target, bodies[0], last=last)

    def _on_lost(self, live: LiveTask) -> None:
        live.interrupt()
        self._residents.forget(live)
        if live.lost in ("unstorable", "failed"):
            self._spawn(partial(self._give_up, live.id, 0.0 if live.lost == "unstorable" else RETRY_SECONDS))

    async def _give_up(self, task_id: str, pause: float) -> None:
        """Fail a task that was lost, from where the store has it: it must not look as if somebody worked on it."""
        import anyio  # late, as above

        while True:
            await anyio.sleep(pause)
            try:
                return await self._fail(task_id, BROKEN)
            except (FailureError, TaskConflict):  # the store never had it; or it was lost again, and comes here again
                return
            except StoreError:
                pause = min(2 * pause + RETRY_SECONDS, MOST_SECONDS)

    async def _fail(self, task_id: str, reason: str) -> None:
        async with self._residents.held(task_id, None) as live:
            if not (live.runs or live.state in RESTING):
                fail(live, Part(text=reason))
                await committed(live)
