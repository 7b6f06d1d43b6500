"""What a coroutine may do before it first waits: it runs there without a task of its own where one is idle, which nobody sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from support.daemon_wire import Serving

pytestmark = pytest.mark.anyio

SEEN: ContextVar[str] = ContextVar("seen", default="nothing")
LONG = 60.0


async def at_once() -> str:
    return "done"


async def after_a_turn() -> str:
    await anyio.lowlevel.checkpoint()
    return "done"


async def after_an_event() -> str:
    event = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_set_soon, event)
        await event.wait()
    return "done"


async def _set_soon(event: anyio.Event) -> None:
    await anyio.sleep(0.001)
    event.set()


async def after_a_time_limit() -> str:
    with anyio.move_on_after(0) as scope:
        await anyio.sleep(LONG)
    return "done" if scope.cancelled_caught else "not limited"


async def as_one_task() -> str:
    before = anyio.get_current_task().id
    await anyio.lowlevel.checkpoint()
    return "done" if anyio.get_current_task().id == before else "another task"


async def with_variables_of_its_own() -> str:
    seen = SEEN.get()
    SEEN.set("set")
    await anyio.lowlevel.checkpoint()
    return "done" if (seen, SEEN.get()) == ("nothing", "set") else f"{seen}, {SEEN.get()}"


async def in_a_thread() -> str:
    return await anyio.to_thread.run_sync(lambda: "done")


WAYS: dict[str, Callable[[], Awaitable[str]]] = {
    each.__name__: each
    for each in (
        at_once,
        after_a_turn,
        after_an_event,
        after_a_time_limit,
        as_one_task,
        with_variables_of_its_own,
        in_a_thread,
    )
}


def stepping() -> Service:
    app = Service("app", uses=["app/run"])

    @app.query
    async def run(way: str) -> str:
        return await WAYS[way]()

    @app.query
    async def call(ctx: Context, way: str) -> Any:
        return await ctx.call("app/run", {"way": way})

    @app.query(timeout=0.01)
    async def brief() -> None:
        await anyio.sleep(LONG)

    @app.query
    async def endless() -> None:
        await anyio.sleep_forever()

    @app.query
    async def fail() -> None:
        raise ValueError("failed")

    return app


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["run", "call"])
async def test_it_is_answered_like_any_other(serving: Serving, way: str, method: str) -> None:
    async with serving(stepping()) as wire:
        await wire.call("app/run", {"way": "after_a_turn"})  # a task is idle from now on
        for _ in range(3):
            assert (await wire.call(f"app/{method}", {"way": way}))["result"] == "done"


async def test_many_at_once_do_not_mix(serving: Serving) -> None:
    async with serving(stepping()) as wire:
        await wire.call("app/run", {"way": "after_a_turn"})
        requests = [wire.request("app/run", {"way": way}, id=number) for number, way in enumerate([*WAYS] * 8)]
        await wire.send(*requests)
        answers = [await wire.receive() for _ in requests]
        assert sorted(answer["id"] for answer in answers) == [*range(len(requests))]
        assert {answer.get("result") for answer in answers} == {"done"}


async def test_it_is_ended_where_it_waits(serving: Serving) -> None:
    async with serving(stepping()) as wire:
        await wire.call("app/run", {"way": "after_a_turn"})
        late = await wire.call("app/brief", {})
        assert late["error"]["code"] == -32000, late
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}
        await wire.send(
            wire.request("app/endless", {}, id=7), cancel
        )  # in one read: it has begun, and its task has not gone on
        assert (await wire.receive())["error"]["code"] == -32800
        assert (await wire.call("app/fail", {}))["error"]["code"] == -32603
        assert (await wire.call("app/run", {"way": "as_one_task"}))["result"] == "done"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_time_limits_of_asyncio_reach_it_before_its_task_goes_on(serving: Serving) -> None:
    app = stepping()

    @app.query
    async def limited(seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(LONG)
        except TimeoutError:
            return "late"
        return "in time"

    async with serving(app) as wire:
        await wire.call("app/run", {"way": "after_a_turn"})
        for seconds in (0, -1, 0.001):
            assert (await wire.call("app/limited", {"seconds": seconds}))["result"] == "late"
        assert (await wire.call("app/run", {"way": "after_a_turn"}))["result"] == "done"
