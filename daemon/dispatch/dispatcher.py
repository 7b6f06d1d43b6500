"""Takes the requests of one client: answers them at once, hands them to the scheduler, or refuses them. Nothing here waits.

An inline handler runs at once when nothing waits before it; everything else passes through the backlog.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, final

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import (
    Cancelled,
    Failure,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    Unavailable,
)
from ..logs import log
from ..logs.hooks import end_lines
from ..logs.logger import INLINE
from ..operations.access import Access
from ..operations.registry import Registry
from ..operations.request import BACKSLASH, Backlog, ContextBackend, Request, id_key
from ..operations.service import DeclarationError
from ..operations.spec import Forward, OperationSpec
from ..rpc.dialect import Dialect, Ignored
from ..rpc.envelope import STREAM_TAKEN
from .execution import refusal_of
from .metrics import RequestMetrics
from .responder import Responder
from .scheduler import Scheduler

if TYPE_CHECKING:
    from ..tracing import Tracing

REPLACEABLE: Final = frozenset({"initialize", "initialized", "shutdown"})
"""Methods of the daemon in whose place a service may put its own."""


@final
class Router:
    """Lookup and visibility, then access: the checks before input, in that order (section 6 of docs/protocol.md).

    `builtins` are the methods of this connection alone. Raises `DeclarationError` where `registry` declares one of them too
    that is not `REPLACEABLE`. Unless `named`, only the builtins are methods, and forward calls to what `registry` holds.
    """

    def __init__(self, builtins: Registry, registry: Registry, access: Access, *, named: bool = True) -> None:
        twice = (builtins.names - REPLACEABLE) & registry.names if named else ()
        if twice:
            raise DeclarationError(f"operations with names of the daemon's own methods: {', '.join(sorted(twice))}")
        self._builtins = builtins
        self._registry = registry
        self._named = named
        self._access = access

    def route(self, request: Request, access: Access | None = None) -> Failure | None:
        """Find the operation that a request means, or the reason why there is none. Never raises, whatever an identity
        provider does. A method that forwards leaves the target's name and params in the request.

        `access` is that of one caller, where it is known already.
        """
        access = access or self._access
        spec = (self._registry if self._named else self._builtins).by_name.get(request.method)
        if spec is None or spec.visibility != "external":
            spec = self._find(request.method) if self._named else self._builtins.find(request.method)
            if spec is None:
                return MethodNotFound()
        target: Forward | None = None
        if spec.mode == "forward":
            outer, INLINE.call = INLINE.call, request  # classes of the app may log while they are decoded
            try:
                forward: Forward = spec.invoke(None, spec.input.decode(request.params))
            except FailureError as exc:
                return exc.failure
            finally:
                INLINE.call = outer
                if INLINE.printed:
                    end_lines()
            target = forward
            spec = self._find(forward.method)
            if spec is None or spec.mode == "forward":
                return MethodNotFound()
            if request.span is not None:
                request.span.lead_to(forward.name or spec.name)
        if not access.unrestricted or spec.admits is not None:
            refusal = refusal_of(access, request, spec)
            if refusal is not None:
                return refusal
        if target is not None:
            if target.subscribe is not None and (spec.kind == "subscription") != target.subscribe:
                return OperationTypeMismatch()
            spec = _forward(request, target, spec)
        request.spec = spec
        request.identity = access.only_caller
        return None

    def name_of(self, request: Request) -> str | None:
        """The declared name of the operation that a request names; None where there is none that can be called."""
        spec = self._find(request.method) if self._named else self._builtins.find(request.method)
        return None if spec is None else spec.name

    def _find(self, method: str) -> OperationSpec | None:
        return self._registry.find(method) or self._builtins.find(method)


def _forward(request: Request, target: Forward, spec: OperationSpec) -> OperationSpec:
    request.method = target.logged or spec.name
    request.params = None if bytes(target.params) == b"null" else target.params
    request.prefix = target.prefix
    request.rendering = target.rendering
    request.progress_token = target.progress_token
    return replace(spec, timeout=None) if target.patient and isinstance(spec.timeout, UnsetType) else spec


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
        backlog: Backlog,
        context_backend: ContextBackend,
        dialect: Dialect,
        metrics: RequestMetrics,
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
        self._unanswered = responder.waiting
        self._closed = False

    def close(self) -> None:
        """From now on whatever is read is answered with UNAVAILABLE. What was accepted goes on."""
        self._closed = True

    def accept(self, request: Request) -> None:
        """Take a request: run it, queue it, or refuse it."""
        if request.id is not None and self._unanswered and self._responder.find(request.id) is not None:
            return self._responder.refuse(request.id, InvalidRequest("duplicate-id"))
        cancels = request.method in self._dialect.cancellations
        if cancels and request.id is None:
            return self._cancel(request)
        if self._tracing is not None:
            self._begin_span(self._tracing, request)
        verdict = None if self._receive is None else self._receive(request)
        if verdict is not None:
            return None if isinstance(verdict, Ignored) else self.refuse(request, verdict)
        if cancels:  # normally a notification; sent as a request, it is answered like one
            self._cancel(request)
            return self._responder.result(request, b"null")
        failure = self._router.route(request, self._access)
        if failure is not None:
            return self._refuse_unrouted(request, failure)
        spec = request.spec
        request.context_backend = self._context_backend
        if spec.immediate == "always":
            return self._run_inline(request)
        if self._closed:
            return self.refuse(request, Unavailable())
        if spec.mode == "inline" and spec.concurrency_group is None and self._may_start_now(spec):
            return self._run_inline(request)
        self._enqueue(request)

    def _begin_span(self, tracing: Tracing, request: Request) -> None:
        """Begin the request's span, which ends with the outcome. An ignored notification never ends, so its span is not seen."""
        dialect, meta = self._dialect, self._dialect.trace_meta(request)
        request.span = tracing.request(
            self._router.name_of(request), request.metadata, meta=meta, method_attribute=dialect.method_attribute
        )

    def _may_start_now(self, spec: OperationSpec) -> bool:
        if spec.immediate == "unordered" and not self._scheduler.ordered:
            return True
        if spec.kind == "notification" and self._backlog.notifications:
            return False
        return self._scheduler.may_start_now(self._backlog)

    def _enqueue(self, request: Request) -> None:
        spec = request.spec
        if spec.mode == "stream" and (request.id is None or self._scheduler.streams_full):
            return self.refuse(request, Overloaded())  # events of a notification would belong to nothing
        if spec.limit is not None and self._scheduler.at_limit(spec):
            return self.refuse(request, Overloaded())
        if request.id is not None:
            request.key = id_key(request.id) if BACKSLASH in request.id else request.id
            self._unanswered[request.key] = request
        self._scheduler.submit(request, self._responder, self._backlog)

    def _refuse_unrouted(self, request: Request, failure: Failure) -> None:
        if request.id is None and request.method == STREAM_TAKEN:
            self._take_events(request)
        elif request.id is None and request.method.startswith("$/") and isinstance(failure, MethodNotFound):
            log.debug("notification.ignored", method=request.method)  # what a client may send to any server
        else:
            self.refuse(request, Unavailable() if self._closed else failure)

    def refuse(self, request: Request, failure: Failure) -> None:
        """Answer a request that is not even looked at, or that does not run."""
        if self._tracing is not None and request.span is None:
            self._begin_span(self._tracing, request)
        self._metrics.refused(self._router.name_of(request), failure)
        self._responder.fail(request, failure)

    def _run_inline(self, request: Request) -> None:
        inline = self._metrics.inline
        if not inline:
            self._metrics.since = monotonic()
        inline.append(request.spec.name)
        outcome = self._scheduler.run_now(request)
        if isinstance(outcome, bytes):
            self._responder.result(request, outcome)
        else:
            self._metrics.inline_failed(request.spec.name, outcome)
            self._responder.fail(request, outcome)

    def _take_events(self, request: Request) -> None:
        """Params of any other shape are ignored."""
        try:
            taken = decoder_for(_Taken)(request.params or b"")
            self._responder.take_until(bytes(taken.id), taken.seq)
        except DECODE_ERRORS:
            return

    def _cancel(self, request: Request) -> None:
        """Unknown ids and params of any other shape are ignored."""
        member = self._dialect.cancellations[request.method]
        try:
            wanted = decoder_for(dict[str, msgspec.Raw])(request.params or b"").get(member)
            cancelled = None if wanted is None else self._responder.find(bytes(wanted))
        except DECODE_ERRORS:
            return
        if cancelled is not None:
            self._dialect.note_cancel(cancelled, request.params)
            cancelled.end(Cancelled())
