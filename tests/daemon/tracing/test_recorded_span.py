"""The daemon's own spans are those that the SDK would have made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from discreet.daemon.tracing.recorded_span import Recorder, recorder_of

REMOTE = SpanContext(0x1234, 0x5678, True, TraceFlags(1))
Start = Callable[..., trace.Span]


class Adds(Sampler):
    """Adds an attribute to every span."""

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_AND_SAMPLE, {**args[1], "sampled": True})

    def get_description(self) -> str:
        return "Adds"


class Seen(SpanProcessor):
    """Changes what begins, as processors may."""

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        span.set_attribute("began", len(trace.get_current_span(parent_context).get_span_context()) > 0)


def both(**options: Any) -> tuple[tuple[Start, InMemorySpanExporter], tuple[Start, InMemorySpanExporter]]:
    """Ours and that of the SDK, each with what it exports to."""
    made = []
    for own in (True, False):
        provider = TracerProvider(shutdown_on_exit=False, resource=Resource({"a": "b"}), **options)
        exporter = InMemorySpanExporter()
        provider.add_span_processor(Seen())
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("discreet", "1")
        recorder = recorder_of(tracer, "1")
        assert recorder is not None
        made.append((recorder.start_span if own else tracer.start_span, exporter))
    return made[0], made[1]


def told(span: ReadableSpan) -> Any:
    """All that an exporter sees, but for ids and times."""
    found = json.loads(span.to_json())
    assert span.context is not None and span.end_time is not None and span.start_time is not None
    assert span.start_time <= span.end_time
    for event in found["events"]:
        del event["timestamp"]
        event["attributes"].pop("exception.stacktrace", None)
    return {
        **found,
        "context": len(found["context"]["trace_id"] + found["context"]["span_id"]),
        "start_time": None,
        "end_time": None,
        "remote": span.parent is not None and span.parent.is_remote,
        "flags": span.context.trace_flags & TraceFlags.SAMPLED,
        "scope": None if span.instrumentation_scope is None else span.instrumentation_scope.name,
        "dropped": (span.dropped_attributes, span.dropped_events, span.dropped_links),
    }


def plain(span: trace.Span) -> None:
    """Nothing."""


def attributes(span: trace.Span) -> None:
    span.set_attribute("rpc.method", "another")
    span.set_attributes({"list": ["a", "b"], "number": 1.5, "flag": True, "": "none"})
    for number in range(200):
        span.set_attribute(f"n{number}", number)


def events(span: trace.Span) -> None:
    for number in range(200):
        span.add_event("event", {"number": number})
    span.add_event("bare")
    span.add_link(REMOTE, {"why": "because"})
    span.add_link(trace.INVALID_SPAN_CONTEXT)


def exception(span: trace.Span) -> None:
    span.record_exception(ValueError("what"), {"more": 1})
    span.set_status(StatusCode.ERROR, "description")


def statuses(span: trace.Span) -> None:
    span.set_status(StatusCode.UNSET)
    span.set_status(Status(StatusCode.OK))
    span.set_status(StatusCode.ERROR)


def name(span: trace.Span) -> None:
    span.update_name("another")


def after_the_end(span: trace.Span) -> None:
    span.end()
    span.set_attribute("late", True)
    span.add_event("late")
    span.update_name("late")
    span.set_status(StatusCode.ERROR)
    span.end()


def block(span: trace.Span) -> None:
    with trace.use_span(span):
        assert trace.get_current_span() is span


@pytest.mark.parametrize(
    "use", [plain, attributes, events, exception, statuses, name, after_the_end, block], ids=lambda use: use.__name__
)
@pytest.mark.parametrize("parent", [None, REMOTE], ids=["root", "child"])
def test_what_is_exported_is_the_same(use: Callable[[trace.Span], None], parent: SpanContext | None) -> None:
    context = Context() if parent is None else trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
    found = []
    for start, exporter in both(sampler=Adds()):
        given = {"rpc.method": "shop/price", "http.response.status_code": 200}
        span = start("shop/price", context, SpanKind.SERVER, given, (Link(REMOTE),), 5)
        assert span.is_recording()
        use(span)
        span.end()
        assert not span.is_recording()
        (exported,) = exporter.get_finished_spans()
        assert exported.start_time == 5
        found.append(told(exported))
    ours, theirs = found
    assert ours == theirs


def test_what_the_daemon_tells_itself_is_told_too() -> None:
    (start, exporter), _ = both()
    for before in (False, True):
        span: Any = start("a", Context(), SpanKind.SERVER, {"a": 1}, (), None)
        if before:
            span.set_attribute("of a handler", 1)
        span.tell({"error.type": "INTERNAL"})
        span.end()
    for exported in exporter.get_finished_spans():
        assert dict(exported.attributes or {})["error.type"] == "INTERNAL"


def test_a_span_that_is_not_sampled_records_nothing_and_is_passed_on() -> None:
    for start, exporter in both(sampler=ALWAYS_OFF):
        span = start("a", Context(), SpanKind.SERVER, {}, (), None)
        span.end()
        assert (span.is_recording(), span.get_span_context().is_valid) == (False, True)
        assert not span.get_span_context().trace_flags.sampled
        assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize(
    "limits", [SpanLimits(max_span_attributes=3), SpanLimits(max_span_attribute_length=10), SpanLimits(max_attribute_length=10)]
)  # fmt: skip
def test_with_limits_that_the_daemon_might_exceed_the_sdk_makes_the_spans(limits: SpanLimits) -> None:
    assert recorder_of(TracerProvider(shutdown_on_exit=False, span_limits=limits).get_tracer("a"), "1") is None
    assert recorder_of(trace.NoOpTracer(), "1") is None


def test_an_sdk_whose_spans_are_made_in_another_way_makes_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("a")
    assert isinstance(recorder_of(tracer, "1"), Recorder)
    monkeypatch.delattr(ReadableSpan, "to_json")
    assert recorder_of(tracer, "1") is None
