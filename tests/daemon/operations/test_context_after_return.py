"""What a context does once its handler has returned: what belongs to the request is over, what belongs to the client goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from typing import Any

import anyio
import pytest
from anyio import to_thread

from discreet import Context, Service
from support.daemon_wire import Serving

pytestmark = pytest.mark.anyio
Ability = Callable[[Context], Any]

OVER: dict[str, Ability] = {
    "progress": lambda ctx: ctx.progress(1),
    "progress_token": lambda ctx: ctx.progress_token,
    "log": lambda ctx: ctx.log("info", "late"),
    "time_left": lambda ctx: ctx.time_left,
    "cancelled": lambda ctx: ctx.cancelled,
    "ended_by": lambda ctx: ctx.ended_by,
    "check_cancelled": lambda ctx: ctx.check_cancelled(),
    "wait_cancelled": lambda ctx: ctx.wait_cancelled(0),
    "call": lambda ctx: ctx.call("kept/other"),
    "call_blocking": lambda ctx: to_thread.run_sync(lambda: ctx.call_blocking("kept/other")),
}
"""What is for the time of the request."""

NOTIFIED = {"jsonrpc": "2.0", "method": "late", "params": {}}

GOES_ON: dict[str, tuple[Ability, Any]] = {
    "operation": (lambda ctx: ctx.operation.partition("/")[0], "kept"),
    "request_id": (lambda ctx: ctx.request_id, "1"),
    "identity": (lambda ctx: ctx.identity is None, False),
    "service_params": (lambda ctx: dict(ctx.service_params), {}),
    "last_event_id": (lambda ctx: ctx.last_event_id, None),
    "client": (lambda ctx: ctx.client.name, ""),
    "documents": (lambda ctx: dict(ctx.documents), {}),
    "state": (lambda ctx: ctx.state, None),
    "url": (lambda ctx: ctx.url, ""),
    "credentials": (lambda ctx: dict(ctx.credentials), {}),
    "notify": (lambda ctx: ctx.notify("late"), NOTIFIED),
    "resource_updated": (lambda ctx: ctx.resource_updated("file:///a"), None),
    "hold_memory": (lambda ctx: (ctx.hold_memory(1), ctx.hold_memory(-1))[0], None),
    "request": (lambda ctx: ctx.request("ask"), "answered"),
    "request_blocking": (lambda ctx: to_thread.run_sync(lambda: ctx.request_blocking("ask")), "answered"),
}
"""What is the client's, and facts; with what it gives, or has the client get."""


def keeping(kept: list[Context]) -> Service:
    service = Service("kept", uses=["kept/other"])

    @service.query
    async def waits(ctx: Context) -> None:
        kept.append(ctx)

    @service.query
    def thread(ctx: Context) -> None:
        kept.append(ctx)

    @service.query(inline=True)
    def inline(ctx: Context) -> None:
        kept.append(ctx)

    @service.query
    def fails(ctx: Context) -> None:
        kept.append(ctx)
        raise ValueError

    @service.subscription
    async def stream(ctx: Context) -> AsyncIterator[int]:
        kept.append(ctx)
        return
        yield 1

    @service.query
    def other() -> int:
        return 1

    return service


async def test_a_coroutine_must_not_block_the_loop_until_it_is_cancelled(serving: Serving) -> None:
    service, said = Service("kept"), []

    @service.query
    async def waits(ctx: Context) -> None:
        with pytest.raises(RuntimeError) as refused:
            ctx.wait_cancelled(0)
        said.append(str(refused.value))

    async with serving(service) as wire:
        await wire.call("kept/waits")
    assert "await anyio.sleep" in said[0]


MODES = ("waits", "thread", "inline", "fails", "stream")


def test_the_tables_have_every_ability_of_a_context() -> None:
    assert {*OVER, *GOES_ON} == {name for name in vars(Context) if not name.startswith("_")}


async def result_of(value: Any) -> Any:
    return await value if isawaitable(value) else value


@pytest.mark.parametrize("mode", MODES)
async def test_what_belongs_to_the_request_is_refused_afterwards(serving: Serving, mode: str) -> None:
    kept: list[Context] = []
    async with serving(keeping(kept)) as wire:
        await wire.call(f"kept/{mode}", {"_meta": {"progressToken": 1}})
        said = {}
        for name, ability in OVER.items():
            with pytest.raises(RuntimeError) as refused:
                await result_of(ability(kept[0]))
            said[name] = str(refused.value)
        await wire.nothing_more()
    if mode == "inline":
        assert "inline" in said.pop("wait_cancelled")
    assert all(f"kept/{mode}" in text and "lifespan" in text for text in said.values()), said


@pytest.mark.parametrize("mode", MODES)
async def test_what_belongs_to_the_client_goes_on(serving: Serving, mode: str) -> None:
    kept: list[Context] = []
    async with serving(keeping(kept)) as wire, anyio.create_task_group() as tasks:
        await wire.call(f"kept/{mode}")
        for ability, expected in GOES_ON.values():
            if expected == "answered":
                tasks.start_soon(answer, wire)
            got = await result_of(ability(kept[0]))
            assert (await wire.receive() if expected is NOTIFIED else got) == expected
        await wire.nothing_more()


async def answer(wire: Any) -> None:
    asked = await wire.receive()
    await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": "answered"})


async def test_a_request_that_was_cancelled_stays_so(serving: Serving) -> None:
    service, kept = Service("kept"), []

    @service.query
    async def sleep(ctx: Context) -> None:
        kept.append(ctx)
        await anyio.sleep_forever()

    async with serving(service) as wire:
        request = wire.request("kept/sleep")
        await wire.send(request, {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        await wire.nothing_more()
        assert all(ctx.cancelled for ctx in kept)


async def test_a_task_of_a_lifespan_notifies_the_client_of_a_request_that_is_over(serving: Serving) -> None:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def background() -> AsyncIterator[anyio.abc.TaskGroup]:
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()

    service = Service("kept", lifespan=background)
    answered = anyio.Event()

    @service.query
    async def check(ctx: Context) -> str:
        async def work() -> None:
            await answered.wait()
            await ctx.notify("late")

        ctx.state.start_soon(work)
        return "checking"

    async with serving(service) as wire:
        assert (await wire.call("kept/check"))["result"] == "checking"
        answered.set()
        assert await wire.receive() == NOTIFIED
