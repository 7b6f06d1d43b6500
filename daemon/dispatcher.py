"""Decides what runs when, and gives every request its one answer.

Requests start in the order in which they were read. An inline handler runs at once when nothing waits before it;
everything else passes through the backlog. Runs on the loop's thread; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, final

import msgspec

from ..errors.exceptions import FailureError
from ..errors.failures import (
    Cancelled,
    Failure,
    InvalidRequest,
    MethodNotFound,
    TimedOut,
    Unavailable,
)
from ..errors.wire import encode_error
from . import boundary
from .backlog import Backlog
from .deadlines import Deadlines
from .journal import note_failure, note_unanswered
from .operations.context import Context, Host
from .operations.registry import Registry
from .operations.spec import DefaultTimeout, OperationSpec
from .outbox import Outbox
from .request import Request
from .rpc import envelope
from .rpc.envelope import Call
from .rpc.inflight import Inflight, id_key
from .threads import Threads
from .workers import Workers

CANCEL: Final = "$/cancelRequest"


class _CancelParams(msgspec.Struct):
    id: msgspec.Raw


@final
class Dispatcher:
    """One per daemon. `notify_loop()` is called from worker threads and must lead to `collect()` on the loop soon."""

    def __init__(
        self,
        registry: Registry,
        outbox: Outbox,
        host: Host,
        *,
        limit: int,
        request_timeout: float | None,
        notify_loop: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._outbox = outbox
        self._host = host
        self._limit = limit
        self._request_timeout = request_timeout
        self._inflight: Inflight[Request] = Inflight()
        self._backlog = Backlog()
        self._running: dict[Request, float | None] = {}
        self._pumping = False
        self._closed = False
        self.deadlines = Deadlines(self._expire)
        self.workers = Workers(self._perform_in_task, outbox.flush)
        self.threads = Threads(limit, perform=self._perform, finish=self._finish, notify=notify_loop)
        self.on_change: Callable[[], None] = lambda: None

    # -- what the reader sees ----------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """True while nothing more should be read."""
        return self._outbox.congested or self._backlog.full

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
        return not (self._backlog.ready or self.workers.waiting) and len(self._running) < self._limit

    def accept(self, call: Call) -> None:
        """Take a call: run it, queue it, or refuse it."""
        method = call.method
        if method == CANCEL:
            return self._cancel(call)
        spec = self._registry.find(method)
        if spec is not None and spec.at_once:
            return self._run_inline(call, spec)
        if self._closed:
            return self._answer(call, Unavailable())
        if spec is None:
            return self._answer(call, MethodNotFound())
        if spec.mode == "inline" and spec.lane is None and self._nothing_before:
            return self._run_inline(call, spec)
        self._enqueue(Request(call, spec))

    def refuse(self, call_id: bytes, failure: Failure) -> None:
        """Answer what never became a call."""
        note_failure(None, call_id, failure)
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

    # -- the queue ---------------------------------------------------------------------------------------------

    def _enqueue(self, request: Request) -> None:
        if request.call.id is not None and not self._inflight.admit(request):
            return self.refuse(request.call.id, InvalidRequest("duplicate-id"))
        request.lane = self._lane_of(request)
        self._backlog.put(request)
        self.pump()

    def _lane_of(self, request: Request) -> Hashable:
        spec = request.spec
        if spec.lane is None:
            return None
        try:
            return spec.lane_of(spec.input.decode(request.call.params))
        except FailureError:  # it never reaches its handler
            return None

    def pump(self) -> None:
        """Start what may start. Called whenever a place or room for replies became free."""
        if self._pumping:
            return
        self._pumping = True
        while self._backlog.ready and len(self._running) < self._limit and not self._outbox.congested:
            request = self._backlog.take()
            if request.ended_by is None:
                self._start(request)
            else:
                self._backlog.leave(request)
        self._pumping = False
        self.on_change()

    def _start(self, request: Request) -> None:
        spec = request.spec
        limit = self._request_timeout if isinstance(spec.timeout, DefaultTimeout) else spec.timeout
        if spec.mode == "inline":
            limit = None  # nothing could interrupt it
        self._running[request] = limit
        if limit is not None:
            self.deadlines.add(request, limit)
        if spec.mode == "async" or self.workers.waiting:  # what waits for a task was read before
            self.workers.submit(request)
        elif spec.mode == "thread":
            self.threads.submit(request)
        else:
            self._finish(request, self._perform(request))

    def _finish(self, request: Request, outcome: boundary.Outcome) -> None:
        limit = self._running.pop(request)
        if limit is not None:
            self.deadlines.remove(request, limit)
        self._settle(request, outcome)
        self._backlog.leave(request)
        self.pump()

    # -- running -----------------------------------------------------------------------------------------------

    def _context(self, request: Request) -> Context:
        return Context(request.spec.name, request.call, self._host, request)

    def _run_inline(self, call: Call, spec: OperationSpec) -> None:
        if call.id is not None and len(self._inflight) and id_key(call.id) in self._inflight:
            return self.refuse(call.id, InvalidRequest("duplicate-id"))
        outcome = boundary.run(spec, call, Context(spec.name, call, self._host))
        if isinstance(outcome, bytes) and call.id is not None:
            self._outbox.post(envelope.encode_result(call.id, outcome))
        elif not isinstance(outcome, bytes):
            self._answer(call, outcome)

    def _perform(self, request: Request) -> boundary.Outcome:
        """A handler that is no coroutine: on the loop, or in a worker thread."""
        return boundary.run(request.spec, request.call, self._context(request))

    async def _perform_in_task(self, request: Request) -> None:
        match request.spec.mode:
            case "async":
                outcome = await boundary.run_async(request, self._context(request), self._outbox.flush)
                self._finish(request, outcome)
            case "thread":
                self.threads.submit(request)
            case "inline":
                self._finish(request, self._perform(request))

    # -- answers -----------------------------------------------------------------------------------------------

    def _settle(self, request: Request, outcome: boundary.Outcome) -> None:
        call = request.call
        if call.id is None:
            if not isinstance(outcome, bytes):
                note_failure(call.method, None, outcome)
        elif self._inflight.settle(request):
            if isinstance(outcome, bytes):
                self._outbox.post(envelope.encode_result(call.id, outcome))
            else:
                self._answer(call, outcome)
        else:
            note_unanswered(call)

    def _answer(self, call: Call, failure: Failure) -> None:
        note_failure(call.method, call.id, failure)
        if call.id is not None:
            self._outbox.post(envelope.encode_error(call.id, encode_error(failure)))

    def _end(self, request: Request, failure: Failure) -> None:
        """Answer before the handler does, and tell it to stop."""
        if request.call.id is not None and self._inflight.settle(request):
            self._answer(request.call, failure)
        request.end(failure)

    def _expire(self, request: Request) -> None:
        self._end(request, TimedOut())
        self._outbox.flush()

    def _cancel(self, call: Call) -> None:
        """LSP's `$/cancelRequest`: unknown ids and params of any other shape are ignored."""
        try:
            wanted = msgspec.json.decode(call.params or b"", type=_CancelParams).id
        except msgspec.DecodeError:
            return
        request = self._inflight.find(id_key(bytes(wanted)))
        if request is not None:
            self._end(request, Cancelled())
