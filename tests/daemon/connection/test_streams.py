"""What a client sees of subscriptions: every event once and in order, then one answer; how they are called, and how a slow reader holds them up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from discreet.daemon.connection.writer import WINDOW_BYTES
from discreet.testing import in_memory
from support.daemon_wire import Serving
from support.ticks import Ticks, event, settled, stream
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}
TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}
UNAVAILABLE = {"code": -32000, "message": "Shutting down", "data": {"code": "UNAVAILABLE", "retryable": True}}
MISMATCH = {"code": -32600, "message": "Invalid Request", "data": {"reason": "invalid-operation-type"}}


# -- the sequence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call_id", [7, None])
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


async def test_the_id_of_an_event_is_echoed_byte_for_byte(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(b'{"jsonrpc":"2.0","id":1.00,"method":"ticks/count","params":{"to":1}}')
        await anyio.wait_all_tasks_blocked()
        raw = wire.transport.receive_nowait()
        assert raw.count(b'"id":1.00,') == 2


@pytest.mark.parametrize("wait", [False, True])
async def test_thousands_of_events_arrive_in_order_at_a_slow_reader(serving: Serving, ticks: Ticks, wait: bool) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 3_000, "pad": 20, "wait": wait}))
        await settled(wire)
        assert ticks.produced < 3_000
        values, answer = await stream(wire, 1)
        assert [int(value.partition(":")[0]) for value in values] == list(range(3_000))
        assert answer["result"] == {"completed": True, "events": 3_000}
        assert ticks.closed == 1


# -- how it can end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 3])
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
        for round_ in range(1, 4):
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
        await until(lambda: ticks.running == 1)  # where its time was over before it began, it had nothing to close
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
async def test_what_can_not_be_named_as_data_is_not_found(serving: Serving, method: str) -> None:
    async with serving() as wire:
        for target in ("no/such", "", "services/call", "services/subscribe", "/services/call"):
            reply = await wire.call(method, {"operationId": target, "input": {}})
            assert reply["error"] == {"code": -32601, "message": "Method not found"}, target


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
        assert ticks.produced == 0
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


UNDELIVERED = 32
"""Events that may wait for the reader before the producer waits."""

PIPE_BYTES = 65536
"""What the pair in memory holds for a reader that does not read."""


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("pad", [0, 5000])
async def test_no_more_than_32_events_wait_for_the_reader(serving: Serving, ticks: Ticks, pad: int, wait: bool) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9, "pad": pad, "wait": wait}))
        await settled(wire)
        held = wire.transport.receive_nowait()
        assert ticks.produced - held.count(b"stream/event") <= UNDELIVERED
        assert len(held) == PIPE_BYTES


@pytest.mark.parametrize("pad", [10, 100_000])
async def test_replies_overtake_the_events_of_a_slow_reader(serving: Serving, ticks: Ticks, pad: int) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9, "pad": pad}, id="s"))
        await settled(wire)
        on_the_way = PIPE_BYTES // (pad + 60) + 65536 // (pad + 60) + 2  # the pipe's, and one turn of the streams
        await wire.send(wire.request("ticks/ping", id="p"), wire.request("ticks/later", id="l"))
        await settled(wire)
        events = 0
        answers: list[Any] = []
        while len(answers) < 2:
            message = await wire.receive()
            events += "method" in message
            answers += [message["id"]] if "id" in message else []
        assert sorted(answers) == ["l", "p"]
        assert events <= on_the_way + UNDELIVERED


async def test_a_producer_that_never_waits_starves_nobody(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9}, id="s"))
        for _ in range(20):
            await wire.send(wire.request("ticks/later"))
            with anyio.fail_after(DEADLINE_SECONDS):
                while "method" in (message := await wire.receive()):
                    pass
            assert message["result"] == "later"
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}})
        while "method" in (message := await wire.receive()):
            pass
        assert message["error"] == CANCELLED


async def test_many_streams_and_calls_at_once_each_keep_their_order(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service, max_concurrency=4) as wire:
        streams = {f"s{n}": 20 + 7 * n for n in range(40)}
        calls = [f"c{n}" for n in range(80)]
        requests = [wire.request("ticks/count", {"to": to, "wait": True}, id=name) for name, to in streams.items()]
        requests += [wire.request("ticks/later", id=name) for name in calls]
        seen = dict.fromkeys(streams, 0)
        answers: dict[str, Any] = {}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *requests)
            while len(answers) < len(requests):
                message = await wire.receive()
                if "method" in message:
                    params = message["params"]
                    assert params["id"] not in answers
                    seen[params["id"]] += 1
                    assert params["seq"] == seen[params["id"]]
                else:
                    assert message["id"] not in answers
                    answers[message["id"]] = message["result"]
        assert seen == streams
        assert all(answers[name] == {"completed": True, "events": to} for name, to in streams.items())
        assert all(answers[name] == "later" for name in calls)
        await wire.nothing_more()


async def test_streams_take_no_place_of_the_calls(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service, max_concurrency=1) as wire:
        await wire.send(*(wire.request("ticks/watch") for _ in range(10)))
        await wire.receive_all(20)
        assert (await wire.call("ticks/later"))["result"] == "later"


async def test_an_id_is_taken_until_the_answer_of_its_stream_has_left(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 20, "pad": 20_000}, id="s"))
        await until(lambda: ticks.closed == 1)  # its last events still wait
        await wire.send(wire.request("ticks/ping", id="s"), wire.request("ticks/later", id="s"))
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}})
        messages = await wire.receive_all(23)
        refused = [message["error"]["data"] for message in messages if "error" in message]
        assert refused == [{"reason": "duplicate-id"}] * 2
        assert messages[-1]["result"] == {"completed": True, "events": 20}
        assert (await wire.call("ticks/ping", id="s"))["result"] == "pong"


async def subscribe(wire: Any, window: str, *, to: int = 100, pad: int = 0, call_id: int = 1) -> None:
    params = {"to": to, "pad": pad}
    request = wire.request("ticks/count", params, id=call_id)
    await wire.send({**request, "serviceParams": {"stream-window": window}})


async def taken(wire: Any, params: Any) -> None:
    await wire.send({"jsonrpc": "2.0", "method": "$/streamTaken", "params": params})


async def numbers(wire: Any, count: int) -> list[int]:
    with anyio.fail_after(DEADLINE_SECONDS):
        return [message["params"]["seq"] for message in await wire.receive_all(count)]


async def test_no_more_events_come_than_fit_the_window_until_some_are_taken(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "2")
        assert await numbers(wire, 2) == [1, 2]
        await settled(wire)
        assert ticks.produced <= 3
        await taken(wire, {"id": 1, "seq": 1})
        assert await numbers(wire, 1) == [3]
        await taken(wire, {"id": 1, "seq": 3})
        assert await numbers(wire, 2) == [4, 5]
        await settled(wire)


async def test_few_large_events_fill_it_too(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "1000", pad=WINDOW_BYTES)
        assert await numbers(wire, 1) == [1]
        await settled(wire)
        assert ticks.produced <= 3
        await taken(wire, {"id": 1, "seq": 1})
        assert await numbers(wire, 1) == [2]
        await settled(wire)


async def test_the_others_go_on_meanwhile(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "1")
        assert await numbers(wire, 1) == [1]
        await subscribe(wire, "1", to=1, call_id=2)
        assert (await wire.receive())["params"]["id"] == 2
        await taken(wire, {"id": 2, "seq": 1})
        assert (await wire.receive())["result"] == {"completed": True, "events": 1}
        assert (await wire.call("ticks/ping"))["result"] == "pong"


async def test_what_is_taken_at_once_is_all_that_was_sent(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "2", to=5)
        assert await numbers(wire, 2) == [1, 2]
        await taken(wire, {"id": 1, "seq": 10**6})
        assert await numbers(wire, 2) == [3, 4]
        await taken(wire, {"id": 1, "seq": 4})
        await taken(wire, {"id": 1, "seq": 2})  # known already
        last, end = await wire.receive_all(2)
        assert (last["params"]["seq"], end["result"]) == (5, {"completed": True, "events": 5})


@pytest.mark.parametrize("window", ["", "0", "1.5", "99999", "٣"])
async def test_what_is_no_window_is_none(serving: Serving, ticks: Ticks, window: str) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, window, to=30)
        assert await numbers(wire, 30) == [*range(1, 31)]


async def test_what_names_no_stream_is_ignored(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "1")
        assert await numbers(wire, 1) == [1]
        for params in (
            None,
            [],
            {},
            {"id": 1},
            {"seq": 1},
            {"id": 1, "seq": "1"},
            {"id": 2, "seq": 1},
            {"id": "1", "seq": 1},
        ):
            await taken(wire, params)
        await settled(wire)
        await taken(wire, {"id": 1, "seq": 1})
        assert await numbers(wire, 1) == [2]


async def test_a_subscription_that_waits_for_its_client_can_be_cancelled(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "1")
        assert await numbers(wire, 1) == [1]
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
        (answer,) = await wire.receive_all(1)
        assert answer["error"]["code"] == -32800
        await until(lambda: ticks.closed == 1)
        await wire.nothing_more()


@pytest.mark.parametrize(("window", "pad"), [(1, 0), (16, 0), (1024, 60_000), (4, 400_000)])
async def test_the_client_tells_what_it_has_taken_in_time(ticks: Ticks, window: int, pad: int) -> None:
    async with in_memory(ticks.service) as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "ticks/later")
        seen = [event async for event in peer.subscribe("ticks/count", {"to": 50, "pad": pad}, window=window)]
        assert [int(event.partition(":")[0]) for event in seen] == [*range(50)]
        tasks.cancel_scope.cancel()


async def test_a_slow_consumer_stops_its_producer_while_a_call_is_awaited() -> None:
    service, produced = Service("s"), [0]

    @service.subscription()
    async def flood() -> AsyncIterator[int]:
        while True:
            produced[0] += 1
            yield produced[0]

    @service.mutation(timeout=None)
    async def wait() -> None:
        await anyio.sleep_forever()

    @service.query()
    async def ping() -> int:
        return produced[0]

    async with in_memory(service, timeout=None) as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "s/wait")
        async with peer.subscribe("s/flood", window=8) as events:
            assert await anext(events) == 1
            seen = [await peer.call("s/ping") for _ in range(50)]
            assert seen[-1] <= 1 + 8 + 1
            assert [await anext(events) for _ in range(30)] == [*range(2, 32)]
        tasks.cancel_scope.cancel()
