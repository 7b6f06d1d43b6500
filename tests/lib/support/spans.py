"""The spans that were recorded, in memory. A process has one provider of spans, which all tests share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from discreet import call_tracing
from discreet.daemon.logs import log
from discreet.otel import trace_calls

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@cache
def provider() -> tuple[TracerProvider, InMemorySpanExporter]:
    """The provider of this process, and what it exports to."""
    exporter, made = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(made)
    return made, exporter


class Spans:
    """Those that have ended, in the order in which they began."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def clear(self) -> None:
        self._exporter.clear()

    def named(self, name: str) -> ReadableSpan:
        """The one of this name."""
        (found,) = [span for span in self.all() if span.name == name]
        return found

    def tree(self) -> list[str]:
        """Kind and name of each, below its parent, children before the next sibling."""
        spans = self.all()
        ids = {span.context.span_id for span in spans if span.context is not None}
        lines: list[str] = []

        def add(parent: int | None, depth: int) -> None:
            for span in spans:
                above = None if span.parent is None or span.parent.span_id not in ids else span.parent.span_id
                if above == parent:
                    lines.append(f"{'  ' * depth}{span.kind.name} {span.name}")
                    assert span.context is not None
                    add(span.context.span_id, depth + 1)

        add(None, 0)
        return lines

    def text(self) -> str:
        """All that is exported of them, but for `tracestate`, which is the caller's by its definition."""
        told = [json.loads(span.to_json()) for span in self.all()]
        for each in told:
            each["context"].pop("trace_state")
        return json.dumps(told, ensure_ascii=False)


@contextmanager
def recorded() -> Iterator[Spans]:
    """The spans of the block, those of a `Peer` among them. After it nothing is recorded by itself."""
    exporter = provider()[1]
    exporter.clear()
    trace_calls()
    try:
        yield Spans(exporter)
    finally:
        call_tracing.tracer = log.queue.annotate = None
        exporter.clear()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
