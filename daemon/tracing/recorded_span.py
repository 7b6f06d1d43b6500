"""A span of the SDK that costs a third of the SDK's own: its attributes are known to be valid, so nothing is checked and copied.

For every request one is made, which the SDK's would make a third slower. Limits, events and links are the SDK's.
What the SDK keeps to itself is not there: metrics of its own, and `_on_ending` of its processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time_ns
from traceback import format_exception
from typing import Any, Final, final

from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, Tracer
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import Attributes, AttributeValue

from .attributes import Attributes as OwnAttributes

MOST_ATTRIBUTES: Final = 32
"""More than the daemon ever sets. With a lower limit, or one for the length of values, the SDK makes the spans."""


_NONE: Final = trace.INVALID_SPAN_CONTEXT


@final
class RecordedSpan(ReadableSpan, trace.Span):
    """Handlers may use it as any other, from any thread. It is exported as it is when it has ended."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a span consists of
        self,
        tracer: Tracer,
        scope: InstrumentationScope,
        limits: SpanLimits,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        attributes: dict[str, AttributeValue],
        kind: SpanKind,
        begun: int,
    ) -> None:
        super().__init__(
            name,
            context,
            parent,
            tracer.resource,
            attributes,
            kind=kind,
            start_time=begun,
            instrumentation_scope=scope,
        )
        self._processor = tracer.span_processor
        self._limits = limits
        self._own = attributes
        self._bounded: BoundedAttributes | None = None
        """The attributes, once somebody else has set one."""

    def get_span_context(self) -> SpanContext:
        context = self._context
        assert context is not None
        return context

    def is_recording(self) -> bool:
        return self._end_time is None

    def tell(self, attributes: OwnAttributes) -> None:
        """Add attributes of the daemon's own."""
        if self._bounded is None:
            self._own.update(attributes)
        else:
            self.set_attributes(attributes)

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        if not self.is_recording():
            return
        if self._bounded is None:
            limits = self._limits
            self._attributes = self._bounded = BoundedAttributes(
                limits.max_span_attributes, self._attributes, False, limits.max_span_attribute_length
            )
        self._bounded[key] = value

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        if self.is_recording():
            limits = self._limits
            held = BoundedAttributes(limits.max_event_attributes, attributes, True, limits.max_attribute_length)
            if not isinstance(self._events, BoundedList):
                self._events = BoundedList(limits.max_events)
            self._events.append(Event(name, held, timestamp))

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        if self.is_recording() and context.is_valid:
            limits = self._limits
            held = BoundedAttributes(limits.max_link_attributes, attributes, True, limits.max_attribute_length)
            if not isinstance(self._links, BoundedList):
                self._links = BoundedList(limits.max_links)
            self._links.append(Link(context, held))

    def update_name(self, name: str) -> None:
        if self.is_recording():
            self._name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        given = status if isinstance(status, Status) else Status(status, description)
        if self.is_recording() and self._status.status_code is not StatusCode.OK and not given.is_unset:
            self._status = given

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        told: dict[str, Any] = {
            "exception.type": type(exception).__qualname__,
            "exception.message": str(exception),
            "exception.stacktrace": "".join(format_exception(exception)),
            "exception.escaped": str(escaped),
        }
        self.add_event("exception", {**told, **(attributes or {})}, timestamp)

    def end(self, end_time: int | None = None) -> None:
        if self.is_recording():
            self._end_time = time_ns() if end_time is None else end_time
            self._processor.on_end(self)


@final
class Recorder:
    """Starts them for one tracer of the SDK."""

    def __init__(self, tracer: Tracer, limits: SpanLimits, version: str) -> None:
        self._tracer = tracer
        self._limits = limits
        self._scope = InstrumentationScope("discreet", version)

    def start_span(
        self,
        name: str,
        context: Context,
        kind: SpanKind,
        attributes: OwnAttributes,
        links: Sequence[Link],
        start_time: int | None,
    ) -> trace.Span:
        """As that of the tracer: a span that is not sampled records nothing."""
        tracer, parent = self._tracer, _NONE
        if context:
            parent = trace.get_current_span(context).get_span_context()
        ids, root = tracer.id_generator, not parent.is_valid
        trace_id = ids.generate_trace_id() if root else parent.trace_id
        if root and tracer.sampler is DEFAULT_ON:  # whose answer is known, and which takes as long as all the rest
            found = SpanContext(trace_id, ids.generate_span_id(), False, _SAMPLED)
            told: dict[str, AttributeValue] = {**attributes}
        else:
            result = tracer.sampler.should_sample(context, trace_id, name, kind, attributes, links)
            flags = _SAMPLED if result.decision is Decision.RECORD_AND_SAMPLE else _UNSAMPLED
            found = SpanContext(trace_id, ids.generate_span_id(), False, flags, result.trace_state)
            if result.decision is Decision.DROP:
                return NonRecordingSpan(found)
            told = {**result.attributes}
        begun = time_ns() if start_time is None else start_time
        given = (name, found, None if root else parent, told, kind, begun)
        span: Any = RecordedSpan(tracer, self._scope, self._limits, *given)  # Any: to processors it is one of the SDK's
        for link in links:
            span.add_link(link.context)
        tracer.span_processor.on_start(span, parent_context=context)
        recorded: RecordedSpan = span
        return recorded


_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_UNSAMPLED: Final = TraceFlags(TraceFlags.DEFAULT)


def recorder_of(tracer: trace.Tracer, version: str) -> Recorder | None:
    """None for a tracer that is not the SDK's own, or whose limits the daemon's attributes might exceed."""
    if type(tracer) is not Tracer:
        return None
    limits = getattr(tracer, "_span_limits", None)
    if not isinstance(limits, SpanLimits) or (limits.max_span_attributes or MOST_ATTRIBUTES) < MOST_ATTRIBUTES:
        return None
    if limits.max_span_attribute_length is not None:
        return None
    try:
        tried = RecordedSpan(tracer, InstrumentationScope("discreet"), limits, "", _NONE, None, {}, SpanKind.SERVER, 0)
        tried.to_json()
    except (AttributeError, TypeError):  # an SDK whose spans are made in another way
        return None
    return Recorder(tracer, limits, version)
