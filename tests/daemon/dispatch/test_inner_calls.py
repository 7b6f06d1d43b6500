"""Calls from one operation to another: what travels, which failures arrive, who ends whom, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from discreet import CallFailed, Context, Identity, OperationError, Service
from discreet.daemon.operations.access import PARENT, Access, StaticTokens
from discreet.errors.failures import (
    Cancelled,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    OperationTypeMismatch,
    Overloaded,
    TimedOut,
)
from support.daemon_wire import Serving
from support.shop import NAMES, WAYS, Empty, Item, Store, shop
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}


# -- what arrives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_reaches_each_kind_of_handler(serving: Serving, way: str) -> None:
    async with serving(Store().service, shop()) as wire:
        for name in ("inline", "thread", "serial", "keyed"):
            assert (await wire.call(way, {"name": f"store/{name}", "params": {"n": 1}}))["result"] == 2
            assert (await wire.call(way, {"name": f"/store/{name}", "params": [1]}))["result"] == 2
        reply = await wire.call(way, {"name": "store/item", "params": {"name": "bolt"}})
        assert reply["result"] == {"name": "bolt", "count": 3}
        await wire.nothing_more()


async def test_results_come_as_the_type_that_was_asked_for(serving: Serving) -> None:
    service = Service("typed", uses=["store/item"])
    found: list[object] = []

    @service.query()
    async def good(ctx: Context) -> None:
        found.append(await ctx.call("store/item", {"name": "bolt"}, type=Item))

    @service.query()
    async def bad(ctx: Context) -> None:
        await ctx.call("store/item", {"name": "bolt"}, type=int)

    @service.query()
    async def unserialisable(ctx: Context) -> None:
        await ctx.call("store/item", {"name": object()})

    async with serving(Store().service, service) as wire:
        assert "result" in await wire.call("typed/good")
        assert found == [Item("bolt", 3)]
        assert (await wire.call("typed/bad"))["error"] == INTERNAL
        assert (await wire.call("typed/unserialisable"))["error"] == INTERNAL


async def test_a_subscription_may_call_between_its_events(serving: Serving) -> None:
    async with serving(Store().service, shop()) as wire:
        await wire.send(wire.request("shop/stream", {"name": "store/inline", "params": [4]}))
        event, answer = await wire.receive_all(2)
        assert (event["params"]["value"], answer["result"]["events"]) == (5, 1)


@pytest.mark.parametrize("way", WAYS)
async def test_internal_operations_are_reached_by_composition_only(serving: Serving, way: str) -> None:
    async with serving(Store().service, shop()) as wire:
        assert (await wire.call("store/internal"))["error"]["code"] == -32601
        assert (await wire.call(way, {"name": "store/internal"}))["result"] == "internal"


# -- what does not travel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_only_declared_uses_are_reached(serving: Serving, way: str) -> None:
    service = Service("other")
    service.query(inline=True, name="free")(lambda: None)
    async with serving(Store().service, shop(), service) as wire:
        for name in ("other/free", "version", "shop/async", "store/none", ""):
            assert (await wire.call(way, {"name": name}))["error"] == INTERNAL


@pytest.mark.parametrize("way", WAYS)
async def test_the_services_own_authority_counts_and_not_the_callers(serving: Serving, way: str) -> None:
    everything = Access(Identity("parent", frozenset({"vault"})))
    nothing = Access(Identity("parent", frozenset()))
    locked = {"name": "store/locked"}
    for access in (None, everything, nothing):
        async with serving(Store().service, shop(), access=access) as wire:
            assert (await wire.call(way, locked))["error"] == INTERNAL
        async with serving(Store().service, shop(authority=["vault"]), access=access) as wire:
            assert (await wire.call(way, locked))["result"] == "unlocked"


async def test_authority_of_one_service_is_no_authority_of_what_it_calls(serving: Serving) -> None:
    middle = Service("middle", uses=["store/locked"])

    @middle.query()
    async def forward(ctx: Context) -> str:
        result: str = await ctx.call("store/locked", type=str)
        return result

    outer = Service("outer", uses=["middle/forward"], authority=["vault"])

    @outer.query()
    async def start(ctx: Context) -> str:
        result: str = await ctx.call("middle/forward", type=str)
        return result

    async with serving(Store().service, middle, outer) as wire:
        assert (await wire.call("outer/start"))["error"] == INTERNAL


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("provider", [None, StaticTokens([])])
async def test_neither_metadata_nor_identity_nor_id_travel(serving: Serving, way: str, provider: Any) -> None:
    store = Store()
    members = {"serviceParams": {"authorization": "Bearer secret", "traceparent": "00-1-2-3"}}
    access = Access(PARENT, provider)
    async with serving(store.service, shop(credentials=["key"]), access=access, credentials={"key": "value"}) as wire:
        for name, params in (("item", {"name": "x"}), ("inline", [1]), ("thread", [1])):
            assert "result" in await wire.call(way, {"name": f"store/{name}", "params": params}, **members)
    service = Identity("shop", frozenset())
    assert store.seen == [{"identity": service, "service_params": {}, "id": None, "credentials": {}}] * 3


# -- failures ------------------------------------------------------------------------------------------------------


class Caught(OperationError, code="CAUGHT"):
    """The calling handler saw this."""

    what: str


def catching() -> Service:
    """A service whose handlers say what reached them."""
    service = Service("catch", uses=[f"store/{name}" for name in NAMES])

    @contextmanager
    def caught() -> Iterator[None]:
        try:
            yield
        except Empty as exc:
            raise Caught(what=f"Empty {exc.shelf} {exc.tags}") from exc
        except CallFailed as exc:
            raise Caught(what=repr(exc.failure)) from exc

    @service.query(errors=[Caught], timeout=None)
    async def coroutine(ctx: Context, name: str, params: Any = None) -> Any:
        with caught():
            return await ctx.call(name, params)

    @service.query(errors=[Caught], timeout=None)
    def thread(ctx: Context, name: str, params: Any = None) -> Any:
        with caught():
            return ctx.call_blocking(name, params)

    return service


@pytest.mark.parametrize("way", ["catch/coroutine", "catch/thread"])
@pytest.mark.parametrize(
    ("name", "params", "what"),
    [
        ("fail", {"how": "declared"}, "Empty 4 ('a',)"),
        ("fail", {"how": "undeclared"}, repr(Internal("HIDDEN"))),
        ("fail", {"how": "other"}, repr(Internal())),
        ("fail", {"how": 5}, repr(InvalidParams("how", "string", "number"))),
        ("locked", None, repr(InsufficientPermissions())),
        ("watch", None, repr(OperationTypeMismatch())),
        ("brief", None, repr(TimedOut())),
    ],
)
async def test_the_caller_catches_the_declared_error_or_call_failed(
    serving: Serving, way: str, name: str, params: Any, what: str
) -> None:
    async with serving(Store().service, catching()) as wire:
        reply = await wire.call(way, {"name": f"store/{name}", "params": params})
        assert reply["error"]["data"] == {"code": "CAUGHT", "retryable": False, "details": {"what": what}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "params", "error"),
    [
        ("fail", {"how": "declared"}, {**INTERNAL, "data": {"code": "EMPTY"}}),
        ("fail", {"how": "other"}, INTERNAL),
        ("fail", {"secret-key": 5}, INTERNAL),
        ("locked", None, INTERNAL),
    ],
)
async def test_what_the_caller_lets_through_is_its_own_internal_error(
    serving: Serving, way: str, name: str, params: Any, error: dict[str, Any]
) -> None:
    async with serving(Store().service, shop()) as wire:
        assert (await wire.call(way, {"name": f"store/{name}", "params": params}))["error"] == error


async def test_a_declared_error_that_the_caller_declares_too_goes_through_whole(serving: Serving) -> None:
    service = Service("same", uses=["store/fail"])

    @service.query(errors=[Empty])
    async def fail(ctx: Context) -> None:
        await ctx.call("store/fail", {"how": "declared"})

    async with serving(Store().service, service) as wire:
        assert (await wire.call("same/fail"))["error"] == {
            "code": -32000,
            "message": "Nothing is there",
            "data": {"code": "EMPTY", "retryable": True, "details": {"shelf": 4, "tags": ["a"]}},
        }


async def test_a_limit_holds_for_composed_calls_too(serving: Serving) -> None:
    store = Store()
    async with serving(store.service, catching()) as wire:
        await wire.send(wire.request("store/limited", id="first"))
        await until(lambda: store.started == 1)
        reply = await wire.call("catch/coroutine", {"name": "store/limited"})
        assert reply["error"]["data"]["details"] == {"what": repr(Overloaded())}
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "first"}})
        assert (await wire.receive())["error"] == CANCELLED
        await wire.nothing_more()
        await wire.send(wire.request("catch/coroutine", {"name": "store/limited"}))
        await until(lambda: store.started == 2)


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


@pytest.mark.parametrize("child", ["thread", "serial", "keyed"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limit", [1, 4])
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


WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def test_a_task_that_a_handlers_call_has_started_takes_nothing_of_it_to_other_requests(serving: Any) -> None:
    app = Service("app", uses=["app/tell"])

    @app.query
    async def tell() -> str:
        await anyio.lowlevel.checkpoint()  # so that others need tasks of their own
        return WHO.get()

    @app.query
    async def ask(ctx: Context) -> list[str]:
        WHO.set("a caller")
        return [await ctx.call("app/tell"), WHO.get()]

    async with serving(app) as wire:
        assert (await wire.call("app/ask"))["result"] == ["nobody", "a caller"]
        await wire.send(*(wire.request("app/tell") for _ in range(5)))
        assert [reply["result"] for reply in await wire.receive_all(5)] == ["nobody"] * 5
