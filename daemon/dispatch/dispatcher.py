"""Decides what runs when, and gives every request its one answer.

Requests start in the order in which they were read. An inline handler runs at once when nothing waits before it;
everything else passes through the backlog. Runs on the loop's thread; nothing here waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, final

import msgspec
from msgspec import UNSET

from ...errors.failures import (
    Cancelled,
    Failure,
    InvalidRequest,
    Overloaded,
    TimedOut,
    Unavailable,
)
from ...errors.wire import encode_error
from ..connection.request_log import note_failure, note_unanswered
from ..connection.writer import Writer
from ..operations.context import Context, Host
from ..operations.spec import OperationSpec
from ..rpc import envelope
from ..rpc.envelope import Call
from ..rpc.inflight import Inflight, id_key
from . import execution
from .backlog import STRETCH, Backlog
from .deadlines import Deadlines
from .request import Request
from .router import Router
from .starvation import StarvationWatch
from .task_pool import TaskPool
from .thread_pool import ThreadPool

MOST_STREAMS: Final = 1024
"""Subscriptions that may run at the same time; they don't count among the requests that do."""

CANCEL: Final = "$/cancelRequest"


class _CancelParams(msgspec.Struct):
    id: msgspec.Raw


@final
class Dispatcher:
    """One per daemon. `notify_loop()` is called from worker threads and must lead to `collect()` on the loop soon."""

    def __init__(
        self,
        router: Router,
        outbox: Writer,
        host: Host,
        *,
        limit: int,
        request_timeout: float | None,
        notify_loop: Callable[[], None],
    ) -> None:
        self._router = router
        self._outbox = outbox
        self._host = host
        self._limit = limit
        self._request_timeout = request_timeout
        self._inflight: Inflight[Request] = Inflight()
        self._backlog = Backlog()
        self._running: dict[Request, float | None] = {}
        self._places = 0
        self._streaming = 0
        self._present: Counter[str] = Counter()
        self._pumping = False
        self._closed = False
        self.deadlines = Deadlines(self._expire)
        self.patience = StarvationWatch(self._backlog, lambda request: self._end(request, Overloaded()))
        self.workers = TaskPool(self._perform_in_task, outbox.flush)
        self.threads = ThreadPool(limit, perform=self._perform, finish=self._finish, notify=notify_loop)
        self.on_change: Callable[[], None] = lambda: None
        self.awaits_client: Callable[[], bool] = lambda: False

    # -- what the reader sees ----------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """True while nothing more should be read."""
        return self._outbox.congested or self._backlog.full(times=STRETCH if self.awaits_client() else 1)

    @property
    def idle(self) -> bool:
        """True when nothing runs and nothing waits."""
        return not (self._running or self._backlog)

    @property
    def unanswered(self) -> int:
        """How many requests still wait for their answer."""
        return len(self._inflight)

    @property
    def _nothing_before(self) -> bool:
        """True when a request that may start now would not overtake one that was read before."""
        return not (self._backlog.ready or self.workers.waiting) and self._places < self._limit

    def accept(self, call: Call) -> None:
        """Take a call: run it, queue it, or refuse it."""
        if call.method == CANCEL:
            return self._take_cancel(call)
        route = execution.route(self._router, call)
        if not isinstance(route, tuple):
            return self._answer(call, Unavailable() if self._closed else route)
        call, spec = route
        if spec.immediate:
            return self._run_inline(call, spec)
        if self._closed:
            return self._answer(call, Unavailable())
        if spec.mode == "inline" and spec.concurrency_group is None and self._nothing_before:
            return self._run_inline(call, spec)
        self._enqueue(Request(call, spec))

    def refuse(self, call_id: bytes, failure: Failure) -> None:
        """Answer what never became a call."""
        note_failure(None, call_id, failure)
        self.say(call_id, failure)

    def say(self, call_id: bytes, failure: Failure) -> None:
        """Send an error for something that is in no table and in the log already."""
        self._outbox.post(envelope.encode_error(call_id, encode_error(failure)))

    def close(self) -> None:
        """From now on whatever is read is answered with UNAVAILABLE. What was accepted goes on."""
        self._closed = True

    def abandon(self) -> None:
        """The drain window has closed: answer everything that still waits or runs, and tell it to stop."""
        for request in self._inflight:
            self._end(request, Unavailable())
        for request in [*self._backlog.everything(), *self._running]:  # notifications among them
            request.end(Unavailable())
        self._outbox.flush()

    def collect(self) -> None:
        """Finish what the worker threads have done. Called on the loop after `notify_loop()`."""
        self.threads.collect()
        self._outbox.flush()

    def call(self, request: Request) -> None:
        """Run a call between operations; `request.on_done` gets its outcome.

        Raises `RuntimeError` for one that would wait in its lane for a caller that waits for it.
        """
        lane = self._lane_of(request)
        if lane is not None and request.waits_for(lane):
            raise RuntimeError(f"{request.spec.name} is called by a call that holds its lane")
        if self._at_limit(request.spec):
            request.end(Overloaded())
        else:
            self._queue(request)

    # -- waiting and starting ----------------------------------------------------------------------------------

    def _enqueue(self, request: Request) -> None:
        call, spec = request.call, request.spec
        if spec.mode == "stream" and (call.id is None or self._streaming >= MOST_STREAMS):
            return self._answer(call, Overloaded())  # events of a notification would belong to nothing
        if self._at_limit(spec):
            return self._answer(call, Overloaded())
        if call.id is not None and not self._inflight.admit(request):
            return self.refuse(call.id, InvalidRequest("duplicate-id"))
        self._queue(request)

    def _at_limit(self, spec: OperationSpec) -> bool:
        return spec.limit is not None and self._present[spec.name] >= spec.limit

    def _queue(self, request: Request) -> None:
        self._count(request, 1)
        request.lane = self._lane_of(request)
        self._backlog.put(request)
        if request.spec.only_waits:
            self.patience.put(request)
        self.pump()

    def _count(self, request: Request, change: int) -> None:
        if request.spec.limit is not None:
            self._present[request.spec.name] += change
        if request.spec.mode == "stream":
            self._streaming += change

    def _lane_of(self, request: Request) -> Hashable:
        spec = request.spec
        group = spec.concurrency_group
        return execution.lane_of(spec, request.call) if isinstance(group, str) else spec.name if group else None

    def pump(self) -> None:
        """Start what may start. Called whenever a place or room for replies became free."""
        if self._pumping:
            return
        self._pumping = True
        while self._backlog.ready and not self._outbox.congested:
            request = self._backlog.take(any_place=self._places < self._limit)
            if request is None:
                break
            if request.ended_by is None:
                self._start(request)
            else:
                self._leave(request)
        self._pumping = False
        self.on_change()

    def _start(self, request: Request) -> None:
        spec = request.spec
        limit = self._request_timeout if spec.timeout is UNSET else spec.timeout
        if spec.mode == "inline":
            limit = None  # nothing could interrupt it
        self._running[request] = limit
        self._places += request.takes_a_place
        if limit is not None:
            self.deadlines.add(request, limit)
        if spec.mode in ("async", "stream") or self.workers.waiting:  # what waits for a task was read before
            self.workers.submit(request)
        elif spec.mode == "thread":
            self.threads.submit(request)
        else:
            self._finish(request, self._perform(request))

    def _finish(self, request: Request, outcome: execution.Outcome) -> None:
        limit = self._running.pop(request)
        if request.spec.only_waits:
            self.patience.left(request)
        self._places -= request.takes_a_place
        if limit is not None:
            self.deadlines.remove(request, limit)
        if request.on_done is not None:
            request.on_done(outcome)
        else:
            self._settle(request, outcome)
        self._leave(request)
        self.pump()

    def _leave(self, request: Request) -> None:
        self._count(request, -1)
        self._backlog.leave(request)

    # -- running -----------------------------------------------------------------------------------------------

    def _context(self, request: Request) -> Context:
        return Context(request.spec, request.call, self._host, request)

    def _run_inline(self, call: Call, spec: OperationSpec) -> None:
        if call.id is not None and len(self._inflight) and id_key(call.id) in self._inflight:
            return self.refuse(call.id, InvalidRequest("duplicate-id"))
        outcome = execution.run(spec, call, Context(spec, call, self._host))
        if not isinstance(outcome, bytes):
            self._answer(call, outcome)
        elif call.id is not None:
            self._outbox.post(envelope.encode_result(call.id, outcome))

    def _perform(self, request: Request) -> execution.Outcome:
        """A handler that is no coroutine: on the loop, or in a worker thread, where it may have waited for one."""
        return request.ended_by or execution.run(request.spec, request.call, self._context(request))

    async def _perform_in_task(self, request: Request) -> None:
        if request.ended_by is not None:  # while it waited for a task
            return self._finish(request, request.ended_by)
        flush = self._outbox.flush
        match request.spec.mode:
            case "async":
                self._finish(request, await execution.run_async(request, self._context(request), flush))
            case "stream":
                sink = request.sink
                if sink is None:
                    sink = request.stream = self._outbox.streams.open(request.call.id or envelope.NULL_ID)
                self._finish(request, await execution.run_stream(request, self._context(request), sink, flush))
            case "thread":
                self.threads.submit(request)
            case "inline":
                self._finish(request, self._perform(request))

    # -- answers -----------------------------------------------------------------------------------------------

    def _settle(self, request: Request, outcome: execution.Outcome) -> None:
        call = request.call
        if call.id is None:
            if not isinstance(outcome, bytes):
                note_failure(call.method, None, outcome)
        elif not self._inflight.settle(request, hold=request.stream is not None):
            note_unanswered(call)
        elif isinstance(outcome, bytes):
            self._respond(request, envelope.encode_result(call.id, outcome))
        else:
            note_failure(call.method, call.id, outcome)
            self._respond(request, envelope.encode_error(call.id, encode_error(outcome)))

    def _respond(self, request: Request, response: bytes) -> None:
        if request.stream is None:
            self._outbox.post(response)
        else:
            request.stream.finish(response, lambda: self._inflight.release(request))

    def _answer(self, call: Call, failure: Failure) -> None:
        note_failure(call.method, call.id, failure)
        if call.id is not None:
            self.say(call.id, failure)

    def _end(self, request: Request, failure: Failure) -> None:
        """Answer before the handler does, and tell it to stop."""
        if request.call.id is not None and self._inflight.settle(request):
            if request.stream is not None:
                request.stream.discard()
            self._answer(request.call, failure)
        request.end(failure)

    def _expire(self, request: Request) -> None:
        self._end(request, TimedOut())
        self._outbox.flush()

    def _take_cancel(self, call: Call) -> None:
        """A notification by rights; sent as a request, it is answered like one."""
        if call.id is not None and id_key(call.id) in self._inflight:
            return self.refuse(call.id, InvalidRequest("duplicate-id"))
        self._cancel(call)
        if call.id is not None:
            self._outbox.post(envelope.encode_result(call.id, b"null"))

    def _cancel(self, call: Call) -> None:
        """LSP's `$/cancelRequest`: unknown ids and params of any other shape are ignored."""
        try:
            wanted = msgspec.json.decode(call.params or b"", type=_CancelParams).id
        except msgspec.DecodeError:
            return
        request = self._inflight.find(id_key(bytes(wanted)))
        if request is not None:
            self._end(request, Cancelled())
