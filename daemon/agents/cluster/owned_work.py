"""The work that others leave to this daemon: requests to the owner of a task, tasks of the queue, tasks of the dead.

Every task that it becomes the owner of is begun: by the message that was left with it, else by the executor's `resume`; where
there is neither it is failed, with a reason. None is left as if somebody still worked on it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Final, final

import msgspec

from ....errors.exceptions import FailureError
from ....lazy import anyio
from ...dispatch.execution import Raised, attempt
from ...logs import log
from ..errors import TaskConflict
from ..model.states import INACTIVE
from ..model.types import Part
from ..stores.failures import log_failure
from ..stores.interface import (
    CANCEL,
    MESSAGE,
    RELOAD_PUSH_TARGETS,
    DamagedTaskError,
    OwnerRequest,
    StoreError,
    TaskStore,
)
from ..tasks.executor import RequestContext
from ..tasks.live_task import LiveTask
from ..tasks.runner import Runner, Spawn, Work
from ..tasks.status_messages import ORPHANED_TEXT, fail_task, failure_parts
from ..tasks.task_cache import TaskCache
from .following import Following
from .ownership import take_ownership
from .queued_message import QueuedMessage, decode_message

CLAIM_BATCH: Final = 16
"""Tasks that are claimed at once: others, which hear of a full queue at the same time, get their share."""

MAX_CATCH_UPS: Final = 4
"""How often an execution of the same task may get in the way of reading what others have done to it."""

ADOPTION_BATCH: Final = 64
"""Tasks that are taken over from the dead at once."""


@final
class OwnedWork:
    """One per daemon that executes. At most `max_runs` executions are under way when it takes tasks from the queue or from the
    dead. Every method raises `StoreError`; what was not done then is done by a later call of `begin_forgotten`."""

    def __init__(
        self,
        store: TaskStore,
        cache: TaskCache,
        runner: Runner,
        following: Following,
        spawn: Spawn,
        *,
        max_runs: int,
    ) -> None:
        self._store = store
        self._cache = cache
        self._runner = runner
        self._following = following
        self._spawn = spawn
        self._max_runs = max_runs
        self._one_at_a_time = anyio.Lock()
        self._forgotten: frozenset[str] = frozenset()
        self._unreadable: set[str] = set()
        self._undone: list[OwnerRequest] = []
        self.draining = False

    @property
    def room(self) -> int:
        """How many tasks it may take now."""
        return 0 if self.draining else max(0, self._max_runs - self._runner.count)

    # -- requests ----------------------------------------------------------------------------------------------

    async def take_requests(self) -> None:
        """Do what other daemons ask of the owner of their tasks."""
        async with self._one_at_a_time:
            await self._take_requests()

    async def _take_requests(self, begun: Sequence[str] = ()) -> None:
        """Also begin the tasks that this daemon has just become the owner of. What is resumed goes before new messages."""
        taken = await self._store.take_owner_requests()
        requests, self._undone = [*self._undone, *taken], []
        messages = [_message_of(request) if request.kind == MESSAGE else None for request in requests]
        left = {
            request.task_id
            for request, message in zip(requests, messages, strict=True)
            if message is not None and message.accepted
        }
        works: list[Work] = [partial(self._resume, task_id) for task_id in begun if task_id not in left]
        for request, message in zip(requests, messages, strict=True):
            if message is not None:
                works.append(partial(self._receive_or_keep, request, message))
            elif request.kind == CANCEL:
                self._spawn(partial(self._cancel, request.task_id))
            elif request.kind == RELOAD_PUSH_TARGETS:
                works.append(partial(self._reload_push_targets, request.task_id))
        lives: list[LiveTask] = []
        try:
            async with anyio.create_task_group() as loads:  # side by side; then they are begun in their order
                for task_id in {*begun, *(each.task_id for each in requests)}:
                    loads.start_soon(partial(self._load, task_id, lives, began=task_id in begun or task_id in left))
            for work in works:
                await self._attempt(work)
        finally:
            for live in lives:
                self._cache.unpin(live)

    async def _load(self, task_id: str, lives: list[LiveTask], *, began: bool) -> None:
        """Have the task in memory, and add it to `lives`. What can't be loaded whoever needs it finds out.

        Of one that this daemon has just become the owner of (`began`) others may have changed the push configs before.
        """
        was_in_memory = self._cache.find(task_id, None) is not None
        with suppress(FailureError, StoreError):
            live = await self._cache.pin(task_id, None)
            lives.append(live)
            if began and was_in_memory:
                live.push_targets = await self._store.load_push_targets(task_id)

    async def _attempt(self, work: Work) -> None:
        """What can't be done for one task must not keep the others waiting."""
        done = await attempt(work)
        if isinstance(done, Raised) and not isinstance(done.exc, FailureError):
            # a FailureError says that the task is gone, or the message refused: its sender sees that nothing came of it
            log_failure(done.exc)

    async def _receive_or_keep(self, request: OwnerRequest, queued: QueuedMessage) -> None:
        """The store has the request no more: where its task can't be read now, it is tried again with the next ones."""
        try:
            await self._receive(request, queued)
        except DamagedTaskError:
            raise
        except StoreError:
            self._undone.append(request)
            raise

    async def _receive(self, request: OwnerRequest, queued: QueuedMessage) -> None:
        """Execute a message. One that is not in the history yet is dropped where the task has stopped: its sender sees that."""
        async with self._up_to_date(request.task_id, began=queued.accepted) as live:
            context = queued.context(live.task())
            if not queued.accepted:
                if not (live.remote or live.lost or live.state in INACTIVE or _came_before(queued, live)):
                    self._runner.submit(live, context)
                return
            live.receive(queued.key)
            if live.remote or live.ended:
                return
            if self._runner.full:
                return live.queue(request.body)
            try:
                self._runner.submit_accepted(live, context)
            except FailureError as exc:
                fail_task(live, *failure_parts(exc.failure))

    async def _reload_push_targets(self, task_id: str) -> None:
        async with self._cache.pinned(task_id, None) as live:
            live.push_targets = await self._store.load_push_targets(task_id)

    async def _cancel(self, task_id: str) -> None:
        try:
            async with self._cache.pinned(task_id, None) as live:
                if not (live.ended or live.remote):
                    await self._runner.cancel(live, RequestContext(live.task()))
        except (FailureError, TaskConflict):  # refused, or taken over: the daemon that asked watches the task
            pass
        except StoreError as exc:
            log_failure(exc)

    @asynccontextmanager
    async def _up_to_date(self, task_id: str, *, began: bool) -> AsyncIterator[LiveTask]:
        """A task that this daemon owns, as the store says. It may be in memory as another one's.

        `began` says that it has just become the owner. Then the task may also be in memory as it was when it waited for its
        caller, since an execution that has asked is not yet over: what that one has published afterwards is in vain.
        """
        async with AsyncExitStack() as pinned:
            live = await pinned.enter_async_context(self._cache.pinned(task_id, None))
            for _ in range(MAX_CATCH_UPS if began else 0):
                while live.pending and live.lost is None:
                    await live.wait_for_change()
                if live.lost is not None:
                    live = await pinned.enter_async_context(self._cache.pinned(task_id, None))
                elif live.released:
                    live.remote_owner = live.remote_owner or ""
                    await self._become_local(live)
                else:
                    break
            await self._become_local(live)
            if began and live.remote_owner == "":  # it was changed here meanwhile: the store will decide
                live.remote_owner = None
                live.notify()
            yield live

    async def _become_local(self, live: LiveTask) -> None:
        """Where the store says now that it is this daemon's: a request may come late, when the task has gone on elsewhere."""
        if live.remote:
            live.remote_owner = ""
            await self._following.follow(live)

    # -- the queue ---------------------------------------------------------------------------------------------

    async def claim(self) -> bool:
        """Begin some of the tasks that wait in the queue. Whether there may be more."""
        async with self._one_at_a_time:
            limit = min(self.room, CLAIM_BATCH)
            if not limit:
                return False
            claimed = await self._store.claim(limit)
            if claimed:
                await self._take_requests(claimed)
            return len(claimed) == limit

    # -- tasks without anybody ---------------------------------------------------------------------------------

    async def adopt_orphans(self) -> bool:
        """Take over some of the tasks of daemons that are dead. Whether there may be more.

        Another daemon may do the same now: each task's owner is read before the list of orphans is read again.
        """
        async with self._one_at_a_time:
            limit = min(self.room, ADOPTION_BATCH) if self._runner.supports_resume else ADOPTION_BATCH
            if self.draining or not limit:
                return False
            listed = await self._store.list_orphans()
            self._unreadable.intersection_update(listed)
            # those that could not be read come last: there may be more of them than there is room
            found = sorted(listed, key=self._unreadable.__contains__)[:limit]
            if not found:
                return False
            lives: list[LiveTask] = []
            try:
                async with anyio.create_task_group() as loads:
                    for task_id in found:
                        loads.start_soon(self._pin_orphan, task_id, lives)
                still = frozenset(await self._store.list_orphans()) if lives else frozenset[str]()
                wanted = [
                    (live, live.remote_owner)
                    for live in lives
                    if live.remote_owner and live.lost is None and live.id in still
                ]
                taken = await take_ownership(self._store, wanted)
                if taken:
                    await self._take_requests([live.id for live in taken])
            finally:
                for live in lives:
                    self._cache.unpin(live)
            return len(found) == limit and bool(taken)

    async def _pin_orphan(self, task_id: str, lives: list[LiveTask]) -> None:
        """Have the task in memory, with the owner that it has now, and add it to `lives`. Not one that can't be read, which must
        not keep the others waiting."""
        was_known = self._cache.find(task_id, None) is not None
        try:
            live = await self._cache.pin(task_id, None)
            lives.append(live)
            if was_known and live.remote:
                live.remote_owner = ""  # for `follow`, which asks
                await self._following.follow(live)
        except (FailureError, StoreError) as exc:  # the task is gone, or can't be read
            if isinstance(exc, StoreError) and task_id not in self._unreadable:
                log_failure(exc)
            self._unreadable.add(task_id)
        else:
            self._unreadable.discard(task_id)

    async def begin_forgotten(self) -> None:
        """Begin the tasks that this daemon owns without working on them, as it may after the store has failed. They must have
        been found so by the call before, too: some are about to be begun, or to be queued."""
        async with self._one_at_a_time:
            owned = [task_id for task_id in await self._store.list_owned() if not self._works_on(task_id)]
            forgotten = [task_id for task_id in owned if task_id in self._forgotten]
            self._forgotten = frozenset(owned)
            if forgotten:
                await self._take_requests(forgotten)

    def _works_on(self, task_id: str) -> bool:
        live = self._cache.find(task_id, None)
        return live is not None and (live.busy or bool(live.pending))

    async def _resume(self, task_id: str) -> None:
        """Resume, or fail, a task that this daemon owns and for which no message was left. Where there is no room,
        `begin_forgotten` tries again."""
        async with self._up_to_date(task_id, began=True) as live:
            if live.remote or live.busy or live.pending or live.lost or live.state in INACTIVE:
                return
            if self._runner.supports_resume:
                self._runner.resume(live)
                return log.info("task.resumed", task=live.id)
            log.warning("task.orphaned", task=live.id)
            fail_task(live, Part(text=ORPHANED_TEXT))


def _came_before(queued: QueuedMessage, live: LiveTask) -> bool:
    """Whether the message was left more than once. What was taken before this daemon had the task is in the history."""
    return not live.receive(queued.key) or (bool(queued.key) and queued.message in live.task().history)


def _message_of(request: OwnerRequest) -> QueuedMessage | None:
    try:
        return decode_message(request.body)
    except msgspec.DecodeError as exc:  # another version of this program has left it
        log.error("task.unreadable_request", task=request.task_id, exc=exc)
        return None
