"""Coordinates the daemons on one store: their changes, and the work that they leave to each other.

Hears the changes of other daemons, follows the tasks that they work on, takes over from the dead, and does the work that they
leave to this one: requests to the owner of a task, and tasks of the queue. Every task that it becomes the owner of goes on: an
execution that was cut off is resumed, or the task failed with a reason; then its waiting messages are executed. No task is
left as if a daemon still worked on it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import count
from math import inf
from time import monotonic
from typing import Final, final

import msgspec

from ..a2a.errors import TaskConflict
from ..a2a.types import INACTIVE, INTERRUPTED, CallFacts, MessageRefused, Part, now
from ..change_signal import ChangeSignal
from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.logs import log
from ..daemon.logs.logger import BOUND, LoggedTask
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
from .delegator import decode_message, encode_refusal
from .executor import AGENT_FAILED_TEXT, RequestContext, fail_task
from .live_task import LiveTask, TaskCache, wait_committed
from .runner import MAX_EXECUTIONS, Runner
from .stores.failures import log_failure
from .stores.interface import (
    ANSWER,
    CANCEL,
    MESSAGE,
    QUEUED,
    RELOAD_PUSH_TARGETS,
    Changes,
    ClaimedTask,
    DamagedTaskError,
    LogTruncatedError,
    News,
    OwnerRequest,
    StoreError,
    StoreUnavailableError,
    TaskChange,
    TaskStore,
)
from .task_inputs import take_answers

SHARED_POLL_SECONDS: Final = 0.04
"""How often a store that is not told of changes is read, while a task in memory may be changed by another daemon."""

IDLE_POLL_SECONDS: Final = 1.0
"""How often it is read otherwise, and how often it is searched for the tasks of dead daemons and for work that it
was not told of."""

LEASE_POLL_SECONDS: Final = 0.1
"""How often it is asked for the store while it does not answer."""

MAX_UNANNOUNCED: Final = 4096
"""Names that may wait to be announced while the store is away. Beyond it names are dropped."""

OWNED_TURNS: Final = 5
"""Every so many of these looks, it is asked which tasks this daemon owns."""

CLAIM_BATCH: Final = 16
"""Tasks that are claimed at once: others, which hear of a full queue at the same time, get their share."""

MAX_CATCH_UPS: Final = 4
"""How often an execution of the same task may get in the way of reading what others have done to it."""

ADOPTION_BATCH: Final = 64
"""Tasks that are taken over from the dead at once."""

NEWS_BATCH: Final = 256
"""Tasks whose events are read by one call of `read_news`."""

MAX_READS: Final = 16
"""Tasks whose events are read at the same time."""


@final
class EventFollower:
    """One per daemon. A task whose events can't be read any more is lost, and so is one that this daemon works on although
    another one has taken it over."""

    def __init__(self, cache: TaskCache) -> None:
        self._store = cache.store
        self._cache = cache
        self._behind: dict[LiveTask, None] = {}
        self._reads_news = hasattr(type(cache.store), "read_news")  # its own, not that of a store that it wraps

    @property
    def behind(self) -> bool:
        """Whether `catch_up` has something to do."""
        return bool(self._behind)

    def hear(self, changes: Changes) -> None:
        """Other daemons have changed something."""
        if changes.names is None:
            self._behind.update({live: None for live in self._cache if changes.may_concern(live.id)})
        elif changes.names:
            self._behind.update(dict.fromkeys(self._cache.find_named(changes.names, changes.name_of)))

    def add(self, live: LiveTask) -> None:
        """Other daemons may have changed this task."""
        self._behind[live] = None

    async def catch_up(self) -> None:
        """Read the new events of the tasks that were heard of. Raises `StoreError`; they are then still to be read."""
        if self._reads_news:
            await self._read_news()
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

    async def _read_news(self) -> None:
        """Read the new events of many tasks at once. Those that have to be looked at one by one are still to be read."""
        lives = [live for live in self._behind if live.shared and not (live.pending or live.lost)]
        for start in range(0, len(lives), NEWS_BATCH):
            await self._read_news_of(lives[start : start + NEWS_BATCH])

    async def _read_news_of(self, lives: Sequence[LiveTask]) -> None:
        before = {live: live.generation for live in lives}
        for live in lives:
            self._behind.pop(live, None)
        appended: set[LiveTask] = set()
        try:
            found: Mapping[str, News] = await getattr(self._store, "read_news")(  # noqa: B009 - not of the Protocol
                {live.id: generation for live, generation in before.items()}
            )
            appended.update(live for live in lives if self._append_news(live, before[live], found.get(live.id)))
        finally:
            self._behind.update(dict.fromkeys(live for live in lives if live not in appended))

    def _append_news(self, live: LiveTask, before: int, news: News | None) -> bool:
        """Append what was read behind the generation `before`. Whether the task is then as it was stored."""
        if live.pending or live.lost or not live.shared:  # meanwhile it was changed here: the store will decide
            return True
        if self._cache.is_claiming(live.id, None if news is None else news.owner):
            return True  # it comes with the claim
        if news is None or live.generation != before:
            return False
        for logged in news.events:
            live.append_stored(logged)
        live.owned = not live.ended and news.owner == self._store.owner_id
        live.remote_owner = None if live.ended or live.owned else news.owner
        live.notify()
        return True

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
            self._cache.lose(live, "conflict")

    async def follow(self, live: LiveTask) -> None:
        """Append the events that other daemons have published. A task whose events can't be read is lost."""
        try:
            await self._append_new_events(live)
        except LogTruncatedError:
            self._cache.lose(live, "behind")
        except DamagedTaskError as exc:  # one that can't be read must not keep the others waiting
            log_failure(exc)
            self._cache.lose(live, "failed")

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
            if (live.ended or not batch) and not await self._refresh_owner(live):
                return

    async def _refresh_owner(self, live: LiveTask) -> bool:
        """Find out who works on a task now. True where there are new events to read first."""
        if live.ended:
            live.remote_owner = None
            live.notify()
        elif live.remote_owner == "" or (live.remote and (live.expected or live.state in INTERRUPTED)):
            stored = await self._store.load(live.id)
            if stored is not None and stored.generation != live.generation:
                return stored.generation > live.generation  # else it was changed here meanwhile: the store will decide
            owner = None if stored is None else stored.owner
            if self._cache.is_claiming(live.id, owner):  # it comes with the claim
                return False
            live.owned = owner == self._store.owner_id
            live.remote_owner = None if live.owned else owner
            live.notify()
        return False


# Fails the tasks that this daemon has lost, as the store has them: none may look as if somebody still worked on it.


RETRY_SECONDS: Final = 1.0
"""The first pause before a store that has failed is tried again."""

MAX_RETRY_SECONDS: Final = 60.0
"""The longest pause."""


@final
class LostTasks:
    """One per daemon."""

    def __init__(self, runner: Runner) -> None:
        self._cache = runner.cache
        self._runner = runner

    def add(self, live: LiveTask) -> None:
        """Have a lost task failed in the store, unless another daemon has it or the store never took it.

        One of a store that was away needs nothing: its owner is dead, so that it is taken over, and may be resumed.
        """
        if live.lost == "unstorable":
            self._runner.spawn(self._fail_when_possible, live.id, 0.0)
        elif live.lost == "failed":
            self._runner.spawn(self._fail_when_possible, live.id, RETRY_SECONDS)

    async def _fail_when_possible(self, task_id: str, pause: float) -> None:
        while True:
            await anyio.sleep(pause)
            try:
                return await self._fail(task_id)
            except (FailureError, TaskConflict):  # the store never had it; or it was lost again, and is added again
                return
            except DamagedTaskError:  # it stays so
                return
            except StoreError:
                pause = min(2 * pause + RETRY_SECONDS, MAX_RETRY_SECONDS)

    async def _fail(self, task_id: str) -> None:
        async with self._cache.pinned(task_id, None) as live:
            if not (live.busy or live.remote or live.state in INACTIVE):
                fail_task(live, Part(text=AGENT_FAILED_TEXT))
                await wait_committed(live)


# How a daemon becomes the owner of a task whose owner is dead, or that no daemon has begun.


async def take_ownership(store: TaskStore, lives: Sequence[tuple[LiveTask, str]]) -> Sequence[LiveTask]:
    """Take tasks, each from the owner that the store has for it, in one commit. Returns those that this daemon got: they have
    no other owner any more. Of several daemons that try, one gets a task. Raises `StoreError`.
    """
    changes = [_change_of_owner(live, previous_owner, store.owner_id) for live, previous_owner in lives]
    refusals = await store.commit(changes) if changes else ()
    taken = [live for (live, _), refusal in zip(lives, refusals, strict=True) if refusal is None]
    for live in taken:
        live.remote_owner = None
        live.owned = True
        live.notify()
    return taken


def _change_of_owner(live: LiveTask, previous_owner: str, owner: str) -> TaskChange:
    task = live.task()
    return TaskChange(
        task_id=live.id,
        expected_generation=live.generation,
        events=(),
        scope=live.scope,
        context_id=live.context_id,
        state=live.state,
        status_timestamp=task.status.timestamp or now(),
        owner=owner,
        previous_owner=previous_owner,
    )


@final
class Cluster:
    """One per durable store. With `executes` it takes tasks from the queue and from the dead, while fewer than `max_runs`
    executions are under way. What was not done because the store has failed is done later. `on_changes(changes)` is called with
    what other daemons have changed."""

    def __init__(
        self,
        runner: Runner,
        *,
        executes: bool,
        max_runs: int,
        shared_poll_seconds: float,
    ) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._store = runner.cache.store
        self._executes = executes
        self._max_runs = max_runs
        self._shared_poll_seconds = shared_poll_seconds
        self._follower = EventFollower(runner.cache)
        self.follow: Final = self._follower.follow
        self._requests = self._queued = True
        self._told = False
        self._draining = False
        self._work_signal, self._following_signal, self._announcing_signal = (ChangeSignal() for _ in range(3))
        self._unannounced: dict[str, None] = {}
        self._dropped = False
        self.on_changes: Callable[[Changes], None] = lambda _: None
        self._listening: anyio.CancelScope | None = None
        self._lock = anyio.Lock()
        self._forgotten: frozenset[str] = frozenset()
        self._unreadable: set[str] = set()
        self._dead_since: dict[str, float] = {}

    def _on_load(self, live: LiveTask) -> None:
        """It may have been changed while it was loaded, and is listened for from now on."""
        self._follower.add(live)
        self._following_signal.notify()
        if self._listening is not None:
            self._listening.cancel()

    def _on_done(self) -> None:
        if self._queued:
            self._work_signal.notify()

    def drain(self) -> None:
        """Take no more work from others, and leave them what waits here."""
        self._draining = True
        self._cache.end_claim()
        self._runner.drain()

    def announce(self, name: str) -> None:
        """Have `on_changes` of the other daemons called with this name, as `TaskStore.announce` says."""
        if len(self._unannounced) < MAX_UNANNOUNCED:
            self._unannounced[name] = None
            self._announcing_signal.notify()
        elif name not in self._unannounced and not self._dropped:
            self._dropped = True  # once, until the store takes some
            log.warning("store.unannounced", names=MAX_UNANNOUNCED)

    async def _announce(self) -> None:
        names = [*self._unannounced]
        await self._store.announce(names)
        for name in names:
            del self._unannounced[name]
        self._dropped = False

    async def run(self) -> None:
        """Run until cancelled. A fault of the store is logged, and the next turn tries again."""
        self._cache.on_load = self._on_load
        self._runner.on_done = self._on_done
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            tasks.start_soon(self._repeat, self._following_signal, lambda: self._follower.behind, self._follow)
            tasks.start_soon(self._repeat, self._announcing_signal, lambda: bool(self._unannounced), self._announce)
            tasks.start_soon(self._watch_lease)
            if self._executes:
                tasks.start_soon(self._look_after)
                await self._repeat(self._work_signal, lambda: self._has_work, self._do_work)

    async def _listen(self) -> None:
        while True:
            with anyio.CancelScope() as self._listening:
                changes = await self._store.wait_for_changes(self._poll_seconds)
                self._follower.hear(changes)
                self.on_changes(changes)
                self._requests |= changes.requests
                self._queued |= changes.queued
                self._told |= changes.queued
                if self._follower.behind:
                    self._following_signal.notify()
                if self._has_work:
                    self._work_signal.notify()

    @property
    def _poll_seconds(self) -> float:
        return self._shared_poll_seconds if self._cache.has_shared else IDLE_POLL_SECONDS

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
        while self._follower.behind:
            await self._follower.catch_up()
            if self._follower.behind:  # a commit of this daemon is to be heard of first
                await anyio.sleep(self._shared_poll_seconds)

    @property
    def _has_work(self) -> bool:
        return self._requests or (self._queued and (self._room > 0 or bool(self._cache.claiming)))

    async def _do_work(self) -> None:
        """What is left undone because the store fails is due again with the next look."""
        if self._requests:
            self._requests = False
            await self._take_requests()
        else:
            told, self._queued, self._told = self._told, False, False
            if await self._claim(told):
                self._queued = self._told = True

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
                await self._try(self._begin_forgotten)
            self._work_signal.notify()
            await anyio.sleep(IDLE_POLL_SECONDS)

    @property
    def _room(self) -> int:
        """How many tasks it may take now. Those whose executions wait for their clients take no room."""
        runner = self._runner
        room = min(self._max_runs - runner.active + runner.asking, MAX_EXECUTIONS - runner.active)
        return 0 if self._draining else max(0, room)

    # -- requests ----------------------------------------------------------------------------------------------

    async def _take_requests(self) -> None:
        """Do what other daemons ask of the owner of their tasks."""
        async with self._lock:
            requests = await self._store.take_owner_requests()
            async with self._in_memory({each.task_id for each in requests}):
                for request in requests:
                    await self._attempt(partial(self._do, request))

    async def _do(self, request: OwnerRequest) -> None:
        match request.kind:
            case str(kind) if kind == MESSAGE:
                await self._receive(request)
            case str(kind) if kind == CANCEL:
                self._runner.spawn(self._cancel, request.task_id)
            case str(kind) if kind == ANSWER:
                async with self._up_to_date(request.task_id) as live:
                    if not (live.remote or live.lost):
                        take_answers(live, msgspec.json.decode(request.body))
            case str(kind) if kind == RELOAD_PUSH_TARGETS:
                await self._reload_push_targets(request.task_id)
            case _:
                pass

    @asynccontextmanager
    async def _in_memory(self, task_ids: Collection[str]) -> AsyncIterator[None]:
        """Load these tasks side by side, and keep them. Those that can't be loaded are missed by what needs them."""
        lives: list[LiveTask] = []

        async def load(task_id: str) -> None:
            with suppress(FailureError, StoreError):
                lives.append(await self._cache.pin(task_id, None))

        try:
            async with anyio.create_task_group() as loads:
                for task_id in task_ids:
                    loads.start_soon(load, task_id)
            yield
        finally:
            for live in lives:
                self._cache.unpin(live)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        """What can't be done for one task must not keep the others waiting."""
        done = await attempt(work)
        if isinstance(done, Raised) and not isinstance(done.exc, FailureError):
            # a FailureError says that the task is gone, or the message refused: its sender sends it again
            log_failure(done.exc)

    async def _receive(self, request: OwnerRequest) -> None:
        """Take a message for a task of this daemon. One that is not taken, its sender keeps: it sees who owns the task, sends the
        message again, or publishes it itself when the task has stopped. One that the executor refuses goes back to its sender."""
        try:
            event = decode_message(request.body)
        except msgspec.DecodeError as exc:  # another version of this program has left it
            return log.error("task.unreadable_request", task=request.task_id, exc=exc)
        call = event.call or CallFacts()
        async with self._up_to_date(request.task_id) as live:
            if not (live.remote or live.lost or live.ended or live.released or call.key in live.received):
                try:
                    self._runner.receive(live, event.message, call)
                except FailureError as exc:
                    if not isinstance(exc.failure, Overloaded):  # else it is sent again until there is room
                        live.publish(MessageRefused(call.key, encode_refusal(exc.failure)))

    async def _reload_push_targets(self, task_id: str) -> None:
        async with self._cache.pinned(task_id, None) as live:
            live.push_targets = await self._store.load_push_targets(task_id)

    async def _cancel(self, task_id: str) -> None:
        try:
            async with self._cache.pinned(task_id, None) as live:
                if not (live.ended or live.remote):
                    BOUND.set(LoggedTask(task_id))  # in the context variables of this task alone
                    await self._runner.cancel(live, RequestContext(live.task()))
        except (FailureError, TaskConflict):  # refused, or taken over: the daemon that asked watches the task
            pass
        except StoreError as exc:
            log_failure(exc)

    # -- tasks that have become this daemon's ------------------------------------------------------------------

    async def _begin(self, task_ids: Sequence[str]) -> None:
        """Go on with tasks of which this daemon is the owner now. What can't be begun is found by `_begin_forgotten`."""
        async with self._in_memory(task_ids):
            for task_id in task_ids:
                await self._attempt(partial(self._go_on, task_id))
        if task_ids:  # requests may have come with them
            self._requests = True

    async def _go_on(self, task_id: str) -> None:
        was_in_memory = self._cache.find(task_id, None) is not None
        async with self._up_to_date(task_id) as live:
            if was_in_memory:  # others may have changed them while it was theirs
                live.push_targets = await self._store.load_push_targets(task_id)
            self._runner.go_on(live)

    @asynccontextmanager
    async def _up_to_date(self, task_id: str) -> AsyncIterator[LiveTask]:
        """A task that this daemon owns, as the store says. It may be in memory as another one's."""
        async with AsyncExitStack() as pinned:
            live = await pinned.enter_async_context(self._cache.pinned(task_id, None))
            for _ in range(MAX_CATCH_UPS):
                while live.pending and live.lost is None and not live.owned:
                    await live.wait_for_change()
                if live.lost is None:
                    break
                live = await pinned.enter_async_context(self._cache.pinned(task_id, None))
            if live.shared:
                live.remote_owner = ""
                await self._follower.follow(live)
            yield live

    # -- the queue ---------------------------------------------------------------------------------------------

    async def _claim(self, told: bool) -> bool:
        """Begin some of the tasks that wait in the queue. Whether there may be more."""
        async with self._lock:
            limit = min(self._room, CLAIM_BATCH) or len(self._cache.claiming)  # a claim that failed may have been made
            if not limit:
                return False
            try:
                claimed = await self._claim_tasks(limit, told)
            except StoreUnavailableError:
                raise
            except BaseException:
                self._cache.end_claim()
                raise
            others = [each.task_id for each in claimed if not self._runner.take_claimed(each)]
            self._cache.end_claim()
            self._requests = self._requests or any(each.asked for each in claimed)
            await self._begin(others)
            return len(claimed) == limit

    async def _claim_tasks(self, limit: int, told: bool) -> Sequence[ClaimedTask]:
        """Claim tasks, in one commit with that they begin, where the store and the executor allow that."""
        store = self._store
        if self._runner.begins_with_claim and hasattr(
            type(store), "claim_begun"
        ):  # its own, not that of a store that it wraps
            claimed: Sequence[ClaimedTask] = await getattr(store, "claim_begun")(  # noqa: B009 - not of the Protocol
                limit, self._runner.begin_claimed, told=told
            )
            return claimed
        return [ClaimedTask(task_id) for task_id in await store.claim(limit)]

    # -- tasks without anybody ---------------------------------------------------------------------------------

    async def _adopt_orphans(self) -> None:
        while await self._adopt_some():
            pass

    async def _adopt_some(self) -> bool:
        """Take over some of the tasks of daemons that are dead. Whether there may be more.

        Another daemon may do the same now: each task's owner is read before the list of orphans is read again.
        """
        async with self._lock:
            limit = min(self._room, ADOPTION_BATCH) if self._runner.supports_resume else ADOPTION_BATCH
            if self._draining or not limit:
                return False
            listed = self._dead_for_long(await self._store.list_orphans())
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
                await self._begin([live.id for live in taken])
            finally:
                for live in lives:
                    self._cache.unpin(live)
            return len(found) == limit and bool(taken)

    def _dead_for_long(self, listed: Sequence[str]) -> Sequence[str]:
        """Return the tasks whose owner has been dead for as long as it may work on without knowing."""
        now = monotonic()
        self._dead_since = {task_id: self._dead_since.get(task_id, now) for task_id in listed}
        return [task_id for task_id, since in self._dead_since.items() if now - since >= self._store.grace_seconds]

    async def _pin_orphan(self, task_id: str, lives: list[LiveTask]) -> None:
        """Have the task in memory, with the owner that it has now, and add it to `lives`. Not one that can't be read, which must
        not keep the others waiting."""
        was_known = self._cache.find(task_id, None) is not None
        try:
            live = await self._cache.pin(task_id, None)
            lives.append(live)
            if was_known and live.remote:
                live.remote_owner = ""  # for `follow`, which asks
                await self._follower.follow(live)
        except (FailureError, StoreError) as exc:  # the task is gone, or can't be read
            if isinstance(exc, StoreError) and task_id not in self._unreadable:
                log_failure(exc)
            self._unreadable.add(task_id)
        else:
            self._unreadable.discard(task_id)

    async def _begin_forgotten(self) -> None:
        """Begin the tasks that this daemon owns without working on them, as it may after the store has failed. They must have
        been found so by the call before, too: some are about to be begun, or to be queued."""
        async with self._lock:
            owned = [task_id for task_id in await self._store.list_owned() if not self._works_on(task_id)]
            forgotten = [task_id for task_id in owned if task_id in self._forgotten]
            self._forgotten = frozenset(owned)
            await self._begin(forgotten)

    def _works_on(self, task_id: str) -> bool:
        live = self._cache.find(task_id, None)
        return self._runner.is_asleep(task_id) or (live is not None and (live.busy or bool(live.pending)))
