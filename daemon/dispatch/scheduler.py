"""Decides what runs when, for all clients of the process. Knows no ids and writes no answers.

Requests of one client start in the order in which they were read; clients take turns. Calls between operations go
first, because a running handler waits for them. Runs on the loop's thread; nothing here waits.
"""

from __future__ import annotations

from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...errors.failures import Failure, Overloaded, TimedOut
from ...lazy import anyio
from ..logs import log
from ..logs.logger import INLINE, bind
from ..memory import SMALL, MemoryBudget, decoded_size, reserve
from ..operations.context import Context
from ..operations.request import LOOP, THREADS, Backlog, Outcome, Request, Requester
from ..operations.spec import OperationSpec
from ..process.loop_watch import LoopWatch
from . import execution
from .task_pool import HandlerLoop, TaskPool, out_of_task
from .thread_pool import ThreadPool

if TYPE_CHECKING:
    from ..operations.request import Request


# Groups of requests of which only so many run at a time (`serial`, `keyed`): one after the other, in order.
#
# The notifications of a client are such a group too, and requests behind those of plain `def` handlers wait for them.


class _Group(msgspec.Struct, eq=False):
    running: int = 0
    waiting: deque[Request] = msgspec.field(default_factory=deque)


STARVED_SECONDS: Final = 1.0
"""Requests that only wait may depend on each other: a thousand callers may wait for an answer that only the next request
gives. As long as some of them end now and then the others wait for their turn; when none has ended for so many seconds, they are
refused."""


@final
class ConcurrencyGroups:
    """Lets as many requests of one group run at a time as their operation's `concurrency_limit` says.

    A request that waits for its turn holds up no request of another group. `refuse(request)` answers one that is starved.
    """

    def __init__(self, refuse: Callable[[Request], None]) -> None:
        self._refuse = refuse
        self._groups: dict[Hashable, _Group] = {}
        self._watched: set[Hashable] = set()
        self._moved: set[Hashable] = set()
        self._woken: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._groups)

    def enter(self, request: Request) -> bool:
        """Take a slot in the request's group; False when it has to wait, behind those that came before."""
        group = self._groups.setdefault(request.group, _Group())
        if group.running < request.spec.concurrency_limit:
            group.running += 1
            return True
        group.waiting.append(request)
        if request.spec.only_waits:
            self._watched.add(request.group)
            if self._woken is not None:
                self._woken.set()
        return False

    def leave(self, request: Request) -> Request | None:
        """Give the request's slot up; returns the request that has it from now on, if one waited."""
        group = self._groups[request.group]
        if request.group in self._watched:
            self._moved.add(request.group)
        if group.waiting:
            return group.waiting.popleft()
        group.running -= 1
        if not group.running:
            del self._groups[request.group]
        return None

    def withdraw(self, request: Request) -> None:
        """It waits for its turn no longer."""
        self._groups[request.group].waiting.remove(request)

    async def watch(self) -> None:
        """Refuse those that are starved, until cancelled. Looks once an interval while requests wait."""
        while True:
            if not self._watched:
                self._woken = anyio.Event()
                await self._woken.wait()
            self._moved.clear()
            await anyio.sleep(STARVED_SECONDS)
            for key in [*self._watched]:
                waiting = [*self._groups[key].waiting] if key in self._groups else []
                if key not in self._moved:
                    for request in waiting:
                        self._refuse(request)
                if key not in self._moved or not waiting:
                    self._watched.discard(key)


# When running requests must be answered at the latest. One sleeping task for all of them, no timer per request.


_FOREVER: Final = float("inf")


@final
class Deadlines:
    """Requests with a deadline, grouped by their time limit.

    Requests of one limit expire in the order in which they were added, so only the first of each needs a look, and
    adding and removing cost the same however many there are. `expire(request)` is called for each that is overdue.
    """

    def __init__(self, expire: Callable[[Request], None]) -> None:
        self._expire = expire
        self._by_limit: dict[float, dict[Request, None]] = {}
        self._wakes_at = _FOREVER
        self._wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._by_limit.values()))

    def add(self, request: Request, limit: float) -> None:
        """Expect an answer within `limit` seconds from now."""
        request.deadline = deadline = monotonic() + limit
        group = self._by_limit.get(limit)
        if group is None:
            group = self._by_limit[limit] = {}
        group[request] = None
        if deadline < self._wakes_at:
            self._wakes_at = deadline
            if self._wake is not None:
                self._wake()

    def remove(self, request: Request, limit: float) -> None:
        """The request has ended; nothing is expected any more."""
        del self._by_limit[limit][request]

    def _sweep(self) -> float:
        """Expire what is overdue; return when the next one is due."""
        now, following = monotonic(), _FOREVER
        for group in [*self._by_limit.values()]:  # what expires lets others begin, also with limits of their own
            for request in list(group):
                if request.ended_by is not None:
                    continue
                deadline = request.deadline or now
                if deadline > now:
                    following = min(following, deadline)
                    break
                self._expire(request)
        return following

    async def run(self) -> None:
        """Watch until cancelled. Not woken by each request: those that come later within a limit expire later."""
        while True:
            event = anyio.Event()
            self._wake = event.set
            with anyio.move_on_after(max(0.0, self._wakes_at - monotonic())):
                await event.wait()
            if self._wakes_at <= monotonic():
                self._wakes_at = _FOREVER  # what is added in the sweep sets it anew
                following = self._sweep()
                self._wakes_at = min(self._wakes_at, following)


MAX_STREAMS: Final = 1024
"""Subscriptions that may run at the same time; they don't count among the requests that do."""


@final
class Scheduler:
    """One per process. At most `limit` requests run on the loop at a time and `thread_limit` in worker threads, each for
    `request_timeout` seconds where its operation says nothing else (None: no limit); without `limits_time` none has a limit.
    `ordered` runs one at a time.

    `notify_loop()` is called from worker threads and must lead to `collect()` on the loop soon.
    """

    def __init__(
        self,
        *,
        limit: int,
        thread_limit: int,
        ordered: bool,
        request_timeout: float | None,
        limits_time: bool = True,
        memory: MemoryBudget,
        watch: LoopWatch,
        notify_loop: Callable[[], None],
    ) -> None:
        self._memory = memory
        memory.on_room.append(self.pump)
        self._large = 0
        self.ordered: Final = ordered
        self._limits = (1, 0) if ordered else (limit, thread_limit)
        self._running = [0, 0]
        self._ready: tuple[dict[Backlog, None], dict[Backlog, None]] = {}, {}
        self._request_timeout = request_timeout
        self._limits_time = limits_time
        self.on_flush: Final[list[Callable[[], None]]] = []
        """What sends the messages that were posted. Called before a task waits, so that many responses share one write."""
        self.on_progress: Final[list[Callable[[], None]]] = []
        """What is called when requests have started or ended: there may be room for more. Those stand here that wait for it."""
        self._requests: dict[Request, None] = {}
        self._inner: deque[Request] = deque()
        self._groups = ConcurrencyGroups(lambda request: self._end_late(request, Overloaded()))
        self._present: Counter[str] = Counter()
        self._streams = 0
        self._pumping = False
        self.progressed = False
        """Whether requests have started or ended since the last `flush`, which tells of it."""
        self._deadlines = Deadlines(lambda request: self._end_late(request, TimedOut()))
        self._loop = HandlerLoop(watch, self.flush)
        INLINE.thread = get_ident()  # the first calls are answered before there is a loop
        self._tasks = TaskPool(self._perform_in_task, self.flush)
        self.make_event: Final = self._tasks.make_event
        self.threads: Final = ThreadPool(thread_limit, perform=self._perform, finish=self._finish, notify=notify_loop)

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run in this task group from now on, with what was submitted before."""
        tasks.start_soon(self._deadlines.run)
        tasks.start_soon(self._groups.watch)
        self._tasks.start(tasks)
        INLINE.thread = get_ident()

    # -- what clients and handlers submit ----------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """True when nothing runs and nothing waits."""
        return not self._requests

    @property
    def rests(self) -> bool:
        """True when nothing runs but what only waits for its client, which another daemon can go on with."""
        return all(request.context_backend.rests for request in self._requests)

    def may_start_now(self, backlog: Backlog) -> bool:
        """True when a request that started at once would overtake none that this client sent before."""
        return (
            not (backlog.ready[LOOP] or self._tasks.waiting or backlog.last_notification)
            and self._running[LOOP] < self._limits[LOOP]
        )

    @property
    def streams_full(self) -> bool:
        """True when no more subscriptions may begin."""
        return self._streams >= MAX_STREAMS

    def at_limit(self, spec: OperationSpec) -> bool:
        """Whether as many requests of this operation are here as it declares."""
        return spec.limit is not None and self._present[spec.name] >= spec.limit

    def submit(self, request: Request, requester: Requester, backlog: Backlog) -> None:
        """Run it when its turn comes among those of the backlog, and have the outcome delivered to its requester.

        It may have begun, and even ended, when this returns: call `flush` then, if there was progress.
        """
        spec = request.spec
        request.requester, request.backlog, request.large = requester, backlog, request.size > SMALL
        request.takes_slot = spec.mode != "stream" and not spec.only_waits
        if spec.kind == "notification":
            self._submit(request, backlog)  # one group for all notifications of the client
        else:
            self._submit(request, None if spec.concurrency_group is None else execution.group_of(request))

    def submit_from_task(self, request: Request, requester: Requester, backlog: Backlog) -> None:
        """Submit a request as `submit` does, with the running task, if there is one, out of the reach of what begins."""
        if self._tasks.runs_none:
            self.submit(request, requester, backlog)
        else:
            out_of_task(lambda: self.submit(request, requester, backlog))

    def submit_inner(self, request: Request, requester: Requester) -> None:
        """Submit a call between operations, as `submit` does a client's.

        Raises `RuntimeError` for one that would wait in a concurrency group for a caller that waits for it.
        """
        request.requester, request.large = requester, request.size > SMALL
        group = execution.group_of(request)
        if group is not None and request.is_inside(group):
            raise RuntimeError(
                f"{request.spec.name} is called by a call of its own concurrency group, for which it would wait"
            )
        if self.at_limit(request.spec) or (request.spec.mode == "thread" and self.threads.exhausted):
            request.end(Overloaded())
        else:
            self._submit(request, group)
            self._tell_progress()

    def _submit(self, request: Request, group: Hashable) -> None:
        spec, backlog = request.spec, request.backlog
        request.since = monotonic()
        self._requests[request] = None
        request.pool = THREADS if spec.mode == "thread" and self._limits[THREADS] else LOOP
        if spec.limit is not None or spec.mode == "stream":
            self._count(spec, 1)
        request.group = group
        self._memory.add("requests", request.size)
        if backlog is not None and spec.kind != "notification" and self._may_begin(request, backlog):
            if group is None or self._groups.enter(request):
                backlog.open += 1
                return self._start(request, self._tasks.submit if self._tasks.in_burst else self._tasks.begin)
            backlog.add(request)
            request.withdraw = self._withdraw
            return None
        if backlog is not None:
            backlog.add(request)
            if spec.kind == "notification":
                backlog.notifications += 1
                if spec.mode != "async":  # a coroutine may wait for the client, and so for the requests behind it
                    backlog.last_notification = request
            elif backlog.last_notification is not None:
                return self._wait_behind(request, backlog.last_notification)
        if self._line_up(request):
            self._start_ready()

    def _may_begin(self, request: Request, backlog: Backlog) -> bool:
        """Whether nothing at all stands before it or holds it back, so that it need not be queued."""
        pool = request.pool
        return not (
            self._ready[pool]
            or self._pumping
            or request.large
            or backlog.last_notification is not None
            or self._running[pool] >= self._limits[pool]
        )

    def _line_up(self, request: Request) -> bool:
        """Take a slot in its group, if it has one. False when others stand before it, there or in the queue."""
        if request.group is None or self._groups.enter(request):
            return self._make_ready(request)
        request.withdraw = self._withdraw
        return False

    def _withdraw(self, request: Request) -> None:
        """Take out a request that was answered before its turn, so that it holds up no other one."""
        self._groups.withdraw(request)
        if request.backlog is not None:
            request.backlog.withdraw(request)
        request.group = None
        self._leave(request)
        self.pump()

    def requests(self) -> list[Request]:
        """Return the requests that wait or run, calls between operations among them."""
        return [*self._requests]

    def end(self, requests: Iterable[Request], failure: Failure) -> None:
        """End these requests with this failure, and tell their handlers to stop."""
        for request in requests:
            request.end(failure)
        self.flush()

    def collect(self) -> None:
        """Finish what the worker threads have done. Called on the loop after `notify_loop()`."""
        self.threads.collect()
        self.flush()

    def counts(self) -> dict[str, int]:
        """How much each table holds of requests that have not ended. All are 0 when nothing runs."""
        return {
            "requests": len(self._requests),
            "running": sum(self._running),
            "streams": self._streams,
            "ready": sum(map(len, self._ready)) + len(self._inner),
            "limited": sum(self._present.values()),
            "groups": len(self._groups),
            "deadlines": len(self._deadlines),
            "tasks_waiting": len(self._tasks.waiting),
            **self.threads.counts(),
        }

    def flush(self) -> None:
        """Send what was posted to any client, and tell of progress."""
        for flush in self.on_flush:
            flush()
        self._tasks.in_burst = False
        self._tell_progress()

    # -- waiting and starting ----------------------------------------------------------------------------------

    def pump(self) -> None:
        """Start what may start, now that there is room for more."""
        self.progressed = True
        self._start_ready()
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self.progressed and not self._pumping:
            self.progressed = False
            for tell in self.on_progress:
                tell()

    def _start_ready(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while (request := self._next()) is not None:
                if request.ended_by is None:
                    self._start(request, self._tasks.submit)
                else:
                    self._leave(request)
        finally:
            self._pumping = False

    def _next(self) -> Request | None:
        if self._inner:
            return self._inner.popleft()
        for pool, ready in enumerate(self._ready):
            if not ready:
                continue
            taken = self._running[pool] >= self._limits[pool]
            for backlog in ready:
                if backlog.output.congested:
                    continue
                request = backlog.ready[pool][0]
                if (taken and request.takes_slot) or (request.large and not self._has_memory(request)):
                    continue
                backlog.take(pool)
                if not backlog.ready[pool]:
                    del ready[backlog]
                elif len(ready) > 1:
                    ready[backlog] = ready.pop(backlog)  # behind the other clients
                return request
        return None

    def _has_memory(self, request: Request) -> bool:
        """Whether a large request may start, or be refused: it waits only for large ones that will soon end."""
        if not request.decoded_size:
            request.decoded_size = decoded_size(request.params, request.size)
        if not self._memory.fits(request.decoded_size - request.size) and request.ended_by is None:
            if self._large:
                return False
            request.end(Overloaded())
        return True

    def _make_ready(self, request: Request) -> bool:
        """Nothing holds it back any more. False when it stands behind another, which can't start yet."""
        request.withdraw = None
        if request.backlog is None:
            self._inner.append(request)
            return True
        self._ready[request.pool].setdefault(request.backlog)
        ready = request.backlog.ready[request.pool]
        ready.append(request)
        return len(ready) == 1

    def _start(self, request: Request, run_in_task: Callable[[Request], None]) -> None:
        spec = request.spec
        limit = self._request_timeout if isinstance(spec.timeout, msgspec.UnsetType) else spec.timeout
        if spec.mode == "inline" or not self._limits_time:
            limit = None  # nothing could interrupt an inline one
        request.limit = limit
        if request.large:
            self._memory.add("requests", request.decoded_size - request.size)
            self._large += _ends_soon(spec)
        self._running[request.pool] += request.takes_slot
        if limit is not None:
            self._deadlines.add(request, limit)
        if spec.mode in ("async", "stream") or self._tasks.waiting:  # what waits for a task was read before
            run_in_task(request)
        elif spec.mode == "thread":
            self.threads.submit(request)
        else:
            self._finish(request, self._perform_on_loop(request))

    def _finish(self, request: Request, outcome: Outcome) -> None:
        self._running[request.pool] -= request.takes_slot
        if request.limit is not None:
            self._deadlines.remove(request, request.limit)
        if request.large:
            self._memory.add("requests", request.size - request.decoded_size)
            self._large -= _ends_soon(request.spec)
        if request.ended_by is None:
            request.requester.deliver(request, outcome)
        else:
            with bind(request):
                log.debug("result.dropped", method=request.method)
        self._leave(request)
        if reserve.used:
            reserve.keep()
        self.progressed = True
        if self._inner or self._ready[LOOP] or self._ready[THREADS]:
            self._start_ready()

    def _leave(self, request: Request) -> None:
        spec, backlog = request.spec, request.backlog
        del self._requests[request]
        self._memory.add("requests", -request.size)
        if spec.limit is not None or spec.mode == "stream":
            self._count(spec, -1)
        if backlog is not None:
            backlog.open -= 1
            if spec.kind == "notification":
                backlog.notifications -= 1
                self._let_pass(request, backlog)
        if request.group is not None:
            following = self._groups.leave(request)
            if following is not None:
                self._make_ready(following)

    def _count(self, spec: OperationSpec, change: int) -> None:
        if spec.limit is not None:
            self._present[spec.name] += change
        if spec.mode == "stream":
            self._streams += change

    def _end_late(self, request: Request, failure: Failure) -> None:
        request.end(failure)
        if request.spec.mode == "thread" and isinstance(failure, TimedOut):
            with bind(request):
                log.warning("handler.overdue", method=request.method, seconds=request.limit)
        if request.spec.kind == "notification" and request.backlog is not None:
            self._let_pass(request, request.backlog)
            self.pump()
        self.flush()

    def _wait_behind(self, request: Request, notification: Request) -> None:
        if notification.behind is None:
            notification.behind = []
        notification.behind.append(request)

    def _let_pass(self, notification: Request, backlog: Backlog) -> None:
        """The requests behind this notification wait no longer: it has ended, or its time is over."""
        if backlog.last_notification is notification:
            backlog.last_notification = None
        waiting, notification.behind = notification.behind or [], None
        for request in waiting:
            self._line_up(request)

    async def _has_room(self, request: Request) -> bool:
        """Wait until the client has read enough of what it has; False when the request was ended meanwhile."""
        assert request.backlog is not None
        try:
            while request.backlog.output.congested and request.ended_by is None:
                self.flush()  # nothing that was posted may wait for the end of this wait
                await request.backlog.output.wait_for_room()
        except BaseException:  # noqa: BLE001 - the boundary: ended, or the daemon is; either way its task goes on to the next
            return False
        return True

    # -- running -----------------------------------------------------------------------------------------------

    def _perform(self, request: Request) -> Outcome:
        """A handler that is no coroutine: on the loop, or in a worker thread, where it may have waited for one."""
        return request.ended_by or execution.run(request, Context(request))

    def _perform_on_loop(self, request: Request) -> Outcome:
        """Run a request in the task that gave it its turn, which may be the writer's or another client's."""
        if request.ended_by is not None:
            return request.ended_by
        return self.run_now(request) if self._tasks.runs_none else out_of_task(lambda: self.run_now(request))

    def run_now(self, request: Request) -> Outcome:
        """Run a handler that is no coroutine, on the loop. The running task must be out of its reach."""
        watch = self._loop.watch
        before, watch.step = watch.step, (request.spec.name,)
        if watch.asleep:
            watch.look()
        outer, INLINE.call = INLINE.call, request
        outcome = execution.run(request, Context(request))
        INLINE.call = outer
        watch.step = before
        return outcome

    async def _perform_in_task(self, request: Request) -> None:
        if request.backlog is not None and request.backlog.output.congested and not await self._has_room(request):
            return self._finish(request, request.ended_by or Overloaded())
        if request.ended_by is not None:  # while it waited for a task
            return self._finish(request, request.ended_by)
        match request.spec.mode:
            case "async":
                outcome = await execution.run_async(request, Context(request), self._memory, self._loop)
                self._finish(request, outcome)
            case "stream":
                sink = request.requester.sink_of(request)
                outcome = await execution.run_stream(request, Context(request), sink, self._memory, self._loop)
                self._finish(request, outcome)
            case "thread":
                self.threads.submit(request)
            case "inline" | "forward":
                self._finish(request, self._perform_on_loop(request))


def _ends_soon(spec: OperationSpec) -> bool:
    """Whether others may wait for the memory that it holds: a subscription or a call that only waits may last for ever."""
    return spec.mode != "stream" and not spec.only_waits
