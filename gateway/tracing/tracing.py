"""Starts the spans of one host, and chooses their parents and names. Reads no settings and exports nothing.

The current span is a context variable. Requests over a byte stream and the daemon's own work have no parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, SpanKind

from ...daemon.logs import log
from ...daemon.tracing import HTTP_STATUS
from ...otel import trace_calls
from ...version import __version__
from .http_request import HTTP_REQUEST, HttpRequest
from .problems import note_fault
from .provider import ensure_provider, flush
from .span import (
    DB_BATCH,
    DB_OPERATION,
    DB_SYSTEM,
    GEN_AI_AGENT,
    GEN_AI_OPERATION,
    HTTP_METHOD,
    HTTP_RESEND,
    JSONRPC,
    OTHER,
    RPC_METHOD,
    TASK_ID,
    Attributes,
    Span,
    log_fields,
    of_jsonrpc,
)
from .trace_context import TRACEPARENT, read_parent, write_parent

if TYPE_CHECKING:
    from ..asgi import Scope

Origin: TypeAlias = trace.SpanContext | None
"""The span in which something was asked for that is done later; None where there was none."""

MAX_LINKS: Final = 64
"""How many of the spans are linked for which one commit stores something."""

_NOWHERE: Final = Context()
_NO_LINKS: Final[Sequence[Link]] = ()


@final
class Tracing:
    """The daemon's `Tracing`, by OpenTelemetry. The first call in an HTTP request has one span with it."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("discreet", __version__)

    def begin(self, name: str, version: str) -> None:
        ensure_provider(name, version)
        trace_calls()  # those that handlers make with `discreet.client`
        log.queue.annotate = _annotate
        self._tracer = trace.get_tracer("discreet", __version__)

    @staticmethod
    def leave() -> None:
        attach(_NOWHERE)

    @staticmethod
    def flush(seconds: float) -> None:
        flush(seconds)

    @staticmethod
    def origin() -> Origin:
        base = get_current()
        if not base:
            return None
        context = trace.get_current_span(base).get_span_context()
        return context if context.is_valid else None

    @staticmethod
    def traceparent_of(origin: Origin) -> str:
        return write_parent(_in(origin)).get(TRACEPARENT, "")

    @staticmethod
    def origin_of(traceparent: str) -> Origin:
        return read_parent({TRACEPARENT: traceparent})

    @staticmethod
    @contextmanager
    def resumed(origin: Origin) -> Iterator[None]:
        token = attach(_in(origin))
        try:
            yield
        finally:
            detach(token)

    @staticmethod
    def resume(origin: Origin) -> None:
        attach(_in(origin))

    # -- what comes in -----------------------------------------------------------------------------------------

    def request(
        self,
        method: str | None,
        metadata: Mapping[str, str],
        *,
        meta: Mapping[str, object] | None = None,
        method_attribute: str | None = None,
        jsonrpc: bool = True,
    ) -> Span:
        named = OTHER if method is None else method
        told = of_jsonrpc(named, method_attribute) if jsonrpc else {RPC_METHOD: named}
        remote = None if meta is None else read_parent(meta)
        http = HTTP_REQUEST.get()
        if http is None or not http.open:
            base = get_current()
        elif http.span is not None:
            base = http.span.context
        else:
            name = (method or JSONRPC) if jsonrpc else http.name
            base = _in(remote or http.parent())
            started = self._start(name, base, SpanKind.SERVER, http.attributes(told), begun=http.begun)
            http.span = Span(started, base, named, held=True)
            return http.span
        here = trace.get_current_span(base).get_span_context()
        links = _NO_LINKS
        if remote is not None:
            base, links = _in(remote), (Link(here),) if here.is_valid else _NO_LINKS
        elif not here.is_valid:
            base = _in(read_parent(metadata)) if metadata else _NOWHERE
        kind = SpanKind.SERVER if jsonrpc else SpanKind.INTERNAL
        return Span(self._start(method or JSONRPC, base, kind, told, links), base, named)

    def begin_http(self, scope: Scope) -> HttpRequest | None:
        """An HTTP request begins here; `end_http` must follow. None where what the server stands in records it already."""
        if self.origin() is not None:
            return None
        http = HttpRequest(scope)
        HTTP_REQUEST.set(http)
        return http

    def end_http(self, http: HttpRequest) -> None:
        """It is answered. If there was no call in it, it has a span of its own."""
        http.open = False
        span = http.span
        if span is None:
            base, told = _in(http.parent()), http.attributes({})
            span = Span(self._start(http.name, base, SpanKind.SERVER, told, begun=http.begun), base)
        error = http.error or (str(http.status) if http.status >= 500 else None)
        span.close(error, {HTTP_STATUS: http.status} if http.status else None)

    # -- what is done for it -----------------------------------------------------------------------------------

    def inner_call(self, operation: str) -> Span:
        base = get_current()
        return Span(self._start(operation, base, SpanKind.INTERNAL, {RPC_METHOD: operation}), base)

    def execution(self, agent: str, task_id: str) -> Span:
        told = {GEN_AI_OPERATION: "invoke_agent", GEN_AI_AGENT: agent, TASK_ID: task_id}
        base = get_current()
        return Span(self._start(f"invoke_agent {agent}", base, SpanKind.INTERNAL, told), base)

    def commit(self, origins: Sequence[Origin]) -> Span:
        """Storing one change for each of these in a database.

        It is done for the one span of which all are, else for none, and refers to them.
        """
        told: dict[str, str | int] = {DB_SYSTEM: "sqlite", DB_OPERATION: "commit"}
        if len(origins) > 1:
            told[DB_BATCH] = len(origins)
        distinct = [*{origin.span_id: origin for origin in origins if origin is not None}.values()]
        alone = len(distinct) == 1 and None not in origins
        base = _in(distinct[0]) if alone else _NOWHERE
        links = _NO_LINKS if alone else [Link(each) for each in distinct[:MAX_LINKS]]
        return Span(self._start("commit", base, SpanKind.CLIENT, told, links), base)

    # -- what goes out -----------------------------------------------------------------------------------------

    def push(self, origin: Origin, *, attempt: int) -> tuple[Span, Mapping[str, str]]:
        told: dict[str, str | int] = {HTTP_METHOD: "POST"}
        if attempt > 1:
            told[HTTP_RESEND] = attempt - 1
        return self._outgoing("POST", _in(origin), told)

    @contextmanager
    def asking(self, method: str, method_attribute: str | None) -> Iterator[Mapping[str, str]]:
        span, headers = self._outgoing(method, get_current(), of_jsonrpc(method, method_attribute))
        try:
            yield headers
        except Exception as exc:
            span.record_error(type(exc).__name__)
            raise
        finally:
            span.end()

    def _outgoing(self, name: str, base: Context, told: Attributes) -> tuple[Span, Mapping[str, str]]:
        span = Span(self._start(name, base, SpanKind.CLIENT, told), base)
        return span, write_parent(span.context)

    def _start(
        self,
        name: str,
        base: Context,
        kind: SpanKind,
        told: Attributes,
        links: Sequence[Link] = _NO_LINKS,
        *,
        begun: int | None = None,
    ) -> trace.Span:
        try:
            return self._tracer.start_span(name, base, kind, told, links, begun)
        except Exception as exc:  # noqa: BLE001 - a sampler or a processor of the program's own must not cost an answer
            note_fault(exc)
            return trace.INVALID_SPAN


def _annotate(fields: dict[str, object]) -> None:
    """Name the current span in what is logged, unless another is named there."""
    if "trace_id" not in fields:
        fields.update(log_fields(trace.get_current_span()))


def _in(origin: Origin) -> Context:
    """The context in which this is the current span."""
    if origin is None:
        return _NOWHERE
    return trace.set_span_in_context(trace.NonRecordingSpan(origin), _NOWHERE)
