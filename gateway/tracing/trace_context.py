"""Reads and writes `traceparent` and `tracestate` (W3C Trace Context, sections 3.2 and 3.3). Never logs, and never raises for
anything that a caller may send: what is not valid is not there.

OpenTelemetry's own reader logs what it can't read, which would be a caller's text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

MAX_TRACEPARENT: Final = 256
"""Characters. Version 00 has 55; later ones may add to it."""
MAX_TRACESTATE: Final = 512
"""Characters that are passed on, as many as the specification asks for (section 3.3.1.5). A longer one is dropped as a whole."""
MAX_MEMBERS: Final = 32
KNOWN_FLAGS: Final = 0x03
"""Sampled, and random trace id. The others mean nothing yet, and are not passed on (section 3.2.2.5)."""

_parent: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x20-\x7e]*)?").fullmatch
_member: Final = re.compile(
    r"([a-z][_0-9a-z*/-]{0,255}|[a-z0-9][_0-9a-z*/-]{0,240}@[a-z][_0-9a-z*/-]{0,13})"
    r"=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
).fullmatch
_INVALID_VERSION: Final = "ff"
_CURRENT_VERSION: Final = "00"

_inject: Final = TraceContextTextMapPropagator().inject


def read_parent(carrier: Mapping[str, object]) -> SpanContext | None:
    """The span of the caller for which a request is made; None where it names none, or none that is valid."""
    text = carrier.get(TRACEPARENT)
    found = _parent(text.strip(" \t")) if isinstance(text, str) and len(text) <= MAX_TRACEPARENT else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (version == _CURRENT_VERSION and more is not None):
        return None
    context = SpanContext(
        int(trace_id, 16), int(span_id, 16), True, TraceFlags(int(flags, 16) & KNOWN_FLAGS), _state_of(carrier)
    )
    return context if context.is_valid else None


def _state_of(carrier: Mapping[str, object]) -> TraceState:
    text = carrier.get(TRACESTATE)
    if not isinstance(text, str) or len(text) > MAX_TRACESTATE:
        return TraceState()
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    pairs = [(found[1], found[2]) for member in members if (found := _member(member)) is not None]
    if len(pairs) < len(members) or len(pairs) > MAX_MEMBERS or len(dict(pairs)) < len(pairs):
        return TraceState()
    return TraceState(pairs)


def write_parent(context: Context) -> dict[str, str]:
    """Return the headers that name the current span of a context to a server; none without a span."""
    carrier: dict[str, str] = {}
    _inject(carrier, context)
    return carrier
