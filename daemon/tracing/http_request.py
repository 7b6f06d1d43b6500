"""The span of one HTTP request, from its head to the end of its answer. Answers nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .attributes import HTTP_STATUS, SCOPE_MEMBER
from .trace_context import TRACEPARENT, TRACESTATE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from .span import Span
    from .tracing import Tracing


async def answered(tracing: Tracing, request: Request, send: Send, answer: Callable[[Send], Awaitable[None]]) -> None:
    """Have a request answered by `answer(send)`, with a span of its own if what the server stands in records none."""
    span = tracing.http_request(request.method, request.scope.get("scheme", "http"), _trace_of(request))
    if span is None:
        return await answer(send)
    status = 0

    async def watched(message: Any) -> None:  # Any: an ASGI message
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    request.scope[SCOPE_MEMBER] = span
    with span.entered():
        try:
            await answer(watched)
        except Exception as exc:
            span.blame(type(exc).__name__)
            raise
        finally:
            _end(span, status)


def _end(span: Span, status: int) -> None:
    if status:
        span.tell({HTTP_STATUS: status})
    span.end(str(status) if status >= 500 else None)


def _trace_of(request: Request) -> dict[str, str]:
    """The headers that name the caller's span. Of several nobody can tell which one is meant (W3C Trace Context, section 4.3)."""
    parents = request.headers.getlist(TRACEPARENT)
    if len(parents) != 1:
        return {}
    return {TRACEPARENT: parents[0], TRACESTATE: ",".join(request.headers.getlist(TRACESTATE))}
