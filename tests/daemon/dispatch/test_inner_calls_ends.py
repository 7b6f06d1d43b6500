"""Calls from one operation to another: who ends whom, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from discreet.errors.failures import Cancelled
from support.shop import WAYS, Store, shop
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}
TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}


# -- who ends whom -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("child", ["forever", "forever_thread"])
@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_a_caller_cancels_what_it_called(serving: Serving, way: str, child: str) -> None:
    store = Store()
    async with serving(store.service, shop()) as wire:
        await wire.send(wire.request(way, {"name": f"store/{child}"}, id="p"))
        await until(lambda: store.started == 1)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "p"}})
        assert await wire.receive() == {"jsonrpc": "2.0", "id": "p", "error": CANCELLED}
        await until(lambda: store.ended == 1)
        await until(lambda: wire.daemon.host.idle)
        await wire.nothing_more()


@pytest.mark.parametrize("child", ["forever", "forever_thread"])
@pytest.mark.parametrize("way", ["shop/async_brief", "shop/thread_brief"])
async def test_a_deadline_ends_what_was_called_too(serving: Serving, way: str, child: str) -> None:
    store = Store()
    async with serving(store.service, shop()) as wire:
        assert (await wire.call(way, {"name": f"store/{child}"}))["error"] == TIMEOUT
        await until(lambda: wire.daemon.host.idle)
        assert store.ended == store.started  # on a busy machine the deadline may pass before the child starts
        await wire.nothing_more()


@pytest.mark.parametrize("way", WAYS)
async def test_what_may_continue_running_outlives_its_caller(serving: Serving, way: str) -> None:
    store = Store()
    async with serving(store.service, shop(), drain_timeout=0.2) as wire:
        await wire.send(wire.request(way, {"name": "store/forever", "keep": True}, id="p"))
        await until(lambda: store.started == 1)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "p"}})
        assert (await wire.receive())["error"] == CANCELLED
        await until(lambda: wire.daemon.host.scheduler.counts()["requests"] == 1)  # the caller has ended
        await wire.nothing_more()
        assert store.ended == 0
        assert await wire.end() == 0
        assert store.ended == 1


async def test_a_whole_tree_ends_with_its_root(serving: Serving) -> None:
    service = Service("tree", uses=["tree/node"])
    started: list[int] = []
    ended: list[int] = []

    @service.query(timeout=None)
    async def node(ctx: Context, depth: int) -> None:
        started.append(depth)
        try:
            if depth == 0:
                await anyio.sleep_forever()
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(ctx.call, "tree/node", {"depth": depth - 1})
        finally:
            ended.append(depth)

    async with serving(service, max_concurrency=1) as wire:
        await wire.send(wire.request("tree/node", {"depth": 6}, id="root"))
        await until(lambda: len(started) == 127)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "root"}})
        assert (await wire.receive())["error"] == CANCELLED
        await until(lambda: len(ended) == 127)
        await until(lambda: wire.daemon.host.idle)
        await wire.nothing_more()


async def test_a_caller_may_cancel_a_call_and_go_on(serving: Serving) -> None:
    store = Store()
    service = Service("impatient", uses=["store/forever", "store/inline"])

    @service.query()
    async def ask(ctx: Context) -> int:
        with anyio.move_on_after(0.01):
            await ctx.call("store/forever")
        result: int = await ctx.call("store/inline", {"n": 1}, type=int)
        return result

    async with serving(store.service, service) as wire:
        assert (await wire.call("impatient/ask"))["result"] == 2
        await until(lambda: store.ended == 1)


async def test_who_is_ended_late_takes_nobody_along(serving: Serving) -> None:
    """The task that ran a child runs another request by the time the child's parent is cancelled."""
    service = Service("race")
    ended: list[Any] = []
    release = anyio.Event()

    @service.query()
    async def child(ctx: Context) -> None:
        ended.append(ctx._request)

    @service.query(timeout=None)
    async def bystander() -> str:
        ended.append("started")
        await release.wait()
        return "unharmed"

    async with serving(service) as wire:
        assert "result" in await wire.call("race/child")
        await wire.send(wire.request("race/bystander"))
        await until(lambda: len(ended) == 2)
        ended[0].end(Cancelled())
        await wire.nothing_more()
        release.set()
        assert (await wire.receive())["result"] == "unharmed"


# -- slots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("child", ["inline", "thread", "serial", "keyed"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limit", [1, 4, 64])
async def test_callers_that_hold_every_place_still_get_their_calls_answered(
    serving: Serving, way: str, child: str, limit: int
) -> None:
    async with serving(Store().service, shop(), max_concurrency=limit) as wire:
        requests = [wire.request(way, {"name": f"store/{child}", "params": {"n": n % 3}}) for n in range(3 * limit)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *requests)
            replies = await wire.receive_all(len(requests))
        assert sorted(reply["result"] for reply in replies) == sorted(n % 3 + 1 for n in range(3 * limit))
        await wire.nothing_more()


async def test_calls_nest_as_deep_as_they_must_from_threads(serving: Serving) -> None:
    service = Service("deep", uses=["deep/down"])

    @service.query()
    def down(ctx: Context, depth: int) -> int:
        return 0 if depth == 0 else 1 + ctx.call_blocking("deep/down", {"depth": depth - 1}, type=int)

    async with serving(service, max_concurrency=2) as wire:
        await wire.send(*(wire.request("deep/down", {"depth": 10}) for _ in range(6)))
        assert [reply["result"] for reply in await wire.receive_all(6)] == [10] * 6
        assert wire.daemon.host.scheduler.counts()["threads_parked"] == 0


async def test_ordered_requests_may_call_too(serving: Serving) -> None:
    async with serving(Store().service, shop(), ordered=True) as wire:
        await wire.send(*(wire.request("shop/async", {"name": "store/serial", "params": [n]}) for n in range(9)))
        assert [reply["result"] for reply in await wire.receive_all(9)] == list(range(1, 10))


async def test_an_operation_that_waits_for_itself_in_its_own_lane_is_told_at_once(serving: Serving) -> None:
    service = Service("lane", uses=["lane/serial", "lane/middle", "lane/keyed"])

    @service.query(timeout=None, serial=True)
    async def serial(ctx: Context, again: str | None) -> str:
        return "done" if again is None else await ctx.call(again, {"again": None}, type=str)

    @service.query(timeout=None)
    async def middle(ctx: Context, again: str | None) -> str:
        result: str = await ctx.call("lane/serial", {"again": None}, type=str)
        return result

    @service.query(timeout=None, keyed="key")
    async def keyed(ctx: Context, key: int, other: int | None) -> int:
        return key if other is None else await ctx.call("lane/keyed", {"key": other, "other": None}, type=int)

    async with serving(service) as wire:
        for again in ("lane/serial", "lane/middle"):
            assert (await wire.call("lane/serial", {"again": again}))["error"] == INTERNAL
        assert (await wire.call("lane/keyed", {"key": 1, "other": 1}))["error"] == INTERNAL
        assert (await wire.call("lane/keyed", {"key": 1, "other": 2}))["result"] == 2
        assert (await wire.call("lane/serial", {"again": None}))["result"] == "done"


@pytest.mark.parametrize("method", ["wrong/coroutine", "wrong/inline", "wrong/ask"])
async def test_the_blocking_forms_refuse_to_block_the_loop(serving: Serving, method: str) -> None:
    service = Service("wrong", uses=["wrong/nothing"])
    service.query(inline=True, name="nothing")(lambda: None)

    @service.query()
    async def coroutine(ctx: Context) -> None:
        ctx.call_blocking("wrong/nothing")

    @service.query(inline=True)
    def inline(ctx: Context) -> None:
        ctx.call_blocking("wrong/nothing")

    @service.query()
    async def ask(ctx: Context) -> None:
        ctx.request_blocking("ask")

    async with serving(service) as wire:
        assert (await wire.call(method))["error"] == INTERNAL
        await wire.nothing_more()


async def test_threads_of_a_handlers_own_may_call_side_by_side(serving: Serving) -> None:
    service = Service("own", uses=["store/inline", "store/forever"])

    @service.query(timeout=None)
    def many(ctx: Context) -> list[int]:
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda n=n: found.append(ctx.call_blocking("store/inline", {"n": n}, type=int)))
            for n in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_SECONDS)
        return sorted(found)

    async with serving(Store().service, service) as wire:
        assert (await wire.call("own/many"))["result"] == [1, 2, 3, 4, 5]
