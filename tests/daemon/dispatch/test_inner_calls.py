"""Calls from one operation to another: what travels, what does not, and which failures arrive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import CallFailed, Context, Identity, OperationError, Service
from discreet.daemon.operations.access import PARENT, Access, StaticTokens
from discreet.errors.failures import (
    Cancelled,
    DomainFailure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    OperationTypeMismatch,
    Overloaded,
    TimedOut,
)
from support.shop import NAMES, WAYS, Empty, Item, Store, shop
from support.waits import until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

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


def catching(*, blocking: bool) -> Service:
    """A service whose handler says what reached it."""
    service = Service("catch", uses=[f"store/{name}" for name in NAMES])

    @service.query(errors=[Caught], timeout=None)
    async def coroutine(ctx: Context, name: str, params: Any = None) -> Any:
        try:
            return await ctx.call(name, params)
        except Empty as exc:
            raise Caught(what=f"Empty {exc.shelf} {exc.tags}") from exc
        except CallFailed as exc:
            raise Caught(what=repr(exc.failure)) from exc

    @service.query(errors=[Caught], timeout=None)
    def thread(ctx: Context, name: str, params: Any = None) -> Any:
        try:
            return ctx.call_blocking(name, params)
        except Empty as exc:
            raise Caught(what=f"Empty {exc.shelf} {exc.tags}") from exc
        except CallFailed as exc:
            raise Caught(what=repr(exc.failure)) from exc

    return service


@pytest.mark.parametrize("blocking", [False, True])
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
    serving: Serving, blocking: bool, name: str, params: Any, what: str
) -> None:
    method = "catch/thread" if blocking else "catch/coroutine"
    async with serving(Store().service, catching(blocking=blocking)) as wire:
        reply = await wire.call(method, {"name": f"store/{name}", "params": params})
        assert reply["error"]["data"] == {"code": "CAUGHT", "retryable": False, "details": {"what": what}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "params", "error"),
    [
        ("fail", {"how": "declared"}, {**INTERNAL, "data": {"code": "EMPTY"}}),
        ("fail", {"how": "undeclared"}, INTERNAL),
        ("fail", {"how": "other"}, INTERNAL),
        ("fail", {"how": 5}, INTERNAL),
        ("fail", {"secret-key": 5}, INTERNAL),
        ("locked", None, INTERNAL),
        ("watch", None, INTERNAL),
        ("brief", None, INTERNAL),
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
    async with serving(store.service, catching(blocking=False)) as wire:
        await wire.send(wire.request("store/limited", id="first"))
        await until(lambda: store.started == 1)
        reply = await wire.call("catch/coroutine", {"name": "store/limited"})
        assert reply["error"]["data"]["details"] == {"what": repr(Overloaded())}
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "first"}})
        assert (await wire.receive())["error"] == CANCELLED
        await wire.nothing_more()
        await wire.send(wire.request("catch/coroutine", {"name": "store/limited"}))
        await until(lambda: store.started == 2)


def test_failures_of_a_call_are_values() -> None:
    assert CallFailed(Cancelled()).failure == Cancelled()
    assert isinstance(CallFailed(DomainFailure("X", "x")).failure, DomainFailure)
