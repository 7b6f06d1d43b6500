"""The spans of HTTP requests, and of the calls in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from support.asgi_client import JSON, AsgiClient
from support.executors import echo
from support.spans import PARENT, TRACE, TRACEPARENT, Spans, attributes, recorded

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry"
V1 = {**JSON, "a2a-version": "1.0"}


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recorded() as found:
        yield found


def said(text: str = CANARY) -> dict[str, Any]:
    return {"message": {"messageId": CANARY, "role": "ROLE_USER", "parts": [{"text": text}]}, "metadata": {CANARY: 1}}


def jsonrpc(method: str, params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": CANARY, "method": method, "params": params})


async def status_of(client: AsgiClient, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    async with client.open(method, path, body, {**V1, **headers}) as reply:
        await reply.body()
        return reply.status


async def test_a_call_is_a_child_of_its_http_request_and_that_one_of_the_span_which_the_headers_name(
    serve: Serve, spans: Spans
) -> None:
    async with serve(otel=True) as client:
        body = jsonrpc("SendMessage", said())
        await status_of(client, "POST", "/", body, traceparent=TRACEPARENT, tracestate="vendor=1")
    assert [line for line in spans.tree() if "commit" not in line] == [
        "SERVER POST /",
        "  SERVER SendMessage",
        "    INTERNAL invoke_agent Echo",
    ]
    request = spans.named("POST /")
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
    }


@pytest.mark.parametrize(
    ("verb", "path", "name", "call", "status"),
    [
        ("POST", "/message:send", "POST /message:send", "SendMessage", 200),
        ("POST", f"/{CANARY}/message:send", "POST /{tenant}/message:send", "SendMessage", 200),
        ("GET", f"/tasks/{CANARY}?{CANARY}={CANARY}", "GET /tasks/{id}", "GetTask", 404),
        ("GET", "/tasks?pageSize=0", "GET /tasks", "ListTasks", 400),
        ("GET", "/.well-known/agent-card.json", "GET /.well-known/agent-card.json", None, 200),
        ("GET", f"/{CANARY}", "GET", None, 404),
        (CANARY, "/", "HTTP", None, 405),
    ],
)
async def test_a_request_is_named_by_the_template_of_its_path_and_holds_nothing_of_its_own(
    serve: Serve, spans: Spans, verb: str, path: str, name: str, call: str | None, status: int
) -> None:
    body = msgspec.json.encode(said()) if verb == "POST" else b""
    headers = {CANARY: CANARY, "user-agent": CANARY, "authorization": f"Bearer {CANARY}", "cookie": CANARY}
    async with serve(otel=True) as client:
        assert await status_of(client, verb, path, body, **headers) == status
    request = spans.named(name)
    assert attributes(request)["http.response.status_code"] == status
    assert attributes(request).get("http.route", "") == name.partition(" ")[2]
    assert request.status.status_code is StatusCode.UNSET
    if call is not None:
        assert (spans.named(call).kind, attributes(spans.named(call))["rpc.method"]) == (SpanKind.INTERNAL, call)
    assert CANARY not in spans.text()


@pytest.mark.parametrize(
    ("method", "name", "error"), [("GetTask", "GetTask", "TASK_NOT_FOUND"), (CANARY, "jsonrpc", "NOT_FOUND")]
)
async def test_a_call_that_fails_tells_so_although_http_says_200(
    serve: Serve, spans: Spans, method: str, name: str, error: str
) -> None:
    async with serve(otel=True) as client:
        assert await status_of(client, "POST", "/", jsonrpc(method, {"id": CANARY})) == 200
    assert attributes(spans.named(name))["error.type"] == error
    assert CANARY not in spans.text()


async def test_what_is_refused_before_it_is_a_call_is_a_request_alone(serve: Serve, spans: Spans) -> None:
    async with serve(otel=True) as client:
        assert await status_of(client, "POST", "/", b"{", host=f"{CANARY}.example") == 421
        assert await status_of(client, "POST", "/", b"{") == 200
    assert spans.tree() == ["SERVER POST", "SERVER POST /"]
    assert CANARY not in spans.text()


async def test_two_parents_are_none(serve: Serve, spans: Spans) -> None:
    async def twice(scope: Any, receive: Any, send: Any) -> None:
        scope["headers"] += [field for field in scope["headers"] if field[0] == b"traceparent"]
        await app(scope, receive, send)

    async with serve(otel=True) as client:
        app, client._app = client._app, twice
        assert await status_of(client, "GET", "/tasks", traceparent=TRACEPARENT) == 200
    assert [span.parent for span in spans.all() if span.kind is SpanKind.SERVER] == [None]


async def test_a_stream_is_a_span_until_its_last_event(serve: Serve, spans: Spans) -> None:
    async with serve(otel=True) as client:
        assert await status_of(client, "POST", "/", jsonrpc("SendStreamingMessage", said())) == 200
    request, call = spans.named("POST /"), spans.named("SendStreamingMessage")
    assert call.end_time is not None and request.end_time is not None
    assert (attributes(call).get("error.type"), call.end_time <= request.end_time) == (None, True)


async def test_where_the_server_around_it_records_requests_the_gateway_does_not_again(
    serve: Serve, spans: Spans
) -> None:
    async with serve(otel=True) as client:
        with trace.get_tracer("test").start_as_current_span("around", kind=SpanKind.SERVER):
            await status_of(client, "POST", "/", jsonrpc("ListTasks", {}), traceparent=TRACEPARENT)
        await status_of(client, "POST", "/", jsonrpc("ListTasks", {}))
    assert spans.tree() == ["SERVER around", "  SERVER ListTasks", "SERVER POST /", "  SERVER ListTasks"]


async def test_a_fault_of_the_executor_is_no_error_of_the_request(serve: Serve, spans: Spans) -> None:
    async def fail(context: Any, events: Any) -> None:
        raise RuntimeError(CANARY)

    async with serve(agent_of(fail), otel=True) as client:
        await status_of(client, "POST", "/", jsonrpc("SendMessage", said()))
    errors = {span.name: span.status.status_code for span in spans.all() if span.name != "commit"}
    assert errors == {
        "POST /": StatusCode.UNSET,
        "SendMessage": StatusCode.UNSET,
        "invoke_agent Echo": StatusCode.ERROR,
    }
    assert CANARY not in spans.text()


async def test_without_the_setting_nothing_is_recorded(serve: Serve, spans: Spans) -> None:
    async with serve(agent_of(echo)) as client:
        assert await status_of(client, "POST", "/", jsonrpc("SendMessage", said()), traceparent=TRACEPARENT) == 200
    assert spans.all() == []
