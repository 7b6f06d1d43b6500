"""Starts the spans of one host: whose child each of them is, and what it is called. Reads no settings and exports nothing.

The current span is a context variable. Requests over a byte stream and whatever the daemon does by itself begin outside of any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, SpanKind

from ...otel import trace_calls
from ...version import __version__
from ..logs import log
from . import attributes
from .attributes import OTHER, Attributes
from .problems import note_fault
from .provider import Service, ensure_provider, flush
from .span import Span, log_fields
from .trace_context import read_parent, write_parent

Origin: TypeAlias = trace.SpanContext | None
"""The span in which something was asked for that is done later; None where there was none."""

MAX_LINKS: Final = 64
"""How many of the spans are linked for which one commit stores something."""

_NOWHERE: Final = Context()


@final
class Tracing:
    """Used on the loop's thread, but for `leave`."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("discreet", __version__)

    def begin(self, service: Service) -> None:
        """Have spans go where the program has said, or else where OpenTelemetry's variables say, and the log name them. Raises
        `TracingError`.
        """
        ensure_provider(service)
        trace_calls()  # those that handlers make with `discreet.client`
        log.queue.annotate = _annotate
        self._tracer = trace.get_tracer("discreet", __version__)

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
        context = trace.get_current_span().get_span_context()
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
        mcp: bool = False,
        jsonrpc: bool = True,
    ) -> Span:
        """A request or notification; `method` is None for one that the daemon does not have.

        It is done for what `meta` names, the member `_meta` of its params; else for the current span; else for what `metadata`
        names. `jsonrpc` is False where it came in another form.
        """
        named = OTHER if method is None else method
        known = attributes.of_jsonrpc(named, mcp=mcp) if jsonrpc else {attributes.RPC_METHOD: named}
        here = trace.get_current_span().get_span_context()
        links: Sequence[Link] = ()
        remote = None if meta is None else read_parent(meta)
        if remote is not None:
            base = _in(remote)
            links = (Link(here),) if here.is_valid else ()
        else:
            base = get_current() if here.is_valid else _in(read_parent(metadata) if metadata else None)
        kind = SpanKind.SERVER if jsonrpc else SpanKind.INTERNAL
        return self._start(method or attributes.JSONRPC, base, kind, known, method=named, links=links)

    def http_request(self, method: str, scheme: str, headers: Mapping[str, str]) -> Span | None:
        """A request that an HTTP server has; None where one is recorded already, by what the server stands in."""
        if trace.get_current_span().get_span_context().is_valid:
            return None
        known = attributes.http_method(method)
        told = {attributes.HTTP_METHOD: known, attributes.URL_SCHEME: scheme}
        name = "HTTP" if known == OTHER else known
        return self._start(name, _in(read_parent(headers)), SpanKind.SERVER, told, method=name)

    # -- what is done for it -----------------------------------------------------------------------------------

    def inner_call(self, operation: str) -> Span:
        """A call of another operation by the handler that runs here."""
        return self._start(operation, get_current(), SpanKind.INTERNAL, {attributes.RPC_METHOD: operation})

    def execution(self, agent: str, task_id: str) -> Span:
        """The work of an agent on a task, for what was asked for here."""
        told = {
            attributes.GEN_AI_OPERATION: "invoke_agent",
            attributes.GEN_AI_AGENT: agent,
            attributes.TASK_ID: task_id,
        }
        return self._start(f"invoke_agent {agent}", get_current(), SpanKind.INTERNAL, told)

    def commit(self, origins: Sequence[Origin], *, durable: bool) -> Span:
        """Storing one change for each of these, in memory or in a file.

        It is done for the one span of which all are, else for none, and refers to them.
        """
        told: dict[str, str | int] = {attributes.DB_OPERATION: "commit"}
        if durable:
            told[attributes.DB_SYSTEM] = "sqlite"
        if len(origins) > 1:
            told[attributes.DB_BATCH] = len(origins)
        named = {origin.span_id: origin for origin in origins if origin is not None}
        distinct = [*named.values()]
        alone = len(distinct) == 1 and None not in origins
        links = () if alone else [Link(each) for each in distinct[:MAX_LINKS]]
        kind = SpanKind.CLIENT if durable else SpanKind.INTERNAL  # as the conventions have it for a database in memory
        return self._start("commit", _in(distinct[0] if alone else None), kind, told, links=links)

    # -- what goes out -----------------------------------------------------------------------------------------

    def push(self, origin: Origin, *, attempt: int) -> tuple[Span, Mapping[str, str]]:
        """An attempt to send a notification, the first one is 1; and the headers that name it. Where it goes is not told: a caller
        has chosen that."""
        told: dict[str, str | int] = {attributes.HTTP_METHOD: "POST"}
        if attempt > 1:
            told[attributes.HTTP_RESEND] = attempt - 1
        return self._outgoing("POST", _in(origin), told)

    @contextmanager
    def asking(self, method: str, *, mcp: bool) -> Iterator[Mapping[str, str]]:
        """The block is a request to the client, for what runs here. Its value names it."""
        span, headers = self._outgoing(method, get_current(), attributes.of_jsonrpc(method, mcp=mcp))
        try:
            yield headers
        except Exception as exc:
            span.blame(type(exc).__name__)
            raise
        finally:
            span.end()

    def _outgoing(self, name: str, base: Context, told: Attributes) -> tuple[Span, Mapping[str, str]]:
        span = self._start(name, base, SpanKind.CLIENT, told)
        with span.entered():
            return span, write_parent()

    def _start(
        self,
        name: str,
        base: Context,
        kind: SpanKind,
        told: Attributes,
        *,
        method: str = "",
        links: Sequence[Link] = (),
    ) -> Span:
        try:
            started = self._tracer.start_span(name, base, kind, told, links)
        except Exception as exc:  # noqa: BLE001 - a sampler or a processor of the program's own must not cost an answer
            note_fault(exc)
            started = trace.INVALID_SPAN
        return Span(started, base, method)


def _annotate(fields: dict[str, object]) -> None:
    """Name the current span in what is logged, unless another is named there."""
    if "trace_id" not in fields:
        fields.update(log_fields(trace.get_current_span()))


def _in(origin: Origin) -> Context:
    """The context in which this is the current span."""
    if origin is None:
        return _NOWHERE
    return trace.set_span_in_context(trace.NonRecordingSpan(origin), _NOWHERE)
