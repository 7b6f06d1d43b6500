"""Subscriptions: order, ends, and what a slow consumer does to others."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import anyio
import msgspec
import pytest

from discreet.client import (
    ConnectionFailed,
    InternalError,
    InvalidParams,
    InvalidReply,
    OperationTypeMismatch,
    RequestTimeout,
    StreamOverrun,
)
from discreet.client import pending as limits

from .conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio


class Tick(msgspec.Struct):
    at: int


async def test_events_are_decoded_and_in_order_and_the_last_one_ends_the_loop(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            request = await server.read()
            assert request["method"] == "services/subscribe"
            assert request["params"] == {"operationId": "clock/ticks", "input": {"n": 100}}
            for seq in range(1, 101):
                await server.event(request, seq, {"at": seq})
            await server.complete(request, 100)

        tasks.start_soon(serve)
        ticks = [tick async for tick in peer.subscribe("clock/ticks", {"n": 100}, type=Tick)]
    assert ticks == [Tick(at) for at in range(1, 101)]


INTERNAL = {"code": -32603, "message": "Internal error"}
NO_STREAM = {"code": -32600, "message": "Invalid Request", "data": {"reason": "invalid-operation-type"}}
ONE = ("event", 1, {"at": 1})


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([("complete", 0)], None),
        ([ONE, ("complete", 1)], None),
        ([("fail", NO_STREAM)], OperationTypeMismatch),
        ([ONE, ("fail", INTERNAL)], InternalError),
        ([ONE, ONE, ("gone",)], InvalidReply),
        ([ONE, ("event", 3, {"at": 3}), ("gone",)], InvalidReply),
        ([ONE, ("event", 2, {"at": "noon"}), ("gone",)], InvalidReply),
        ([ONE, ("complete", 2)], InvalidReply),
        ([ONE, ("reply", {"completed": False, "events": 1})], InvalidReply),
        ([ONE, ("reply", "done")], InvalidReply),
        ([ONE, ("raw", b"a stray line\n")], InvalidReply),
        ([ONE, ("end",)], ConnectionFailed),
    ],
)
async def test_a_stream_ends_as_its_server_says_behind_its_events(scripted: Any, steps: list[Any], error: Any) -> None:
    events = [Tick(1)] if ONE in steps else []
    async with scripted(*steps) as peer:
        stream = peer.subscribe("s", type=Tick)
        for event in events:
            assert await anext(stream) == event
        with pytest.raises(error or StopAsyncIteration):
            await anext(stream)
        assert [event async for event in stream] == []


@pytest.mark.parametrize("result", [b"7", b"null", b'{"completed":"yes"}'])
async def test_subscribing_to_a_query_that_ran_raises_with_its_result(answering: Answering, result: bytes) -> None:
    async def serve(server: FakeServer) -> None:
        await server.write_body(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % ((await server.read())["id"], result))

    async with answering(serve) as peer:
        with pytest.raises(OperationTypeMismatch) as raised:
            await anext(peer.subscribe("a/call"))
    assert raised.value.result is not None and bytes(raised.value.result) == result


async def test_a_subscription_that_is_called_fails_and_is_cancelled(wired: Any) -> None:
    """Its events would be lost silently."""
    async with wired() as (peer, server):

        async def serve() -> None:
            request = await server.read()
            await server.event(request, 1, "a")
            await server.event(request, 2, "b")
            assert (await server.read())["params"] == {"id": request["id"]}
            await server.fail(request, {"code": -32800, "message": "Request cancelled"})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            with pytest.raises(OperationTypeMismatch):
                await peer.call("m/stream")


async def test_no_event_in_time_is_a_timeout_and_cancels(wired: Any) -> None:
    async with wired() as (peer, server):
        with pytest.raises(RequestTimeout):
            await anext(peer.subscribe("s", timeout=0.01))
        request = await server.read()
        assert (await server.read())["params"] == {"id": request["id"]}


async def test_cancelling_the_consumer_cancels_on_the_server(wired: Any) -> None:
    async with wired() as (peer, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, peer.subscribe("s"))
            request = await server.read()
            tasks.cancel_scope.cancel()
        assert (await server.read())["params"] == {"id": request["id"]}


async def test_leaving_the_block_of_a_stream_cancels_it_on_the_server(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.event(request, 1, "one")
        assert (await server.read())["params"] == {"id": request["id"]}

    async with answering(serve) as peer:
        async with peer.subscribe("s") as stream:
            assert await anext(stream) == "one"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_a_subscription_without_anext_sends_nothing(wired: Any) -> None:
    async with wired() as (peer, server):
        async with peer.subscribe("s"):
            pass
        await peer.subscribe("t").aclose()
        await peer.notify("only")
        assert (await server.read())["method"] == "only"


async def test_an_abandoned_stream_is_cancelled_at_its_next_event(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.event(request, 1, "one")
        call = await server.read()
        await server.event(request, 2, "two")
        assert (await server.read())["params"] == {"id": request["id"]}
        await server.reply(call, "called")

    async with answering(serve) as peer:
        async for event in peer.subscribe("s"):
            assert event == "one"
            break
        gc.collect()
        assert await peer.call("m") == "called"


async def test_two_tasks_cannot_wait_for_one_stream(wired: Any) -> None:
    async with wired() as (peer, _):
        stream = peer.subscribe("s")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, stream)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RuntimeError):
                await anext(stream)
            tasks.cancel_scope.cancel()


async def test_a_slow_consumer_slows_its_producer_and_loses_nothing(answering: Answering) -> None:
    sent = 0

    async def serve(server: FakeServer) -> None:
        nonlocal sent
        request = await server.read()
        while sent < 500:
            await server.event(request, sent + 1, sent + 1)
            sent += 1
        await server.complete(request, sent)

    async with answering(serve, capacity=256) as peer:
        stream = peer.subscribe("s", type=int)
        assert await anext(stream) == 1
        await anyio.wait_all_tasks_blocked()
        assert sent < limits.MAX_BUFFERED_EVENTS + 10
        assert [event async for event in stream] == list(range(2, 501))


async def test_reading_pauses_at_a_full_stream_before_its_waiting_consumer_has_run() -> None:
    """The reader may receive much before the consumer runs."""
    waiting = limits.PendingRequests()
    stream = limits.PendingStream(1, b"")
    waiting.add(stream)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.next)
        await anyio.wait_all_tasks_blocked()
        assert stream.consumer_waits
        for seq in range(1, limits.MAX_BUFFERED_EVENTS + 1):
            assert not waiting.reading_may_pause
            stream.push(seq, msgspec.Raw(b"1"))
        assert waiting.reading_may_pause


async def test_a_call_is_answered_although_a_full_stream_comes_before_its_answer(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        for seq in range(1, 301):
            await server.event(request, seq, seq)
        await server.reply(await server.read(), "answered")
        await server.complete(request, 300)

    async with answering(serve, capacity=256) as peer:
        stream = peer.subscribe("s", type=int)
        assert await anext(stream) == 1
        await anyio.wait_all_tasks_blocked()
        assert await peer.call("m", timeout=None) == "answered"
        assert [event async for event in stream] == list(range(2, 301))


async def test_a_stream_is_not_stuck_behind_another_ones_slow_consumer(wired: Any) -> None:
    async with wired(capacity=256) as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            slow, quick = await server.read(), None
            for seq in range(1, 301):
                await server.event(slow, seq, seq)
            quick = await server.read()
            await server.event(quick, 1, "quick")

        tasks.start_soon(serve)
        slow = peer.subscribe("slow")
        assert await anext(slow) == 1
        await anyio.wait_all_tasks_blocked()
        assert await anext(peer.subscribe("quick")) == "quick"


async def test_a_stream_that_grows_past_its_bound_while_others_wait_ends_with_an_error(answering: Answering) -> None:
    megabyte = "x" * 1024 * 1024

    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.event(request, 1, "first")
        call = await server.read()
        seq = 1
        while seq < 20:
            seq += 1
            await server.event(request, seq, megabyte)
        assert (await server.read())["params"] == {"id": request["id"]}
        await server.reply(call, "answered")

    async with answering(serve) as peer:
        stream = peer.subscribe("s")
        assert await anext(stream) == "first"
        assert await peer.call("m", timeout=None) == "answered"
        held = 0
        with pytest.raises(StreamOverrun):
            async for event in stream:
                assert event == megabyte
                held += 1
        assert 0 < held < 17


async def test_tiny_events_do_not_cost_more_than_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BUFFERED_BYTES", 10_000)
    stream = limits.PendingStream(1, b"")
    pushed = 0
    while not stream.done:
        pushed += 1
        stream.push(pushed, msgspec.Raw(b"1"))
    assert pushed <= 10_000 / limits.EVENT_OVERHEAD + 1


async def test_a_waiting_event_keeps_nothing_else_of_its_message() -> None:
    stream = limits.PendingStream(1, b"")
    tracemalloc.start()
    try:
        for seq in range(1, 101):
            body = msgspec.json.encode({"value": seq, "pad": "x" * 100_000})
            stream.push(seq, msgspec.json.decode(body, type=Padded).value)
        del body
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


class Padded(msgspec.Struct):
    """The part of a message that is kept."""

    value: msgspec.Raw


async def test_an_odd_event_fails_no_call(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.notify("stream/event")
        for params in ({}, [], {"id": "x", "seq": 1, "value": 1}, {"id": 99, "seq": 0.5}, {"seq": 1}, {"id": 1}):
            await server.notify("stream/event", params)
        await server.reply(request, 7)

    async with answering(serve) as peer:
        assert await peer.call("x/read") == 7


async def test_a_malformed_event_fails_the_stream_that_it_names(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.write({"jsonrpc": "2.0", "method": "stream/event", "params": {"id": request["id"], "seq": "1"}})

    async with answering(serve) as peer:
        with pytest.raises(InvalidReply):
            [event async for event in peer.subscribe("s")]


# -- how it is asked for ---------------------------------------------------------------------------------------------


async def test_a_server_without_services_subscribe_gets_the_request_as_it_is(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.fail(await server.read(), {"code": -32601, "message": "Method not found"})
        request = await server.read()
        assert (request["id"], request["method"], request["params"]) == (2, "clock/ticks", [3])
        await server.event(request, 1, {"at": 1})
        await server.complete(request, 1)

    async with answering(serve) as peer:
        assert [tick async for tick in peer.subscribe("clock/ticks", [3], type=Tick)] == [Tick(1)]


@pytest.mark.parametrize(
    ("named", "param"), [("input.n", "n"), ("input.a.b", "a.b"), ("input", "$"), ("operationId", "operationId")]
)
async def test_wrong_params_of_a_subscription_have_their_own_names(
    answering: Answering, named: str, param: str
) -> None:
    async def serve(server: FakeServer) -> None:
        data = {"param": named, "expected": "integer", "received": "string"}
        await server.fail(await server.read(), {"code": -32602, "message": "Invalid params", "data": data})

    async with answering(serve) as peer:
        with pytest.raises(InvalidParams) as wrong:
            await anext(peer.subscribe("clock/ticks", {"n": "x"}))
        assert (wrong.value.failure.param, wrong.value.failure.expected) == (param, "integer")
        assert wrong.value.data["param"] == param
