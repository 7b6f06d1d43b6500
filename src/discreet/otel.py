"""Records spans of OpenTelemetry for calls of `discreet.client`: call `discreet.otel.trace_calls()` once.

A daemon with `--otel` needs no such call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, final

from . import call_tracing
from .errors.codes import row_of
from .version import __version__

try:
    from opentelemetry import trace
    from opentelemetry.context import Context, get_current
    from opentelemetry.trace import SpanKind, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as exc:
    raise ImportError(f"discreet.otel needs {exc.name}: pip install 'discreet[otel]'") from None

__all__ = ["trace_calls"]

_inject: Final = TraceContextTextMapPropagator().inject


def trace_calls() -> None:
    """Record a span for every call and every subscription of a `Peer` in this process, from now on.

    Spans go to the program's tracer provider. Each is a child of the current span. The server is told of it in
    `serviceParams`, by HTTP in headers, and with MCP and ACP in `_meta`. Servers of LSP, and of dialects of your own, are not
    told.
    """
    call_tracing.tracer = _Tracer()


@final
class _Tracer:
    def __init__(self) -> None:
        self._tracer = trace.get_tracer("discreet.client", __version__)

    def begin(self, method: str) -> _CallSpan:
        told = {"rpc.system.name": "jsonrpc", "jsonrpc.protocol.version": "2.0", "rpc.method": method}
        base = get_current()
        span = self._tracer.start_span(method, base, SpanKind.CLIENT, told)
        return _CallSpan(span, base)

    def http_request(self, method: str, host: str, port: int) -> _CallSpan:
        told: dict[str, str | int] = {"http.request.method": method, "server.address": host, "server.port": port}
        base = get_current()
        return _CallSpan(self._tracer.start_span(method, base, SpanKind.CLIENT, told), base)

    @contextmanager
    def call(self, method: str) -> Iterator[_CallSpan]:
        span = self.begin(method)
        try:
            with trace.use_span(span.span, record_exception=False, set_status_on_exception=False):
                yield span
        except BaseException as exc:
            span.end(exc)
            raise
        finally:
            span.end()


@final
class _CallSpan:
    def __init__(self, span: trace.Span, base: Context) -> None:
        headers: dict[str, str] = {}
        _inject(headers, trace.set_span_in_context(span, base))
        self.headers: Mapping[str, str] = headers
        self.span = span
        self._ended = False

    def answered(self, status: int) -> None:
        self.span.set_attribute("http.response.status_code", status)
        if status >= HTTPStatus.BAD_REQUEST:
            self.span.set_attribute("error.type", str(status))
            self.span.set_status(StatusCode.ERROR)

    def end(self, error: BaseException | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if error is not None and self.span.is_recording():
            self.span.set_attribute("error.type", type(error).__name__)
            failure = getattr(error, "failure", None)
            if failure is not None:
                self.span.set_attribute("rpc.response.status_code", str(row_of(failure).code))
            if isinstance(error, Exception):  # no cancellation
                self.span.set_status(StatusCode.ERROR)
        self.span.end()
