"""The spans of requests: whose children they are, how they end, and that nothing of a caller is in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from discreet import Context, OperationError, Service
from support.logged_events import LoggedEvents
from support.spans import PARENT, TRACE, TRACEPARENT, Spans, attributes, provider

pytestmark = pytest.mark.anyio

OWN = "the handler's own"
CANARY = "c4n4ry"


class SoldOut(OperationError, code="SOLD_OUT"):
    """There is nothing left."""

    name: str


def current() -> str:
    """The id of the span that is current here."""
    return trace.format_span_id(trace.get_current_span().get_span_context().span_id)


def make_shop() -> Service:
    shop = Service("shop", uses=["shop/price", "shop/broken"])

    @shop.query(inline=True)
    def price(name: str = "") -> str:
        return current()

    @shop.query
    async def ask(ctx: Context) -> str:
        with trace.get_tracer("test").start_as_current_span(OWN):
            result: str = await ctx.call("shop/price")
        return result

    @shop.query
    def ask_in_thread(ctx: Context) -> str:
        with trace.get_tracer("test").start_as_current_span(OWN):
            result: str = ctx.call_blocking("shop/price")
        return result

    @shop.subscription
    async def ask_often(ctx: Context) -> AsyncIterator[str]:
        for _ in range(2):
            yield await ctx.call("shop/price")

    @shop.mutation(errors=[SoldOut])
    async def buy(name: str) -> None:
        raise SoldOut(name=name)

    @shop.query
    async def broken() -> None:
        raise RuntimeError(CANARY)

    @shop.query
    async def breaks(ctx: Context) -> None:
        await ctx.call("shop/broken")

    @shop.query(timeout=0.01)
    async def late() -> None:
        await anyio.sleep_forever()

    @shop.query
    async def wait() -> None:
        await anyio.sleep_forever()

    @shop.notification
    async def told(text: str) -> None:
        """Take note."""

    @shop.query(visibility="internal")
    async def hidden() -> None:
        """Nobody's."""

    return shop


# -- whose children they are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["shop/ask", "shop/ask_in_thread"])
async def test_an_inner_call_is_a_child_of_what_the_handler_does_in_coroutines_and_in_threads(
    serving: Any, spans: Spans, method: str
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        inner = (await wire.call(method))["result"]
    assert spans.tree() == [f"SERVER {method}", f"  INTERNAL {OWN}", "    INTERNAL shop/price"]
    assert inner == trace.format_span_id(spans.all()[-1].context.span_id)  # type: ignore[union-attr]


async def test_the_span_of_a_subscription_lasts_until_its_last_event(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        first, second, last = [await wire.call("shop/ask_often"), *await wire.receive_all(2)]
    assert spans.tree() == ["SERVER shop/ask_often", "  INTERNAL shop/price", "  INTERNAL shop/price"]
    assert (
        [first["params"]["value"], second["params"]["value"]]
        == [
            trace.format_span_id(span.context.span_id)  # type: ignore[union-attr]
            for span in spans.all()[1:]
        ]
    )
    assert last["result"]["completed"] is True


async def test_a_handler_that_runs_at_once_stands_in_its_span_and_the_next_one_in_another(
    serving: Any, spans: Spans
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        seen = [(await wire.call("shop/price"))["result"] for _ in range(2)]
    assert seen == [trace.format_span_id(span.context.span_id) for span in spans.all()]  # type: ignore[union-attr]
    assert all(span.parent is None for span in spans.all())


async def test_a_request_belongs_to_the_span_that_its_caller_names(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        members = {"serviceParams": {"traceparent": TRACEPARENT, "tracestate": "vendor=1, other=2"}}
        await wire.call("shop/ask", **members)
        await wire.call("shop/price")
    first, *_, last = spans.all()
    assert first.parent is not None
    assert (first.parent.is_remote, trace.format_span_id(first.parent.span_id)) == (True, PARENT)
    assert {trace.format_trace_id(span.context.trace_id) for span in spans.all()[:-1]} == {TRACE}  # type: ignore[union-attr]
    assert first.context is not None and first.context.trace_state.to_header() == "vendor=1,other=2"
    assert last.parent is None


async def test_a_caller_that_does_not_sample_is_not_sampled(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call("shop/ask", serviceParams={"traceparent": TRACEPARENT[:-1] + "0"})
    assert spans.all() == []


@pytest.mark.parametrize(
    "hostile",
    [
        "", "-", "00", TRACEPARENT.upper(), TRACEPARENT + "-1", TRACEPARENT + "\n", "ff" + TRACEPARENT[2:],
        TRACEPARENT.replace(TRACE, "0" * 32), TRACEPARENT.replace(PARENT, "0" * 16), TRACEPARENT[:-1],
        "0x" + TRACEPARENT[2:], TRACEPARENT.replace("-", "_"), "٠٠" + TRACEPARENT[2:],
        "01" + TRACEPARENT[2:] + "-" + "x" * 1000, f"{CANARY}{TRACEPARENT}", "%s%n" * 20, "x" * 1_000_000,
    ],
    ids=range(17),
)  # fmt: skip
async def test_a_traceparent_that_is_none_is_ignored_and_never_logged(
    serving: Any, spans: Spans, logged: LoggedEvents, hostile: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        answer = await wire.call("shop/price", serviceParams={"traceparent": hostile, "tracestate": f"{CANARY}=1"})
    (span,) = spans.all()
    assert (span.parent, answer["result"]) == (None, trace.format_span_id(span.context.span_id))  # type: ignore[union-attr]
    assert span.context is not None and span.context.trace_state.to_header() == ""
    assert [name for name in logged.names() if not name.startswith("daemon.")] == []
    assert caplog.messages == []


@pytest.mark.parametrize(
    "hostile",
    [CANARY, "a=1,a=2", "A=1", "a=1,,=2", "a=\x7f", "a=" + "x" * 257, ",".join(f"a{n}=1" for n in range(33)), "a=1;b=2=3"],
)  # fmt: skip
async def test_a_tracestate_that_is_none_is_dropped_and_never_logged(
    serving: Any, spans: Spans, hostile: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call("shop/price", serviceParams={"traceparent": TRACEPARENT, "tracestate": hostile})
    (span,) = spans.all()
    assert span.parent is not None
    assert span.context is not None and span.context.trace_state.to_header() == ""
    assert caplog.messages == []


async def test_what_runs_around_the_daemon_is_the_parent_of_no_request(serving: Any, spans: Spans) -> None:
    with trace.get_tracer("test").start_as_current_span("around"):
        async with serving(make_shop(), otel=True) as wire:
            await wire.call("shop/ask")
            assert current() != "0" * 16
    assert spans.tree() == ["INTERNAL around", "SERVER shop/ask", f"  INTERNAL {OWN}", "    INTERNAL shop/price"]


# -- how they end ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "name", "error", "number", "status"),
    [
        ("shop/price", {}, "shop/price", None, None, StatusCode.UNSET),
        ("shop/price", {"size": 1}, "shop/price", "INVALID_INPUT", "-32602", StatusCode.UNSET),
        ("shop/buy", {"name": "pen"}, "shop/buy", "SOLD_OUT", "-32000", StatusCode.UNSET),
        ("shop/broken", {}, "shop/broken", "INTERNAL", "-32603", StatusCode.ERROR),
        ("shop/late", {}, "shop/late", "TIMEOUT", "-32000", StatusCode.ERROR),
        ("shop/ask_often", {}, "shop/ask_often", None, None, StatusCode.UNSET),
        ("shop/hidden", {}, "jsonrpc", "NOT_FOUND", "-32601", StatusCode.UNSET),
        (f"shop/{CANARY}", {}, "jsonrpc", "NOT_FOUND", "-32601", StatusCode.UNSET),
    ],
)
async def test_a_span_tells_the_outcome_and_is_an_error_where_the_daemon_is_at_fault(
    serving: Any,
    spans: Spans,
    method: str,
    params: Any,
    name: str,
    error: str | None,
    number: str | None,
    status: StatusCode,
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call(method, params)
    span = spans.named(name)
    told = attributes(span)
    assert (told.pop("error.type", None), told.pop("rpc.response.status_code", None)) == (error, number)
    assert told == {
        "rpc.system.name": "jsonrpc",
        "jsonrpc.protocol.version": "2.0",
        "rpc.method": "_OTHER" if name == "jsonrpc" else name,
    }
    assert (span.status.status_code, span.status.description, list(span.events)) == (status, None, [])


async def test_an_inner_call_that_fails_tells_its_own_outcome(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call("shop/breaks")
    assert spans.tree() == ["SERVER shop/breaks", "  INTERNAL shop/broken"]
    assert [span.status.status_code for span in spans.all()] == [StatusCode.ERROR] * 2


async def test_a_cancelled_request_and_one_that_the_end_has_cut_off_are_told_so(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True, drain_timeout=0.05) as wire:
        waiting, other = wire.request("shop/wait"), wire.request("shop/wait")
        await wire.send(waiting, other)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": waiting["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        await wire.end()
    cancelled, cut_off = spans.all()
    assert [attributes(span)["error.type"] for span in (cancelled, cut_off)] == ["CANCELLED", "UNAVAILABLE"]
    assert [span.status.status_code for span in (cancelled, cut_off)] == [StatusCode.UNSET, StatusCode.ERROR]


async def test_notifications_have_spans_and_those_that_are_ignored_have_none(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        for method, params in (("shop/told", {"text": "x"}), ("shop/told", {}), ("$/none", {}), ("none", {})):
            await wire.send({"jsonrpc": "2.0", "method": method, "params": params})
        await wire.end()
    found = [(span.name, attributes(span).get("error.type")) for span in spans.all()]
    assert sorted(found, key=str) == [("jsonrpc", "NOT_FOUND"), ("shop/told", "INVALID_INPUT"), ("shop/told", None)]


async def test_a_call_by_services_call_names_the_operation(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call("services/call", {"operationId": "shop/price", "input": {}})
        await wire.call("services/call", {"operationId": CANARY, "input": {}})
    first, second = spans.all()
    assert (first.name, attributes(first)["discreet.operation"]) == ("services/call shop/price", "shop/price")
    assert second.name == "services/call"


# -- nothing of a caller -----------------------------------------------------------------------------------------------


async def test_nothing_that_a_caller_sends_is_in_any_span(serving: Any, spans: Spans) -> None:
    beside = {"serviceParams": {"authorization": f"Bearer {CANARY}", CANARY: CANARY, "traceparent": CANARY}}
    async with serving(make_shop(), otel=True) as wire:
        for method, params in (
            (CANARY, {CANARY: CANARY}),
            (f"shop/price/{CANARY}", [CANARY]),
            ("shop/price", {"name": CANARY}),
            ("shop/price", {CANARY: 1}),
            ("shop/buy", {"name": CANARY}),
            ("shop/broken", {}),
            ("services/call", {"operationId": CANARY, "input": {CANARY: CANARY}}),
            ("$/cancelRequest", {"id": CANARY}),
        ):
            await wire.send(
                {"jsonrpc": "2.0", "id": f"{CANARY}-{method}", "method": method, "params": params, **beside}
            )
            await wire.receive()
    assert len(spans.all()) == 8
    assert CANARY not in spans.text()


# -- the rest ----------------------------------------------------------------------------------------------------------


async def test_without_the_setting_nothing_is_recorded(serving: Any, spans: Spans) -> None:
    async with serving(make_shop()) as wire:
        await wire.call("shop/ask", serviceParams={"traceparent": TRACEPARENT})
    assert [(span.name, span.parent) for span in spans.all()] == [(OWN, None)]


async def test_lines_of_the_log_name_the_span_of_their_request(
    serving: Any, spans: Spans, logged: LoggedEvents
) -> None:
    async with serving(make_shop(), otel=True) as wire:
        await wire.call("shop/none")
        await wire.call("shop/broken")
    ids = [trace.format_span_id(span.context.span_id) for span in spans.all()]  # type: ignore[union-attr]
    lines = [(name, fields.get("span_id")) for name, fields in logged() if "trace_id" in fields]
    assert lines == [("request.failed", ids[0]), ("handler.failed", ids[1])]


_numbers = count()


class Hostile:
    """A processor of spans that raises whenever it can."""

    def __init__(self) -> None:
        self.on = True
        self._error = type(f"Fault{next(_numbers)}", (ValueError,), {})  # what was told of another is not told again

    def _raise(self) -> None:
        if self.on:
            raise self._error("a processor of the program's own")

    def on_start(self, span: object, parent_context: object = None) -> None:
        self._raise()

    def on_end(self, span: object) -> None:
        self._raise()

    def _on_ending(self, span: object) -> None: ...
    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        self._raise()
        return True


async def test_a_processor_that_raises_costs_no_answer_and_is_logged_once(
    serving: Any, spans: Spans, logged: LoggedEvents
) -> None:
    hostile = Hostile()
    provider()[0].add_span_processor(hostile)  # type: ignore[arg-type]
    try:
        async with serving(make_shop(), otel=True) as wire:
            answers = [await wire.call(method) for method in ("shop/price", "shop/breaks", "shop/price")]
    finally:
        hostile.on = False
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32603, None]
    assert logged.names().count("otel.failed") == 1
