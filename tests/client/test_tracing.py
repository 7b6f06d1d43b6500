"""The spans of a client's calls, and what servers are told of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from discreet import Context, Service, call_tracing
from discreet.client import ACP, LSP, MCP, PLAIN, Dialect, MethodNotFound, RequestTimeout, attach, blocking, connect
from discreet.framing.transports.memory import memory_pair
from discreet.testing import in_memory
from support.http_server import HttpRequest, http_server
from support.programs import DISCREET, environment
from support.spans import TRACEPARENT, Spans, attributes, recorded
from support.wire import frame

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recorded() as found:
        yield found


def span_id(span: Any) -> str:
    return trace.format_span_id(span.context.span_id)


async def echo(request: HttpRequest) -> None:
    await request.result(request.message.get("params"))


async def test_a_call_by_http_names_its_span_in_a_header(spans: Spans) -> None:
    async with http_server(echo) as server, connect(server.url) as peer:
        with trace.get_tracer("test").start_as_current_span("program"):
            await peer.call("GetTask", {"id": "1"})
        (request,) = server.requests
    assert spans.tree() == ["INTERNAL program", "  CLIENT GetTask"]
    assert request.headers["traceparent"].split("-")[2] == span_id(spans.named("GetTask"))
    assert request.message["params"] == {"id": "1"}


async def test_a_span_that_the_program_names_itself_is_told_instead(spans: Spans) -> None:
    async with http_server(echo) as server, connect(server.url, service_params={"Traceparent": TRACEPARENT}) as peer:
        await peer.call("GetTask", {"id": "1"})
        (request,) = server.requests
    assert request.headers["traceparent"] == TRACEPARENT


@pytest.mark.parametrize(
    ("dialect", "params", "place"),
    [
        (PLAIN, {"a": 1}, "serviceParams"),
        (PLAIN, None, "serviceParams"),
        (MCP, {"a": 1, "_meta": {"b": 2}}, "_meta"),
        (ACP, None, "_meta"),
        (MCP, [1], None),
        (LSP, {"a": 1}, None),
        (Dialect(), {"a": 1}, None),
    ],
)
async def test_servers_are_told_where_their_protocol_has_a_place_for_it(
    spans: Spans, dialect: Dialect, params: Any, place: str | None
) -> None:
    ours, theirs = memory_pair()
    bare = Dialect(trace=dialect.trace)
    async with attach(ours, dialect=bare, timeout=None) as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "work", params)
        message = _message(await theirs.receive())
        await theirs.send(frame({"jsonrpc": "2.0", "id": message["id"], "result": None}))
    told = {
        "serviceParams": message.get("serviceParams"),
        "_meta": (message.get("params") or {}).get("_meta") if not isinstance(params, list) else None,
    }
    assert {name for name, value in told.items() if value and "traceparent" in value} == ({place} if place else set())
    if place is None:
        assert message.get("params") == params
    else:
        assert told[place]["traceparent"].split("-")[2] == span_id(spans.named("work"))
    if params and place == "_meta":
        assert message["params"] == {**params, "_meta": {**params["_meta"], **told["_meta"]}}


def _message(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data.partition(b"\r\n\r\n")[2])
    return found


def make_shop() -> Service:
    shop = Service("shop", uses=["shop/price"])

    @shop.query
    async def price() -> int:
        return 1

    @shop.subscription
    async def prices(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    @shop.query
    async def wait() -> None:
        await anyio.sleep_forever()

    return shop


async def test_calls_and_subscriptions_tell_how_they_have_ended(spans: Spans) -> None:
    async with in_memory(make_shop()) as peer:
        await peer.call("shop/price")
        with pytest.raises(MethodNotFound):
            await peer.call("shop/none")
        with pytest.raises(RequestTimeout):
            await peer.call("shop/wait", timeout=0.0)
        assert [event async for event in peer.subscribe("shop/prices", {"count": 2})] == [0, 1]
        async with peer.subscribe("shop/prices", {"count": 9}) as events:
            await anext(events)
    found = [(s.name, attributes(s).get("error.type"), s.status.status_code) for s in spans.all()]
    assert found == [
        ("shop/price", None, StatusCode.UNSET),
        ("shop/none", "MethodNotFound", StatusCode.ERROR),
        ("shop/wait", "RequestTimeout", StatusCode.ERROR),
        ("shop/prices", None, StatusCode.UNSET),
        ("shop/prices", None, StatusCode.UNSET),
    ]
    assert {span.kind for span in spans.all()} == {SpanKind.CLIENT}


async def test_a_handler_that_calls_another_server_joins_its_trace(spans: Spans) -> None:
    outer = Service("outer")

    @outer.query
    async def ask(ctx: Context) -> int:
        async with in_memory(make_shop(), otel=True) as peer:
            result: int = await peer.call("shop/price")
            assert [event async for event in peer.subscribe("shop/prices", {"count": 1})] == [0]
        return result

    async with in_memory(outer, otel=True) as peer:
        assert await peer.call("outer/ask") == 1
    assert spans.tree() == [
        "CLIENT outer/ask",
        "  SERVER outer/ask",
        "    CLIENT shop/price",
        "      SERVER shop/price",
        "    CLIENT shop/prices",
        "      SERVER services/subscribe shop/prices",
    ]


def test_a_blocking_call_is_a_child_of_what_its_thread_does(spans: Spans) -> None:
    command = [*DISCREET, "serve"]
    with (
        trace.get_tracer("test").start_as_current_span("program"),
        blocking.connect(command, env=environment(), stderr="collect") as peer,
    ):
        peer.call("version")
    assert spans.tree() == ["INTERNAL program", "  CLIENT version"]


async def test_nothing_is_recorded_before_the_program_asks_for_it(spans: Spans) -> None:
    call_tracing.tracer = None
    async with in_memory(make_shop()) as peer:
        await peer.call("shop/price")
        assert [event async for event in peer.subscribe("shop/prices", {"count": 1})] == [0]
    assert spans.all() == []
