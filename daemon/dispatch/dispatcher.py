"""Takes the calls of one client: answers them at once, hands them to the scheduler, or refuses them. Nothing here waits.

An inline handler runs at once when nothing waits before it; everything else passes through the backlog.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, final

import msgspec

from ...errors.decoders import decoder_for
from ...errors.failures import Cancelled, Failure, MethodNotFound, Overloaded, Unavailable
from ..operations.access import Access
from ..operations.context import Context, ContextBackend
from ..operations.spec import OperationSpec
from ..rpc.dialect import Dialect, Ignored
from ..rpc.envelope import STREAM_TAKEN, Call, Message
from .backlog import Backlog
from .execution import Router
from .request import Request, RequestCounts
from .responder import Responder, note_ignored
from .scheduler import Scheduler

if TYPE_CHECKING:
    from ..tracing import Tracing


class _Taken(msgspec.Struct):
    """The params of `STREAM_TAKEN`."""

    id: msgspec.Raw
    seq: int


@final
class Dispatcher:
    """One per client, or per request where each says anew who calls: `access` is that of one caller."""

    def __init__(  # noqa: PLR0913 - one per client: what it has, and what all share
        self,
        router: Router,
        responder: Responder,
        scheduler: Scheduler,
        backlog: Backlog[Request],
        context_backend: ContextBackend,
        dialect: Dialect,
        metrics: RequestCounts,
        *,
        access: Access | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._router = router
        self._responder = responder
        self._scheduler = scheduler
        self._backlog = backlog
        self._context_backend = context_backend
        self._dialect = dialect
        self._metrics = metrics
        self._access = access
        self._tracing = tracing
        self._receive = dialect.receive if type(dialect).receive is not Dialect.receive else None
        self._unanswered = responder.inflight.waiting
        self._closed = False

    def close(self) -> None:
        """From now on whatever is read is answered with UNAVAILABLE. What was accepted goes on."""
        self._closed = True

    def read_again(self, body: bytes) -> Message | None:
        """What the dialect makes of a body that is no JSON."""
        return self._dialect.read_again(body)

    def accept(self, call: Call) -> None:
        """Take a call: run it, queue it, or refuse it."""
        if call.id is not None and self._unanswered and self._responder.in_flight(call.id):
            return self._responder.refuse_duplicate(call.id)
        cancels = call.method in self._dialect.cancellations
        if cancels and call.id is None:
            return self._cancel(call)
        if self._tracing is not None:
            self._begin_span(self._tracing, call)
        verdict = None if self._receive is None else self._receive(call)
        if verdict is not None:
            return None if isinstance(verdict, Ignored) else self.refuse(call, verdict)
        if cancels:  # normally a notification; sent as a request, it is answered like one
            self._cancel(call)
            return self._responder.result(call, b"null")
        route = self._router.route(call, self._access)
        if not isinstance(route, tuple):
            if call.id is None and call.method == STREAM_TAKEN:
                return self._take_events(call)
            if call.id is None and call.method.startswith("$/") and isinstance(route, MethodNotFound):
                return note_ignored(call)  # what a client may send to any server
            return self.refuse(call, Unavailable() if self._closed else route)
        call, spec = route
        if spec.immediate == "always":
            return self._run_inline(call, spec)
        if self._closed:
            return self.refuse(call, Unavailable())
        if spec.mode == "inline" and spec.concurrency_group is None and self._may_start_now(spec):
            return self._run_inline(call, spec)
        self._enqueue(call, spec)

    def _begin_span(self, tracing: Tracing, call: Call) -> None:
        """It ends with the call's answer. That of a notification which is ignored never ends, so nobody sees it."""
        dialect, meta = self._dialect, self._dialect.trace_meta(call)
        call.span = tracing.request(
            self._router.name_of(call), call.metadata, meta=meta, method_attribute=dialect.method_attribute
        )

    def _may_start_now(self, spec: OperationSpec) -> bool:
        if spec.immediate == "unordered" and not self._scheduler.ordered:
            return True
        if spec.kind == "notification" and self._backlog.notifications:
            return False
        return self._scheduler.may_start_now(self._backlog)

    def _enqueue(self, call: Call, spec: OperationSpec) -> None:
        if spec.mode == "stream" and (call.id is None or self._scheduler.streams_full):
            return self.refuse(call, Overloaded())  # events of a notification would belong to nothing
        if spec.limit is not None and self._scheduler.at_limit(spec):
            return self.refuse(call, Overloaded())
        request = Request(call, spec, self._responder, self._context_backend, self._backlog)
        if call.id is not None:
            self._unanswered[request.key] = request
        self._scheduler.submit(request)

    def refuse(self, call: Call, failure: Failure) -> None:
        """Answer a call that is not even looked at, or that does not run."""
        if self._tracing is not None and call.span is None:
            self._begin_span(self._tracing, call)
        self._metrics.refused(self._router.name_of(call), failure)
        self._responder.fail(call, failure)

    def _run_inline(self, call: Call, spec: OperationSpec) -> None:
        inline = self._metrics.inline
        if not inline:
            self._metrics.since = monotonic()
        inline.append(spec.name)
        outcome = self._scheduler.run_now(spec, call, Context(spec, call, self._context_backend))
        if isinstance(outcome, bytes):
            self._responder.result(call, outcome)
        else:
            self._metrics.inline_failed(spec, outcome)
            self._responder.fail(call, outcome)

    def _take_events(self, call: Call) -> None:
        """Params of any other shape are ignored."""
        try:
            taken = decoder_for(_Taken)(call.params or b"")
            self._responder.take_until(bytes(taken.id), taken.seq)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return

    def _cancel(self, call: Call) -> None:
        """Unknown ids and params of any other shape are ignored."""
        try:
            wanted = decoder_for(dict[str, msgspec.Raw])(call.params or b"").get(
                self._dialect.cancellations[call.method]
            )
            if wanted is None:
                return
            request = self._responder.find(bytes(wanted))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if request is not None:
            request.end(Cancelled())
