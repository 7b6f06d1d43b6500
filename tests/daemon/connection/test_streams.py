"""What a client sees of subscriptions: every event once and in order, then one answer; and how they are called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from support.ticks import Ticks, event, settled, stream
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}
TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}
UNAVAILABLE = {"code": -32000, "message": "Shutting down", "data": {"code": "UNAVAILABLE", "retryable": True}}
MISMATCH = {"code": -32600, "message": "Invalid Request", "data": {"reason": "invalid-operation-type"}}


# -- the sequence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call_id", [7, "seven", None, 1.5])
async def test_events_are_numbered_from_1_and_then_one_answer_counts_them(
    serving: Serving, ticks: Ticks, call_id: Any
) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 3}, id=call_id))
        assert await wire.receive_all(4) == [
            event(call_id, 1, "0:"),
            event(call_id, 2, "1:"),
            event(call_id, 3, "2:"),
            {"jsonrpc": "2.0", "id": call_id, "result": {"completed": True, "events": 3}},
        ]
        await wire.nothing_more()


async def test_a_subscription_without_events_is_answered_all_the_same(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        assert (await wire.call("ticks/count", {"to": 0}))["result"] == {"completed": True, "events": 0}
        await wire.nothing_more()


async def test_the_id_of_an_event_is_echoed_byte_for_byte(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(b'{"jsonrpc":"2.0","id":1.00,"method":"ticks/count","params":{"to":1}}')
        await anyio.wait_all_tasks_blocked()
        raw = wire.transport.receive_nowait()
        assert raw.count(b'"id":1.00,') == 2


@pytest.mark.parametrize("wait", [False, True])
async def test_ten_thousand_events_arrive_in_order_at_a_slow_reader(serving: Serving, ticks: Ticks, wait: bool) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10_000, "pad": 20, "wait": wait}))
        await settled(wire)
        assert ticks.produced < 10_000
        values, answer = await stream(wire, 1)
        assert [int(value.partition(":")[0]) for value in values] == list(range(10_000))
        assert answer["result"] == {"completed": True, "events": 10_000}
        assert ticks.closed == 1


# -- how it can end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 40])
@pytest.mark.parametrize(
    ("how", "error"),
    [
        (
            "declared",
            {"code": -32000, "message": "What was watched is gone", "data": {"code": "GONE", "retryable": False}},
        ),
        ("undeclared", {**INTERNAL, "data": {"code": "HIDDEN"}}),
        ("wrong-event", INTERNAL),
        ("unserialisable", INTERNAL),
        ("wrong-details", INTERNAL),
        ("exit", INTERNAL),
        ("other", INTERNAL),
    ],
)
async def test_an_error_comes_after_the_events_before_it(
    serving: Serving, ticks: Ticks, how: str, after: int, error: dict[str, Any]
) -> None:
    if how == "declared":
        error = {**error, "data": {**error["data"], "details": {"at": after}}}
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/fail", {"after": after, "how": how}))
        values, answer = await stream(wire, 1)
        assert values == list(range(after))
        assert answer == {"jsonrpc": "2.0", "id": 1, "error": error}
        await wire.nothing_more()


async def test_wrong_params_are_refused_before_the_producer_runs(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        reply = await wire.call("ticks/count", {"to": "ten"})
        assert reply["error"]["data"] == {"param": "to", "expected": "integer", "received": "string"}
        assert ticks.produced == ticks.closed == 0
        await wire.nothing_more()


async def test_a_cancelled_stream_ends_with_its_answer_and_its_producer_cleans_up(
    serving: Serving, ticks: Ticks
) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/watch", id="w"))
        assert await wire.receive_all(2) == [event("w", 1, 1), event("w", 2, 2)]
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "w"}})
        assert await wire.receive() == {"jsonrpc": "2.0", "id": "w", "error": CANCELLED}
        await until(lambda: ticks.closed == 1)
        await wire.nothing_more()


async def test_no_event_follows_the_answer_whatever_the_producer_does(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/stubborn", id="w"))
        assert await wire.receive() == event("w", 1, 1)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "w"}})
        assert await wire.receive() == {"jsonrpc": "2.0", "id": "w", "error": CANCELLED}
        await until(lambda: ticks.closed == 1)
        await wire.nothing_more()
        await wire.nothing_more()  # events leave behind replies


async def test_a_stream_that_waits_for_its_reader_can_be_cancelled(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        for round_ in range(1, 9):
            await wire.send(wire.request("ticks/count", {"to": 100_000, "pad": 1000}, id="w"))
            await settled(wire)
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "w"}})
            values, answer = await stream(wire, "w")
            assert answer["error"] == CANCELLED
            assert len(values) <= ticks.produced
            await until(lambda round_=round_: ticks.closed == round_)  # type: ignore[misc]
        await wire.nothing_more()


async def test_a_subscription_has_no_deadline_but_its_own(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service, request_timeout=0.01) as wire:
        await wire.send(wire.request("ticks/watch", id="free"), wire.request("ticks/brief", id="brief"))
        answer, events = None, 0
        while answer is None or events < 2:  # those of the other are none, on a busy machine
            message = await wire.receive()
            answer = message if "error" in message else answer
            events += "method" in message and message["params"]["id"] == "free"
        assert answer == {"jsonrpc": "2.0", "id": "brief", "error": TIMEOUT}
        await until(lambda: ticks.closed == 1)
        await wire.nothing_more()


@pytest.mark.parametrize("how", ["end-of-input", "shutdown", "signal"])
async def test_a_stream_that_still_runs_at_the_end_is_answered_unavailable(
    serving: Serving, ticks: Ticks, how: str
) -> None:
    async with serving(ticks.service, drain_timeout=0.2) as wire:
        await wire.send(wire.request("ticks/watch", id="w"))
        await wire.receive_all(2)
        match how:
            case "end-of-input":
                wire.transport.send_eof()
            case "shutdown":
                assert "result" in await wire.call("shutdown")
            case _:
                wire.daemon.ask_to_end("signal")
        assert await wire.receive() == {"jsonrpc": "2.0", "id": "w", "error": UNAVAILABLE}
        with anyio.fail_after(DEADLINE_SECONDS):
            await wire.ended.wait()
        assert (wire.status, ticks.closed) == (0, 1)


async def test_events_go_on_inside_the_drain_window(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 2000, "pad": 100}))
        wire.transport.send_eof()
        values, answer = await stream(wire, 1)
        assert len(values) == 2000
        assert answer["result"]["events"] == 2000


async def test_a_reader_that_goes_away_ends_the_producer(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9, "pad": 1000}))
        await wire.receive()
        wire.transport.close()
        with anyio.fail_after(DEADLINE_SECONDS):
            await wire.ended.wait()
        assert wire.status in (0, 1)  # by what is seen first: the end of the input, or that nobody reads
        assert (ticks.running, ticks.closed) == (0, 1)


# -- names and kinds -----------------------------------------------------------------------------------------------


async def test_a_subscription_streams_under_its_name_and_through_services_subscribe(
    serving: Serving, ticks: Ticks
) -> None:
    async with serving(ticks.service) as wire:
        for method, params in (
            ("ticks/count", {"to": 2}),
            ("/ticks/count", [2]),
            ("services/subscribe", {"operationId": "ticks/count", "input": {"to": 2}}),
            ("services/subscribe", {"operationId": "/ticks/count", "input": {"to": 2}}),
            ("/services/subscribe", ["ticks/count", [2]]),
        ):
            await wire.send(wire.request(method, params, id="s"))
            values, answer = await stream(wire, "s")
            assert (values, answer["result"]) == (["0:", "1:"], {"completed": True, "events": 2})


@pytest.mark.parametrize(
    ("method", "target"),
    [("services/subscribe", "ticks/ping"), ("services/call", "ticks/watch"), ("services/subscribe", "version")],
)
async def test_the_wrong_way_to_call_a_kind_is_told(serving: Serving, ticks: Ticks, method: str, target: str) -> None:
    async with serving(ticks.service) as wire:
        assert (await wire.call(method, {"operationId": target}))["error"] == MISMATCH
        await wire.nothing_more()


@pytest.mark.parametrize("method", ["services/call", "services/subscribe"])
@pytest.mark.parametrize("target", ["no/such", "", "services/call", "services/subscribe", "/services/call"])
async def test_what_can_not_be_named_as_data_is_not_found(serving: Serving, method: str, target: str) -> None:
    async with serving() as wire:
        reply = await wire.call(method, {"operationId": target, "input": {}})
        assert reply["error"] == {"code": -32601, "message": "Method not found"}


async def test_faults_of_a_forwarded_input_are_named_in_the_callers_own_params(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        for method, target, given, param in (
            ("services/subscribe", "ticks/count", {"to": "x"}, "input.to"),
            ("services/subscribe", "ticks/count", {}, "input.to"),
            ("services/subscribe", "ticks/count", 5, "input"),
            ("services/call", "ticks/ping", {"extra": 1}, None),
        ):
            reply = await wire.call(method, {"operationId": target, "input": given})
            assert reply["error"]["code"] == -32602
            assert param is None or reply["error"]["data"]["param"] == param
        reply = await wire.call("services/call", {"input": {}})
        assert reply["error"]["data"] == {"param": "operationId", "expected": "string", "received": "missing"}


async def test_a_subscription_sent_as_a_notification_runs_nothing_and_says_nothing(
    serving: Serving, ticks: Ticks
) -> None:
    async with serving(ticks.service) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "ticks/count", "params": {"to": 3}})
        await wire.send(
            {"jsonrpc": "2.0", "method": "services/subscribe", "params": {"operationId": "ticks/count", "input": [3]}}
        )
        await wire.nothing_more()
        assert ticks.produced == 0


async def test_a_second_subscription_under_a_running_id_is_refused(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/watch", id="w"))
        await wire.receive_all(2)
        reply = await wire.call("ticks/watch", id="w")
        assert reply["error"]["data"] == {"reason": "duplicate-id"}
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "w"}})
        assert (await wire.receive())["error"] == CANCELLED
        await until(lambda: ticks.closed == 1)


async def test_a_producer_may_send_progress_and_notifications_beside_its_events(serving: Serving) -> None:
    service = Service("mixed")

    @service.subscription()
    async def both(ctx: Context) -> AsyncIterator[int]:
        for number in range(3):
            await ctx.notify("note", {"number": number})
            ctx.progress(number)
            yield number

    async with serving(service) as wire:
        await wire.send(wire.request("mixed/both", {"_meta": {"progressToken": "t"}}))
        messages = await wire.receive_all(10)
        assert [m["params"]["value"] for m in messages if m.get("method") == "stream/event"] == [0, 1, 2]
        assert [m["params"]["number"] for m in messages if m.get("method") == "note"] == [0, 1, 2]
        assert [m["params"]["value"] for m in messages if m.get("method") == "$/progress"] == [0, 1, 2]
        assert messages[-1]["result"]["events"] == 3
