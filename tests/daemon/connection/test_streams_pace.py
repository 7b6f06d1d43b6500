"""What a client sees of subscriptions when it reads slowly: events wait for it, and hold nothing else up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from support.ticks import Ticks, settled
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

UNDELIVERED = 32
"""Events that may wait for the reader before the producer waits."""

PIPE_BYTES = 65536
"""What the pair in memory holds for a reader that does not read."""
CANCELLED = {"code": -32800, "message": "Request cancelled"}


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
