"""Calls from one operation to another, and from the daemon to its client: what travels, what does not, and who ends whom."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import msgspec
import pytest

from discreet import CallFailed, ClientRefused, Context, Identity, OperationError, Service, Stopped
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
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}
TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}


class Empty(OperationError, code="EMPTY", retryable=True):
    """Nothing is there."""

    shelf: int
    tags: tuple[str, ...] = ()


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""

    path: str


class Item(msgspec.Struct):
    name: str
    count: int


class Store:
    """The service that is called, and what it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.started = 0
        self.ended = 0
        self.service = service = Service("store")

        @service.query()
        async def item(ctx: Context, name: str) -> Item:
            self._see(ctx)
            return Item(name, 3)

        @service.query(inline=True)
        def inline(ctx: Context, n: int) -> int:
            self._see(ctx)
            return n + 1

        @service.query()
        def thread(ctx: Context, n: int) -> int:
            self._see(ctx)
            return n + 1

        @service.query(serial=True)
        async def serial(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n + 1

        @service.query(keyed="n")
        async def keyed(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n + 1

        @service.query(visibility="internal")
        async def internal() -> str:
            return "internal"

        @service.query(scopes=["vault"])
        async def locked() -> str:
            return "unlocked"

        @service.subscription()
        async def watch() -> AsyncIterator[int]:
            yield 1

        @service.query(errors=[Empty])
        async def fail(how: str) -> int:
            match how:
                case "declared":
                    raise Empty(shelf=4, tags=("a",))
                case "undeclared":
                    raise Hidden(path="/home/me/secret.txt")
                case _:
                    raise ValueError("/home/me/secret.txt")

        @service.query(timeout=None)
        async def forever() -> None:
            self.started += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.ended += 1

        @service.query(timeout=None)
        def forever_thread(ctx: Context) -> None:
            self.started += 1
            try:
                while True:
                    ctx.wait_cancelled(DEADLINE_SECONDS)
                    ctx.check_cancelled()
            except Stopped:
                self.ended += 1
                raise

        @service.query(timeout=0.02)
        async def brief() -> None:
            await anyio.sleep_forever()

        @service.query(limit=1, timeout=None)
        async def limited() -> None:
            self.started += 1
            await anyio.sleep_forever()

    def _see(self, ctx: Context) -> None:
        self.seen.append(
            {
                "identity": ctx.identity,
                "metadata": dict(ctx.metadata),
                "id": ctx.request_id,
                "capabilities": dict(ctx.capabilities),
            }
        )


NAMES = ["item", "inline", "thread", "serial", "keyed", "internal", "locked", "watch", "fail", "forever"]
NAMES += ["forever_thread", "brief", "limited"]


def failure_in_words(exc: CallFailed) -> str:
    return type(exc.failure).__name__


def shop(**options: Any) -> Service:
    """A service that may call all of the store, in each of the ways to do so."""
    service = Service("shop", uses=[f"store/{name}" for name in NAMES], **options)

    @service.query(timeout=None, name="async")
    async def call(ctx: Context, name: str, params: Any = None, keep: bool = False) -> Any:
        return await ctx.call(name, params, continue_running=keep)

    @service.query(timeout=None)
    def thread(ctx: Context, name: str, params: Any = None, keep: bool = False) -> Any:
        return ctx.call_blocking(name, params, continue_running=keep)

    @service.query(timeout=0.05)
    async def async_brief(ctx: Context, name: str) -> Any:
        return await ctx.call(name)

    @service.query(timeout=0.05)
    def thread_brief(ctx: Context, name: str) -> Any:
        return ctx.call_blocking(name)

    @service.subscription(name="stream")
    async def stream(ctx: Context, name: str, params: Any = None) -> AsyncIterator[Any]:
        yield await ctx.call(name, params)

    return service


WAYS = ["shop/async", "shop/thread"]


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
    async with serving(store.service, shop(capabilities=["key"]), access=access, capabilities={"key": "value"}) as wire:
        for name, params in (("item", {"name": "x"}), ("inline", [1]), ("thread", [1])):
            assert "result" in await wire.call(way, {"name": f"store/{name}", "params": params}, **members)
    service = Identity("shop", frozenset())
    assert store.seen == [{"identity": service, "metadata": {}, "id": None, "capabilities": {}}] * 3


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
        await until(lambda: store.ended == 1)
        await until(lambda: wire.daemon.host.idle)
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


# -- places --------------------------------------------------------------------------------------------------------


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


# -- asking the client ---------------------------------------------------------------------------------------------


def asking() -> Service:
    service = Service("ask")

    class Refused(OperationError, code="REFUSED"):
        """The client said no."""

        number: int
        text: str

    @service.query(errors=[Refused], timeout=None)
    async def coroutine(ctx: Context, timeout: float = DEADLINE_SECONDS) -> Any:
        try:
            return await ctx.request("client/name", {"of": "you"}, timeout=timeout)
        except ClientRefused as exc:
            raise Refused(number=exc.code, text=exc.message) from exc
        except TimeoutError:
            return "late"

    @service.query(errors=[Refused], timeout=None)
    def thread(ctx: Context, timeout: float = DEADLINE_SECONDS) -> Any:
        try:
            return ctx.request_blocking("client/name", {"of": "you"}, timeout=timeout)
        except ClientRefused as exc:
            raise Refused(number=exc.code, text=exc.message) from exc
        except TimeoutError:
            return "late"

    @service.query()
    async def typed(ctx: Context) -> Item:
        result: Item = await ctx.request("item", type=Item)
        return result

    return service


ASKING = ["ask/coroutine", "ask/thread"]


async def question(wire: Any) -> Any:
    """The daemon's next question; its id."""
    message = await wire.receive()
    assert message == {
        "jsonrpc": "2.0", "id": message["id"], "method": "client/name", "params": {"of": "you"},
    }  # fmt: skip
    return message["id"]


@pytest.mark.parametrize("method", ASKING)
async def test_the_client_is_asked_and_its_answer_arrives(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        for answer in ("Ada", None, {"first": "Ada"}):
            await wire.send(wire.request(method))
            asked = await question(wire)
            await wire.send({"jsonrpc": "2.0", "id": asked, "result": answer})
            assert (await wire.receive())["result"] == answer
        await wire.nothing_more()


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize(
    ("error", "details"),
    [
        ({"code": -32601, "message": "What?"}, {"number": -32601, "text": "What?"}),
        ({"code": 7, "message": "No", "data": [1]}, {"number": 7, "text": "No"}),
        ("no error object", {"number": 0, "text": "no error object"}),
    ],
)
async def test_the_clients_error_arrives_as_client_refused(
    serving: Serving, method: str, error: Any, details: dict[str, Any]
) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method))
        await wire.send({"jsonrpc": "2.0", "id": await question(wire), "error": error})
        assert (await wire.receive())["error"]["data"]["details"] == details


@pytest.mark.parametrize("method", ASKING)
async def test_a_client_that_does_not_answer_in_time_is_told_to_forget_it(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method, {"timeout": 0.01}))
        asked = await question(wire)
        forget, reply = await wire.receive_all(2)
        assert forget == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}}
        assert reply["result"] == "late"
        await wire.send({"jsonrpc": "2.0", "id": asked, "result": "too late"})
        await wire.nothing_more()
        assert wire.daemon.connection.counts()["client_requests"] == 0


@pytest.mark.parametrize("method", ASKING)
async def test_a_cancelled_request_takes_its_question_back(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method, id="r"))
        asked = await question(wire)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "r"}})
        messages = await wire.receive_all(2)
        assert {"jsonrpc": "2.0", "id": "r", "error": CANCELLED} in messages
        assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}} in messages
        await until(lambda: wire.daemon.host.idle)
        await wire.nothing_more()


async def test_answers_are_matched_by_id_in_any_order_and_a_second_one_is_dropped(serving: Serving) -> None:
    async with serving(asking()) as wire:
        await wire.send(*(wire.request("ask/coroutine", id=f"r{n}") for n in range(5)))
        asked = [await question(wire) for _ in range(5)]
        assert len(set(asked)) == 5
        for number in reversed(asked):
            await wire.send(*[{"jsonrpc": "2.0", "id": number, "result": number}] * 2)
        replies = await wire.receive_all(5)
        assert {reply["id"]: reply["result"] for reply in replies} == {
            f"r{n}": number for n, number in enumerate(asked)
        }
        await wire.send({"jsonrpc": "2.0", "id": 99, "result": 1}, {"jsonrpc": "2.0", "id": "1", "result": 1})
        await wire.nothing_more()


async def test_an_answer_of_another_type_is_an_internal_error(serving: Serving) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request("ask/typed"))
        asked = (await wire.receive())["id"]
        await wire.send({"jsonrpc": "2.0", "id": asked, "result": {"name": "x", "count": "many"}})
        assert (await wire.receive())["error"] == INTERNAL


@pytest.mark.parametrize("method", ASKING)
async def test_a_question_that_is_open_at_the_end_holds_nothing_up(serving: Serving, method: str) -> None:
    async with serving(asking(), drain_timeout=0.2) as wire:
        await wire.send(wire.request(method))
        await question(wire)
        assert await wire.end() == 0


async def test_answers_are_read_while_the_backlog_is_full(serving: Serving) -> None:
    async with serving(asking(), max_concurrency=1) as wire:
        requests = [wire.request("ask/coroutine", {"timeout": 0.5}) for _ in range(1100)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *requests)
            asked = await question(wire)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(wire.send, {"jsonrpc": "2.0", "id": asked, "result": "in time"})
            reply = await wire.receive()
            tasks.cancel_scope.cancel()
        assert reply["result"] == "in time"


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


def test_failures_of_a_call_are_values() -> None:
    assert CallFailed(Cancelled()).failure == Cancelled()
    assert isinstance(CallFailed(DomainFailure("X", "x")).failure, DomainFailure)
