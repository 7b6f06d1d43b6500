"""The spans of HTTP requests, and of the calls in them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec
import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from discreet import Context, OperationError, Service
from support.asgi_client import JSON, AsgiClient
from support.executors import echo
from support.mcp_http import MODERN, McpHttp
from support.spans import PARENT, TRACE, TRACEPARENT, Spans, attributes, recorded

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry"
V1 = {**JSON, "a2a-version": "1.0"}


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recorded() as found:
        yield found


@pytest.fixture
async def client(serve: Serve, spans: Spans) -> AsyncGenerator[AsgiClient]:
    async with serve(otel=True) as found:
        yield found


def said(text: str = CANARY) -> dict[str, Any]:
    return {"message": {"messageId": CANARY, "role": "ROLE_USER", "parts": [{"text": text}]}, "metadata": {CANARY: 1}}


def jsonrpc(method: str, params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": CANARY, "method": method, "params": params})


async def status_of(client: AsgiClient, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    async with client.open(method, path, body, {**V1, **headers}) as reply:
        await reply.body()
        return reply.status


async def test_an_http_request_and_the_call_in_it_are_one_span_for_the_span_which_the_headers_name(
    client: AsgiClient, spans: Spans
) -> None:
    body = jsonrpc("SendMessage", said())
    await status_of(client, "POST", "/", body, traceparent=TRACEPARENT, tracestate="vendor=1")
    assert spans.tree() == ["SERVER SendMessage", "  INTERNAL invoke_agent Echo"]
    request = spans.named("SendMessage")
    assert request.parent is not None and request.context is not None
    assert (trace.format_trace_id(request.parent.trace_id), trace.format_span_id(request.parent.span_id)) == (
        TRACE,
        PARENT,
    )
    assert request.context.trace_state.to_header() == "vendor=1"
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "rpc.system.name": "jsonrpc",
        "jsonrpc.protocol.version": "2.0",
        "rpc.method": "SendMessage",
    }


@pytest.mark.parametrize(
    ("verb", "path", "name", "call", "status"),
    [
        ("POST", "/message:send", "POST /message:send", "SendMessage", 200),
        ("POST", f"/{CANARY}/message:send", "POST /{tenant}/message:send", "SendMessage", 200),
        ("GET", f"/tasks/{CANARY}?{CANARY}={CANARY}", "GET /tasks/{id}", "GetTask", 404),
        ("GET", "/.well-known/agent-card.json", "GET /.well-known/agent-card.json", None, 200),
        ("GET", f"/{CANARY}", "GET", None, 404),
        (CANARY, "/", "HTTP /", None, 405),
    ],
)
async def test_a_request_is_named_by_the_template_of_its_path_and_holds_nothing_of_its_own(
    client: AsgiClient, spans: Spans, verb: str, path: str, name: str, call: str | None, status: int
) -> None:
    body = msgspec.json.encode(said()) if verb == "POST" else b""
    headers = {CANARY: CANARY, "user-agent": CANARY, "authorization": f"Bearer {CANARY}", "cookie": CANARY}
    assert await status_of(client, verb, path, body, **headers) == status
    request = spans.named(name)
    assert attributes(request)["http.response.status_code"] == status
    assert attributes(request).get("http.route", "") == name.partition(" ")[2]
    assert request.status.status_code is StatusCode.UNSET
    assert (request.kind, attributes(request).get("rpc.method")) == (SpanKind.SERVER, call)
    assert "rpc.system.name" not in attributes(request)
    assert CANARY not in spans.text()


@pytest.mark.parametrize(
    ("method", "name", "error"), [("GetTask", "GetTask", "TASK_NOT_FOUND"), (CANARY, "jsonrpc", "NOT_FOUND")]
)
async def test_a_call_that_fails_tells_so_although_http_says_200(
    client: AsgiClient, spans: Spans, method: str, name: str, error: str
) -> None:
    assert await status_of(client, "POST", "/", jsonrpc(method, {"id": CANARY})) == 200
    told = attributes(spans.named(name))
    assert (told["error.type"], told["http.response.status_code"]) == (error, 200)
    assert CANARY not in spans.text()


async def test_what_is_refused_before_it_is_a_call_is_a_request_alone(client: AsgiClient, spans: Spans) -> None:
    assert await status_of(client, "POST", "/", b"{", host=f"{CANARY}.example") == 421
    assert await status_of(client, "POST", "/", b"{") == 200
    assert spans.tree() == ["SERVER POST", "SERVER POST /"]
    assert CANARY not in spans.text()


async def test_two_parents_are_none(client: AsgiClient, spans: Spans) -> None:
    async def twice(scope: Any, receive: Any, send: Any) -> None:
        scope["headers"] += [field for field in scope["headers"] if field[0] == b"traceparent"]
        await app(scope, receive, send)

    app, client._app = client._app, twice
    assert await status_of(client, "GET", "/tasks", traceparent=TRACEPARENT) == 200
    assert [span.parent for span in spans.all() if span.kind is SpanKind.SERVER] == [None]


async def test_a_stream_is_a_span_until_its_last_event(client: AsgiClient, spans: Spans) -> None:
    assert await status_of(client, "POST", "/", jsonrpc("SendStreamingMessage", said())) == 200
    stream, work = spans.all()
    assert (stream.name, attributes(stream).get("error.type")) == ("SendStreamingMessage", None)
    assert stream.end_time is not None and work.end_time is not None
    assert work.end_time <= stream.end_time


async def test_where_the_server_around_it_records_requests_the_gateway_does_not_again(
    client: AsgiClient, spans: Spans
) -> None:
    with trace.get_tracer("test").start_as_current_span("around", kind=SpanKind.SERVER):
        await status_of(client, "POST", "/", jsonrpc("ListTasks", {}), traceparent=TRACEPARENT)
    await status_of(client, "POST", "/", jsonrpc("ListTasks", {}))
    assert spans.tree() == ["SERVER around", "  SERVER ListTasks", "SERVER ListTasks"]


async def test_a_fault_of_the_executor_is_no_error_of_the_request(serve: Serve, spans: Spans) -> None:
    async def fail(context: Any, events: Any) -> None:
        raise RuntimeError(CANARY)

    async with serve(agent_of(fail), otel=True) as client:
        await status_of(client, "POST", "/", jsonrpc("SendMessage", said()))
    errors = {span.name: span.status.status_code for span in spans.all()}
    assert errors == {"SendMessage": StatusCode.UNSET, "invoke_agent Echo": StatusCode.ERROR}
    assert CANARY not in spans.text()


def make_shop() -> Service:
    shop = Service("shop", uses=["shop/price"])

    @shop.query(errors=[SoldOut])
    async def buy(ctx: Context, name: str) -> int:
        """Buy."""
        if name == "none":
            raise SoldOut
        result: int = await ctx.call("shop/price")
        return result

    @shop.query
    async def price() -> int:
        """Tell a price."""
        return 1

    @shop.query
    async def broken() -> int:
        """Fail."""
        raise RuntimeError(CANARY)

    return shop


class SoldOut(OperationError, code="SOLD_OUT", http_status=409):
    """There is nothing left."""


@pytest.mark.parametrize(
    ("path", "body", "status", "name", "error", "expected"),
    [
        ("/operations/shop/buy", {"name": CANARY}, 200, "POST /operations/shop/buy", None, StatusCode.UNSET),
        ("/operations/shop/buy", {"name": "none"}, 409, "POST /operations/shop/buy", "SOLD_OUT", StatusCode.UNSET),
        ("/operations/shop/buy", {CANARY: 1}, 400, "POST /operations/shop/buy", "INVALID_INPUT", StatusCode.UNSET),
        ("/operations/shop/broken", {}, 500, "POST /operations/shop/broken", "INTERNAL", StatusCode.ERROR),
        (f"/operations/{CANARY}", {}, 404, "POST", None, StatusCode.UNSET),
    ],
)
async def test_an_operation_is_one_span_with_its_http_request(
    serve: Serve, spans: Spans, path: str, body: Any, status: int, name: str, error: str | None, expected: StatusCode
) -> None:
    async with serve(make_shop(), http_operations=True, otel=True) as client:
        found = await status_of(client, "POST", path, msgspec.json.encode(body), traceparent=TRACEPARENT)
        assert found == status
    request, *inner = spans.all()
    told = attributes(request)
    assert (request.name, told.get("error.type"), request.status.status_code) == (name, error, expected)
    assert told["http.response.status_code"] == status
    assert request.parent is not None and trace.format_span_id(request.parent.span_id) == PARENT
    assert [span.name for span in inner] == (["shop/price"] if status == 200 else [])
    assert CANARY not in spans.text()


@pytest.mark.parametrize("in_meta", [False, True])
async def test_a_tool_is_one_span_with_its_http_request_for_what_its_meta_names_else_the_headers(
    serve: Serve, spans: Spans, in_meta: bool
) -> None:
    other = f"00-{'1' * 32}-{'2' * 16}-01"
    async with serve(make_shop(), http_mcp=True, otel=True) as client:
        mcp = McpHttp(client, MODERN, traceparent=other)
        meta = {"traceparent": TRACEPARENT} if in_meta else {}
        answer = await mcp.post("tools/call", {"name": "shop_buy", "arguments": {"name": CANARY}, "_meta": meta})
    assert answer.status == 200
    assert spans.tree() == ["SERVER tools/call shop_buy", "  INTERNAL shop/price"]
    request = spans.named("tools/call shop_buy")
    assert request.parent is not None
    assert trace.format_span_id(request.parent.span_id) == (PARENT if in_meta else "2" * 16)
    told = attributes(request)
    assert (told["http.route"], told["http.response.status_code"], told["mcp.method.name"]) == (
        "/mcp",
        200,
        "tools/call",
    )
    assert CANARY not in spans.text()


async def test_probes_have_no_spans(client: AsgiClient, spans: Spans) -> None:
    for path in ("/healthz", "/readyz"):
        assert await status_of(client, "GET", path) == 200
    assert spans.all() == []


async def test_without_the_setting_nothing_is_recorded(serve: Serve, spans: Spans) -> None:
    async with serve(agent_of(echo)) as client:
        assert await status_of(client, "POST", "/", jsonrpc("SendMessage", said()), traceparent=TRACEPARENT) == 200
    assert spans.all() == []
