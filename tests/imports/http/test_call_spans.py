"""The spans of calls to upstreams, and what upstreams are told of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from discreet.errors import FailureError
from discreet.imports.http.model import Reply
from discreet.imports.model import UpstreamError
from support.raw_upstream import answering, context, opened, operation, response
from support.spans import Spans, attributes, recorded

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recorded() as found:
        yield found


REPLIES = (Reply("200", {"application/json": "json", "text/event-stream": "event-data"}), Reply("404", {}, "HTTP_404"))


async def test_a_call_is_a_span_that_the_upstream_is_told_of(spans: Spans) -> None:
    described = operation("POST", path="/secret-path", replies=REPLIES)
    async with answering(response(b"1")) as server, opened(described, url=server.url) as upstream:
        with trace.get_tracer("test").start_as_current_span("handler"):
            await upstream.call(described, {}, context())
        [request] = server.requests
    assert spans.tree() == ["INTERNAL handler", "  CLIENT POST"]
    span = spans.named("POST")
    assert attributes(span) == {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "server.port": server.port,
        "http.response.status_code": 200,
    }
    assert span.context is not None
    assert request.values("traceparent")[0].split("-")[1:3] == [
        f"{span.context.trace_id:032x}",
        f"{span.context.span_id:016x}",
    ]


async def test_a_call_that_fails_says_by_which_status_or_that_there_was_none(spans: Spans) -> None:
    described = operation(replies=REPLIES)
    async with answering(response(b"", status=404)) as server, opened(described, url=server.url) as upstream:
        with pytest.raises(UpstreamError):
            await upstream.call(described, {}, context())
    async with opened(described, url=server.url) as upstream:
        with pytest.raises(FailureError):
            await upstream.call(described, {}, context())
    refused, lost = spans.all()
    assert (attributes(refused)["error.type"], attributes(refused)["http.response.status_code"]) == ("404", 404)
    assert attributes(lost)["error.type"] == "OutboundError"
    assert [span.status.status_code for span in (refused, lost)] == [StatusCode.ERROR] * 2


async def test_a_stream_that_is_left_is_no_error(spans: Spans) -> None:
    described = operation(replies=REPLIES)
    stream = response(b"data: 1\n\ndata: 2\n\n", content_type="text/event-stream")
    async with (
        answering(stream) as server,
        opened(described, url=server.url) as upstream,
        aclosing(upstream.stream(described, {}, context())) as events,
    ):
        await anext(events)
    [span] = spans.all()
    assert "error.type" not in attributes(span) and span.status.status_code is StatusCode.UNSET
