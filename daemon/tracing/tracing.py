"""Starts the spans of one host: whose child each of them is, and what it is called. Reads no settings and exports nothing.

The current span is a context variable. Requests over a byte stream and whatever the daemon does by itself begin outside of any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, SpanKind

from ...otel import trace_calls
from ...version import __version__
from ..logs import log
from . import attributes
from .attributes import OTHER, Attributes
from .http_request import HTTP_REQUEST, HttpRequest
from .problems import note_fault
from .provider import Service, ensure_provider, flush
from .span import Span, log_fields
from .trace_context import read_parent, write_parent

if TYPE_CHECKING:
    from starlette.types import Scope

    from .recorded_span import Recorder

Origin: TypeAlias = trace.SpanContext | None
"""The span in which something was asked for that is done later; None where there was none."""

MAX_LINKS: Final = 64
"""How many of the spans are linked for which one commit stores something."""

_NOWHERE: Final = Context()
_NO_LINKS: Final[Sequence[Link]] = ()


@final
class Tracing:
    """Used on the loop's thread."""

    def __init__(self) -> None:
        self._tracer: trace.Tracer | Recorder = trace.get_tracer("discreet", __version__)

    def begin(self, service: Service) -> None:
        """Have spans go where the program has said, or else where OpenTelemetry's variables say, and the log name them. Raises
        `TracingError`.
        """
        ensure_provider(service)
        trace_calls()  # those that handlers make with `discreet.client`
        log.queue.annotate = _annotate
        self._tracer = tracer = trace.get_tracer("discreet", __version__)
        if type(tracer).__module__ == "opentelemetry.sdk.trace":
            from .recorded_span import recorder_of  # late: a program may have a provider of its own, and no SDK

            self._tracer = recorder_of(tracer, __version__) or tracer

    @staticmethod
    def leave() -> None:
        """Outside of any span from now on, and with all tasks that begin here."""
        attach(_NOWHERE)

    @staticmethod
    def flush(seconds: float) -> None:
        """Have all that has ended exported, and wait for that, but not longer. Blocks."""
        flush(seconds)

    @staticmethod
    def origin() -> Origin:
        """What is asked for here."""
        base = get_current()
        if not base:
            return None
        context = trace.get_current_span(base).get_span_context()
        return context if context.is_valid else None

    @staticmethod
    @contextmanager
    def resumed(origin: Origin) -> Iterator[None]:
        """What happens in the block is done for this one."""
        token = attach(_in(origin))
        try:
            yield
        finally:
            detach(token)

    @staticmethod
    def resume(origin: Origin) -> None:
        """What happens from now on in these context variables is done for this one."""
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
        """A request or notification; `method` is None for one that the daemon does not have.

        It is done for what `meta` names, the member `_meta` of its params; else for what the HTTP request names that it is in, or
        for the span that is current; else for what `metadata` names. The first in an HTTP request has one span with it. `jsonrpc`
        is False where it came in another form.
        """
        named = OTHER if method is None else method
        told = attributes.of_jsonrpc(named, method_attribute) if jsonrpc else {attributes.RPC_METHOD: named}
        remote = None if meta is None else read_parent(meta)
        http = HTTP_REQUEST.get()
        if http is None or not http.open:
            base = get_current()
        elif http.span is not None:
            base = http.span.context
        else:
            name = (method or attributes.JSONRPC) if jsonrpc else http.name
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
        return Span(self._start(method or attributes.JSONRPC, base, kind, told, links), base, named)

    def begin_http(self, scope: Scope) -> HttpRequest | None:
        """An HTTP request begins here; `end_http` must follow. None where what the server stands in records it already."""
        if self.origin() is not None:
            return None
        http = HttpRequest(scope)
        scope[attributes.SCOPE_MEMBER] = http
        HTTP_REQUEST.set(http)
        return http

    def end_http(self, http: HttpRequest, scope: Scope) -> None:
        """It is answered. If there was no call in it, it has a span of its own."""
        del scope[attributes.SCOPE_MEMBER]  # they refer to each other: the collector would have to find each of them
        http.open = False
        span = http.span
        if span is None:
            base, told = _in(http.parent()), http.attributes({})
            span = Span(self._start(http.name, base, SpanKind.SERVER, told, begun=http.begun), base)
        error = http.error or (str(http.status) if http.status >= 500 else None)
        span.close(error, {attributes.HTTP_STATUS: http.status} if http.status else None)

    # -- what is done for it -----------------------------------------------------------------------------------

    def inner_call(self, operation: str) -> Span:
        """A call of another operation by the handler that runs here."""
        base = get_current()
        return Span(self._start(operation, base, SpanKind.INTERNAL, {attributes.RPC_METHOD: operation}), base)

    def execution(self, agent: str, task_id: str) -> Span:
        """The work of an agent on a task, for what was asked for here."""
        told = {
            attributes.GEN_AI_OPERATION: "invoke_agent",
            attributes.GEN_AI_AGENT: agent,
            attributes.TASK_ID: task_id,
        }
        base = get_current()
        return Span(self._start(f"invoke_agent {agent}", base, SpanKind.INTERNAL, told), base)

    def commit(self, origins: Sequence[Origin]) -> Span:
        """Storing one change for each of these in a database.

        It is done for the one span of which all are, else for none, and refers to them.
        """
        told: dict[str, str | int] = {attributes.DB_SYSTEM: "sqlite", attributes.DB_OPERATION: "commit"}
        if len(origins) > 1:
            told[attributes.DB_BATCH] = len(origins)
        distinct = [*{origin.span_id: origin for origin in origins if origin is not None}.values()]
        alone = len(distinct) == 1 and None not in origins
        base = _in(distinct[0]) if alone else _NOWHERE
        links = _NO_LINKS if alone else [Link(each) for each in distinct[:MAX_LINKS]]
        return Span(self._start("commit", base, SpanKind.CLIENT, told, links), base)

    # -- what goes out -----------------------------------------------------------------------------------------

    def push(self, origin: Origin, *, attempt: int) -> tuple[Span, Mapping[str, str]]:
        """An attempt to send a notification, the first one is 1; and the headers that name it. Where it goes is not told: a
        caller has chosen that."""
        told: dict[str, str | int] = {attributes.HTTP_METHOD: "POST"}
        if attempt > 1:
            told[attributes.HTTP_RESEND] = attempt - 1
        return self._outgoing("POST", _in(origin), told)

    @contextmanager
    def asking(self, method: str, method_attribute: str | None) -> Iterator[Mapping[str, str]]:
        """The block is a request to the client, for what runs here. Its value names it."""
        span, headers = self._outgoing(method, get_current(), attributes.of_jsonrpc(method, method_attribute))
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
