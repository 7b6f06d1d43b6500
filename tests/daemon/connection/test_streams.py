"""What a client sees of subscriptions: every event once and in order, then one answer, at the reader's own pace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Context, OperationError, Service
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

UNDELIVERED = 32
"""Events that may wait for the reader before the producer waits."""

PIPE_BYTES = 65536
"""What the pair in memory holds for a reader that does not read."""

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}
TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}
UNAVAILABLE = {"code": -32000, "message": "Shutting down", "data": {"code": "UNAVAILABLE", "retryable": True}}
MISMATCH = {"code": -32600, "message": "Invalid Request", "data": {"reason": "invalid-operation-type"}}


class Gone(OperationError, code="GONE"):
    """What was watched is gone."""

    at: int


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""

    path: str


class Ticks:
    """Producers, and how far each of them ran."""

    def __init__(self) -> None:
        self.produced = 0
        self.running = 0
        self.closed = 0
        self.go = anyio.Event()
        self.service = Service("ticks")
        self.service.subscription()(self.count)
        self.service.subscription(name="brief", timeout=0.05)(self.watch)
        self.service.subscription()(self.watch)
        self.service.subscription()(self.stubborn)
        self.service.subscription(errors=[Gone])(self.fail)
        self.service.query(inline=True)(self.ping)
        self.service.query(name="later")(self.later)

    async def count(self, to: int, pad: int = 0, wait: bool = False) -> AsyncIterator[str]:
        """Events as fast as they are taken; with `wait` it gives up control before each."""
        self.running += 1
        try:
            for number in range(to):
                if wait:
                    await anyio.lowlevel.checkpoint()
                self.produced += 1
                yield f"{number}:{'x' * pad}"
        finally:
            self.running -= 1
            self.closed += 1

    async def watch(self) -> AsyncIterator[int]:
        """Two events, and then none for ever."""
        try:
            yield 1
            yield 2
            await anyio.sleep_forever()
        finally:
            self.closed += 1

    async def stubborn(self) -> AsyncIterator[int]:
        """Goes on sending when it is told to stop."""
        try:
            yield 1
            await anyio.sleep_forever()
        except BaseException:  # noqa: BLE001 - what a handler must not do, and may
            yield 2
            yield 3
        finally:
            self.closed += 1

    async def fail(self, after: int, how: str) -> AsyncIterator[int]:
        for number in range(after):
            yield number
        match how:
            case "declared":
                raise Gone(at=after)
            case "undeclared":
                raise Hidden(path="/home/me/secret.txt")
            case "wrong-event":
                yield "no number"  # type: ignore[misc]
            case "unserialisable":
                yield object()  # type: ignore[misc]
            case "wrong-details":
                raise Gone(at="nowhere")  # type: ignore[arg-type]
            case "exit":
                raise SystemExit(4)
            case _:
                raise ValueError("/home/me/secret.txt")

    def ping(self) -> str:
        return "pong"

    async def later(self) -> str:
        await anyio.lowlevel.checkpoint()
        return "later"


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


async def settled(wire: Any) -> None:
    """Let the daemon run until nothing of it moves any more."""
    for _ in range(50):
        await anyio.wait_all_tasks_blocked()


def event(call_id: Any, seq: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "stream/event", "params": {"id": call_id, "seq": seq, "value": value}}


async def stream(wire: Any, call_id: Any) -> tuple[list[Any], dict[str, Any]]:
    """Read one stream to its answer, with nothing else on the wire: the values, and the answer."""
    values: list[Any] = []
    while "method" in (message := await wire.receive()):
        assert message == event(call_id, len(values) + 1, message["params"]["value"])
        values.append(message["params"]["value"])
    assert message["id"] == call_id
    return values, message


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
        messages = await wire.receive_all(5)
        assert messages[-1] == {"jsonrpc": "2.0", "id": "brief", "error": TIMEOUT}
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


# -- the reader's pace ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("pad", [0, 500, 5000])
async def test_no_more_than_32_events_wait_for_the_reader(serving: Serving, ticks: Ticks, pad: int, wait: bool) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9, "pad": pad, "wait": wait}))
        await settled(wire)
        held = wire.transport.receive_nowait()
        assert ticks.produced - held.count(b"stream/event") <= UNDELIVERED
        assert len(held) == PIPE_BYTES


async def test_a_waiting_producer_goes_on_as_the_reader_reads(serving: Serving, ticks: Ticks) -> None:
    async with serving(ticks.service) as wire:
        await wire.send(wire.request("ticks/count", {"to": 10**9, "pad": 1000}))
        await settled(wire)
        before = ticks.produced
        await wire.receive_all(UNDELIVERED)
        await settled(wire)
        assert before < ticks.produced <= before + 2 * UNDELIVERED + PIPE_BYTES // 1000


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
        streams = {f"s{n}": 20 + 7 * n for n in range(100)}
        calls = [f"c{n}" for n in range(200)]
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
