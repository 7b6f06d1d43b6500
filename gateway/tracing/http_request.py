"""Records one HTTP request, from its head to the end of its answer: one span with the facts of the request and of the call in
it.

The span is made when the call is known, or at the end if there is none, so that a request costs one and not two.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, final

from .span import HTTP_METHOD, HTTP_METHODS, HTTP_ROUTE, OTHER, URL_SCHEME, Attributes, Span
from .trace_context import TRACEPARENT, TRACESTATE, read_parent

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from ..asgi import Scope, Send

HTTP_REQUEST: ContextVar[HttpRequest | None] = ContextVar("discreet_http_request", default=None)
"""The request that is answered here."""

_PARENT: Final = TRACEPARENT.encode()
_STATE: Final = TRACESTATE.encode()


@final
class HttpRequest:
    """`route` is the template of its path, where that is one of ours. `span` is that of the first call in it. `error` names the
    class of what it was answered with instead of a status.
    """

    __slots__ = ("_scope", "begun", "error", "open", "route", "span", "status", "verb")

    def __init__(self, scope: Scope) -> None:
        self.begun: Final = time_ns()
        verb = scope["method"]
        self.verb: Final[str] = verb if verb in HTTP_METHODS else OTHER
        self.route = ""
        self.status = 0
        self.error = ""
        self.span: Span | None = None
        self.open = True
        self._scope = scope

    @property
    def name(self) -> str:
        """The name of a span without a call."""
        verb = "HTTP" if self.verb == OTHER else self.verb
        return f"{verb} {self.route}" if self.route else verb

    def attributes(self, call: Attributes) -> Attributes:
        """Return the facts of the request, and of the call in it, before that one begins."""
        told = {HTTP_METHOD: self.verb, URL_SCHEME: self._scope.get("scheme", "http"), **call}
        if self.route:
            told[HTTP_ROUTE] = self.route
        return told

    def parent(self) -> SpanContext | None:
        """Return the caller's span; None for several, as they are ambiguous (W3C Trace Context, section 4.3)."""
        parent = state = None
        for name, value in self._scope["headers"]:
            if name == _PARENT:
                if parent is not None:
                    return None
                parent = value
            elif name == _STATE:
                state = value if state is None else b"%b,%b" % (state, value)
        if parent is None:
            return None
        found = {TRACEPARENT: parent.decode("latin-1")}
        return read_parent(found if state is None else {**found, TRACESTATE: state.decode("latin-1")})

    def watched(self, send: Send) -> Send:
        """Sends the same, and takes note of the status."""

        def watching(message: Any) -> Awaitable[None]:  # Any: an ASGI message
            if message["type"] == "http.response.start":
                self.status = message["status"]
            return send(message)

        return watching
