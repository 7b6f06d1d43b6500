"""Responses that are streams: their events, back-pressure, bounds, and how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from discreet.errors import Failure, FailureError, Internal, Overloaded, TimedOut, Unavailable
from discreet.imports.http.model import HttpOperation, Reply, ReplyForm, UpstreamFault
from discreet.imports.http.replies import event_decoder
from discreet.imports.http.upstream import HttpLimits
from support.logged_events import LoggedEvents
from support.raw_upstream import Conversation, answering, context, opened, operation, response, serving

pytestmark = pytest.mark.anyio

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def streamed(form: str = "events", media_type: str = "text/event-stream", *more: Reply) -> HttpOperation:
    return operation(kind="subscription", replies=(Reply("200", cast(Any, {media_type: form})), *more))


async def events_of(url: str, described: HttpOperation, **options: Any) -> list[bytes]:
    async with (
        opened(described, url=url, **options) as upstream,
        aclosing(upstream.stream(described, {}, context())) as events,
    ):
        return [bytes(event) async for event in events]


TEXT_STREAM = b": hello\n\nevent: add\ndata: 1\ndata: 2\nid: 7\nretry: 50\n\ndata: [3, {}]\n\ndata: plain\n\ndata: [DONE]\n\ndata: 4\n\n"

DECODED: list[tuple[ReplyForm, str, bytes, list[bytes]]] = [
    (
        "events", "text/event-stream", TEXT_STREAM,
        [b'{"event":"add","data":"1\\n2","id":"7","retry":50}', b'{"data":"[3, {}]"}', b'{"data":"plain"}', b'{"data":"[DONE]"}', b'{"data":"4"}'],
    ),
    ("event-data", "text/event-stream", TEXT_STREAM, [b'"1\\n2"', b"[3, {}]", b'"plain"']),
    ("event-data", "text/event-stream", b'data: {"a":\ndata: 1}\n\ndata: cut', [b'{"a":1}']),
    ("lines", "application/jsonl", b'{"a": 1}\n\n [2] \r\n3', [b'{"a": 1}', b"[2]", b"3"]),
    ("lines", "application/x-ndjson", b"1\n2\n", [b"1", b"2"]),
    ("lines", "application/json-seq", b'\x1e{"a":\n 1}\n\x1e2\n\x1e"x"', [b'{"a":1}', b"2", b'"x"']),
]  # fmt: skip


def decoded(form: ReplyForm, media_type: str, pieces: list[bytes], limit: int = 1000) -> list[bytes]:
    decoder = event_decoder(form, media_type, limit=limit)
    assert decoder is not None
    found: list[Raw] = []
    for piece in pieces:
        if not decoder.is_over:
            found += decoder.feed(piece)
    return [bytes(event) for event in [*found, *decoder.end()]]


@pytest.mark.parametrize(("form", "media_type", "text", "events"), DECODED)
def test_a_stream_is_divided_whole_and_byte_by_byte(
    form: ReplyForm, media_type: str, text: bytes, events: list[bytes]
) -> None:
    assert decoded(form, media_type, [text]) == events
    assert decoded(form, media_type, [bytes([byte]) for byte in text]) == events


@given(
    st.sampled_from(["events", "event-data", "lines"]),
    st.sampled_from(["", "application/json-seq"]),
    st.binary(max_size=200),
)
def test_any_bytes_are_events_or_a_fault(form: Any, media_type: str, text: bytes) -> None:
    outcomes: list[object] = []
    for pieces in ([text], [bytes([byte]) for byte in text]):
        try:
            outcomes.append(decoded(form, media_type, pieces))
        except UpstreamFault as exc:
            outcomes.append(exc.reason)
    assert outcomes[0] == outcomes[1] or "json" in outcomes


@pytest.mark.parametrize(("form", "media_type"), [("events", ""), ("lines", ""), ("lines", "application/json-seq")])
def test_an_event_that_is_too_large_is_a_fault_whole_and_in_pieces(form: Any, media_type: str) -> None:
    for pieces in ([b"data: " + b"1" * 2000], [b"1"] * 2000):
        with pytest.raises(UpstreamFault) as caught:
            decoded(form, media_type, pieces)
        assert caught.value.reason == "too-large"


async def test_a_stream_ends_with_its_response_and_the_connection_goes_on() -> None:
    described = streamed("event-data")
    async with (
        answering(response(b"data: 1\n\ndata: 2\n\n", content_type="text/event-stream; charset=utf-8")) as server,
        opened(described, url=server.url) as upstream,
    ):
        for _ in range(2):
            assert [bytes(event) async for event in upstream.stream(described, {}, context())] == [b"1", b"2"]
        assert server.connections == 1
        assert server.requests[0].values("accept") == ["text/event-stream"]


async def test_a_response_that_is_no_stream_is_one_event() -> None:
    both = operation(replies=(Reply("200", {"text/event-stream": "event-data", "application/json": "json"}),))
    async with answering(response(b"[1]")) as server:
        assert await events_of(server.url, both) == [b"[1]"]


async def test_the_upstream_is_read_only_as_events_are_taken() -> None:
    """It can send no more than buffers hold while nobody takes an event, and goes on when somebody does."""
    sent = 0
    stuck = anyio.Event()
    event = b"data: " + b"x" * 10_000 + b"\n\n"

    async def handle(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.request()
        await conversation.send(SSE)
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                before = -1
                while sent != before or sent == 0:
                    before = sent
                    for _ in range(200):
                        await anyio.lowlevel.checkpoint()
                stuck.set()

            tasks.start_soon(watch)
            for _ in range(5000):
                await conversation.send(event)
                sent += 1
            tasks.cancel_scope.cancel()

    described = streamed()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        async with aclosing(upstream.stream(described, {}, context())) as events:
            await anext(events)
            await stuck.wait()
            assert sent < 5000
            count = 1
            async for _ in events:
                count += 1
            assert count == sent == 5000
        await server.deserted()


async def test_a_cancelled_consumer_ends_a_stream_that_says_nothing() -> None:
    reached = anyio.Event()

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(SSE + b"data: 1\n\n")
        await conversation.deserted()

    described = streamed()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:

        async def consume() -> None:
            async with aclosing(upstream.stream(described, {}, context())) as events:
                async for _ in events:
                    reached.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await reached.wait()
            tasks.cancel_scope.cancel()
        await server.deserted()


async def _silence(conversation: Conversation) -> None:
    await conversation.request()
    await conversation.deserted()


def _sends(data: bytes, *, endless: bytes = b"", reset: bool = False) -> Callable[[Conversation], Awaitable[None]]:
    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(data)
        while endless:
            await conversation.send(endless)
        if reset:
            await conversation.reset()

    return handle


@pytest.mark.parametrize(
    ("handle", "failure", "reason"),
    [
        (_silence, TimedOut(), "timeout"),
        (_sends(SSE, endless=b"data: " + b"x" * 1000 + b"\n"), Internal(), "too-large"),
        (_sends(SSE, endless=b"x" * 1000), Internal(), "too-large"),
        (_sends(SSE + b"data: 1\n\n", reset=True), Unavailable(upstream=True), "lost"),
        (
            _sends(SSE.replace(b"\r\n\r\n", b"\r\nContent-Length: 100\r\n\r\n") + b"data: 1\n\n"),
            Unavailable(upstream=True),
            "lost",
        ),
        (_sends(response(b"<html>", content_type="text/html")), Internal(), "content-type"),
        (_sends(response(b"{}", status=500)), Internal("HTTP_500"), "status"),
        (_sends(SSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")), Internal(), "encoding"),
    ],
)
async def test_what_goes_wrong_with_a_stream_is_typed(
    handle: Any, failure: Failure, reason: str, logged: LoggedEvents
) -> None:
    limits = HttpLimits(event_bytes=100_000, stream_head_seconds=0.0 if reason == "timeout" else 60.0)
    async with serving(handle) as server:
        with pytest.raises(FailureError) as caught:
            await events_of(server.url, streamed(), limits=limits)
        await server.deserted()
    assert caught.value.failure == failure
    assert [(event, fields["reason"]) for event, fields in logged()] == [("import.failed", reason)]


async def test_streams_are_bounded_and_leave_connections_to_calls(logged: LoggedEvents) -> None:
    async def handle(conversation: Conversation) -> None:
        while (await conversation.request()).target == "/x":
            await conversation.send(response(b"1"))
        await conversation.send(SSE + b"data: 1\n\n")
        await conversation.deserted()

    stream, call = operation(path="/s", name="s", replies=streamed().replies), operation()
    async with (
        serving(handle) as server,
        opened(stream, call, url=server.url, limits=HttpLimits(streams=1)) as upstream,
        aclosing(upstream.stream(stream, {}, context())) as first,
    ):
        await anext(first)
        with pytest.raises(FailureError) as caught:
            await anext(upstream.stream(stream, {}, context()))
        assert caught.value.failure == Overloaded()
        assert bytes(await upstream.call(call, {}, context())) == b"1"
        await first.aclose()
        async with aclosing(upstream.stream(stream, {}, context())) as second:
            await anext(second)
    assert [fields["reason"] for _, fields in logged()] == ["connections"]
