"""A window for one stream: no more is sent than the client has asked for, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Service
from discreet.daemon.connection.writer import WINDOW_BYTES
from discreet.testing import in_memory
from support.ticks import Ticks, settled
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


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


@pytest.mark.parametrize("window", ["", "0", "-1", "1.5", "x", "99999", "٣"])
async def test_what_is_no_window_is_none(serving: Serving, ticks: Ticks, window: str) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, window, to=30)
        assert await numbers(wire, 30) == [*range(1, 31)]


@pytest.mark.parametrize(
    "params",
    [None, [], {}, {"id": 1}, {"seq": 1}, {"id": 1, "seq": "1"}, {"id": 2, "seq": 1}, {"id": "1", "seq": 1}, [1]],
)
async def test_what_names_no_stream_is_ignored(serving: Serving, ticks: Ticks, params: Any) -> None:
    async with serving(ticks.service) as wire:
        await subscribe(wire, "1")
        assert await numbers(wire, 1) == [1]
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


@pytest.mark.parametrize(
    ("window", "pad"), [(1, 0), (2, 0), (16, 0), (1024, 0), (16, 60_000), (1024, 60_000), (4, 400_000)]
)
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
