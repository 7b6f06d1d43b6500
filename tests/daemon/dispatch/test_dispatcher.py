"""What a client sees of dispatch: one answer per request, order, limits, lanes, failures and progress; and which check comes first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from discreet import Context, Identity, OperationError, Service
from discreet.daemon.operations.access import Access
from support.daemon_wire import Serving
from support.gates import Gate, modes
from support.waits import until

pytestmark = pytest.mark.anyio


MODES = ["echo/inline", "echo/coroutine", "echo/thread"]


@pytest.mark.parametrize("method", MODES)
async def test_a_thousand_pipelined_requests_get_a_thousand_answers(serving: Serving, method: str) -> None:
    async with serving(modes()) as wire:
        requests = [wire.request(method, {"n": n}) for n in range(1000)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *requests)
            replies = await wire.receive_all(1000)
        assert sorted(reply["id"] for reply in replies) == [request["id"] for request in requests]
        assert all(reply["result"]["n"] == reply["id"] - 1 for reply in replies)
        await wire.nothing_more()


@pytest.mark.parametrize("method", MODES)
async def test_a_notification_runs_and_is_never_answered(serving: Serving, method: str) -> None:
    ran: list[dict[str, Any]] = []
    async with serving(modes(ran.append)) as wire:
        await wire.send({"jsonrpc": "2.0", "method": method, "params": {"n": 1}})
        await wire.send({"jsonrpc": "2.0", "method": "no/such"})
        await wire.send({"jsonrpc": "2.0", "method": "gate/note", "params": {"wrong": 1}})
        await wire.nothing_more()
        assert await wire.end() == 0  # it has run by then
    assert ran == [{"n": 1}]


async def test_requests_start_in_the_order_read_whatever_their_mode(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service) as wire:
        await wire.send(
            wire.request("gate/wait", {"name": "a"}),
            wire.request("gate/note", {"name": "b"}),
            wire.request("gate/wait", {"name": "c"}),
            wire.request("gate/note", {"name": "d"}),
        )
        await until(lambda: len(gate.started) == 4)
        assert gate.started[0] == "a"
        gate.open("c", "a")
        assert {reply["result"] for reply in await wire.receive_all(4)} == {"a", "b", "c", "d"}


async def test_replies_go_out_as_requests_finish(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service) as wire:
        await wire.send(wire.request("gate/wait", {"name": "slow"}), wire.request("gate/wait", {"name": "fast"}))
        gate.open("fast")
        assert (await wire.receive())["result"] == "fast"
        gate.open("slow")
        assert (await wire.receive())["result"] == "slow"


async def test_no_more_than_the_limit_run_at_once_and_none_is_lost(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service, max_concurrency=3) as wire:
        names = [f"n{n}" for n in range(10)]
        await wire.send(*(wire.request("gate/wait", {"name": name}) for name in names))
        await until(lambda: len(gate.started) == 3)
        assert gate.started == names[:3]
        gate.open(*names)
        assert {reply["result"] for reply in await wire.receive_all(10)} == set(names)
        assert gate.started == names


async def test_serial_operations_run_one_at_a_time_and_hold_nothing_else_up(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service, max_concurrency=2) as wire:
        await wire.send(*(wire.request("gate/serial", {"name": name}) for name in "abc"))
        await until(lambda: gate.started == ["a"])
        assert (await wire.call("gate/note", {"name": "free"}))["result"] == "free"
        gate.open("b", "c", "a")
        assert [reply["result"] for reply in await wire.receive_all(3)] == ["a", "b", "c"]


async def test_keyed_operations_wait_for_the_same_key_only(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service) as wire:
        for name, key in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            await wire.send(wire.request("gate/keyed", {"name": name, "key": key}))
        await until(lambda: len(gate.started) == 2)
        assert gate.started == ["a1", "b1"]
        gate.open("a1", "a2")
        assert [reply["result"] for reply in await wire.receive_all(2)] == ["a1", "a2"]
        gate.open("b1")
        assert (await wire.receive())["result"] == "b1"


class NoRoom(OperationError, code="NO_ROOM", http_status=507, retryable=True):
    """There is no room."""

    free: int


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""

    path: str


def failing(mode: str) -> Service:
    service = Service("fail")
    secret = "/home/me/secret.txt"

    def raised(how: str) -> None:
        match how:
            case "declared":
                raise NoRoom(free=0)
            case "undeclared":
                raise Hidden(path=secret)
            case "group":
                raise ExceptionGroup("one", [NoRoom(free=1)])
            case "two":
                raise ExceptionGroup("two", [NoRoom(free=1), NoRoom(free=2)])
            case "bad-details":
                raise NoRoom(free="many")  # type: ignore[arg-type]
            case _:
                raise ValueError(secret)

    def plain(how: str) -> None:
        raised(how)

    async def coroutine(how: str) -> None:
        await anyio.lowlevel.checkpoint()
        raised(how)

    if mode == "async":
        service.query(errors=[NoRoom], name="it")(coroutine)
    else:
        service.query(errors=[NoRoom], name="it", inline=mode == "inline")(plain)
    return service


INTERNAL = {"code": -32603, "message": "Internal error"}
ROOM = {"code": -32000, "message": "There is no room"}


@pytest.mark.parametrize("mode", ["inline", "async", "thread"])
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("declared", {**ROOM, "data": {"code": "NO_ROOM", "retryable": True, "details": {"free": 0}}}),
        ("group", {**ROOM, "data": {"code": "NO_ROOM", "retryable": True, "details": {"free": 1}}}),
        ("undeclared", {**INTERNAL, "data": {"code": "HIDDEN"}}),
        ("two", INTERNAL),
        ("bad-details", INTERNAL),
        ("other", INTERNAL),
    ],
)
async def test_whatever_a_handler_does_is_answered_and_the_daemon_lives_on(
    serving: Serving, mode: str, how: str, error: dict[str, Any]
) -> None:
    async with serving(failing(mode)) as wire:
        assert (await wire.call("fail/it", {"how": how}))["error"] == error
        await wire.nothing_more()


async def test_a_cancelled_error_of_the_handlers_own_making_is_an_internal_error(serving: Serving) -> None:
    service = Service("odd")

    @service.query()
    async def strange() -> None:
        raise (
            anyio.get_cancelled_exc_class() if anyio.get_cancelled_exc_class().__name__ == "CancelledError" else OSError
        )

    async with serving(service) as wire:
        assert (await wire.call("odd/strange"))["error"] == INTERNAL
        assert (await wire.call("odd/strange"))["error"] == INTERNAL


async def test_context_variables_do_not_pass_from_one_request_to_the_next(serving: Serving) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    service = Service("vars")

    def swap(value: str) -> str:
        before = variable.get()
        variable.set(value)
        return before

    async def coroutine(value: str) -> str:
        before = swap(value)
        await anyio.lowlevel.checkpoint()
        assert variable.get() == value
        return before

    service.query(name="inline", inline=True)(swap)
    service.query(name="thread")(swap)
    service.query(name="coroutine")(coroutine)
    async with serving(service) as wire:
        for method in ("vars/inline", "vars/thread", "vars/coroutine") * 2:
            assert (await wire.call(method, {"value": method}))["result"] == "unset"


async def test_unknown_methods_are_not_found_and_a_leading_slash_is_dropped(serving: Serving) -> None:
    service = Service("deep")
    service.query(name="hidden", inline=True, visibility="internal")(lambda: None)
    async with serving(service, modes()) as wire:
        for method in ("echo/none", "", "/", "deep/hidden", "//echo/inline"):
            assert (await wire.call(method, {}))["error"] == {"code": -32601, "message": "Method not found"}
        assert (await wire.call("/echo/inline", {}))["result"] == {}


async def test_progress_is_sent_where_a_token_came_and_before_the_result(serving: Serving) -> None:
    service = Service("work")

    @service.query()
    async def coroutine(ctx: Context) -> str:
        for step in range(3):
            await ctx.progress({"step": step})
        return "done"

    @service.query()
    def thread(ctx: Context) -> str:
        for step in range(3):
            ctx.progress({"step": step})
        return "done"

    async with serving(service) as wire:
        for method in ("work/coroutine", "work/thread"):
            assert (await wire.call(method))["result"] == "done"
            for params in ({"_meta": {"progressToken": "t"}}, {"workDoneToken": "t"}):
                await wire.send(wire.request(method, params))
                messages = await wire.receive_all(4)
                assert [m["params"] for m in messages[:3]] == [{"token": "t", "value": {"step": n}} for n in range(3)]
                assert messages[3]["result"] == "done"


async def test_a_thread_that_notifies_waits_for_a_client_that_does_not_read(serving: Serving) -> None:
    service = Service("flood")
    sent: list[int] = []

    @service.query()
    def flood(ctx: Context) -> int:
        for number in range(2000):
            ctx.notify("n", {"number": number, "pad": "x" * 1000})
            sent.append(number)
        return len(sent)

    async with serving(service) as wire:
        await wire.send(wire.request("flood/flood"))
        first = await wire.receive()
        assert len(sent) < 2000
        messages = [first, *await wire.receive_all(2000)]
        assert [m["params"]["number"] for m in messages[:2000]] == list(range(2000))
        assert messages[2000]["result"] == 2000


async def test_services_announce_what_clients_of_lsp_must_hear_from_initialize(serving: Serving) -> None:
    async with serving(Service("textDocument", capabilities={"hoverProvider": True})) as wire:
        capabilities = (await wire.call("initialize", {"processId": None}))["result"]["capabilities"]
        assert capabilities["hoverProvider"] is True
        assert capabilities["cancelRequest"] is True


@pytest.mark.parametrize("method", ["version", "initialize"])
async def test_what_the_daemon_says_of_itself_waits_for_no_place(serving: Serving, gate: Gate, method: str) -> None:
    async with serving(gate.service, max_concurrency=1) as wire:
        await wire.send(*(wire.request("gate/wait", {"name": name}) for name in ("first", "second")))
        await until(lambda: gate.started == ["first"])
        assert "result" in await wire.call(method)
        gate.open("first", "second")
        assert [reply["result"] for reply in await wire.receive_all(2)] == ["first", "second"]


@pytest.mark.parametrize("method", ["version", "initialize"])
async def test_with_ordered_it_waits_for_its_turn(serving: Serving, gate: Gate, method: str) -> None:
    async with serving(gate.service, ordered=True) as wire:
        await wire.send(wire.request("gate/wait", {"name": "first"}), wire.request(method))
        await until(lambda: gate.started == ["first"])
        gate.open("first")
        first, second = await wire.receive_all(2)
        assert first["result"] == "first"
        assert "result" in second


@pytest.mark.parametrize("method", ["version", "initialize"])
async def test_while_the_daemon_shuts_down_it_is_unavailable(serving: Serving, gate: Gate, method: str) -> None:
    async with serving(gate.service) as wire:
        await wire.send(wire.request("gate/wait", {"name": "first"}))
        await until(lambda: gate.started == ["first"])
        await wire.call("shutdown")
        assert (await wire.call(method))["error"]["data"]["code"] == "UNAVAILABLE"
        gate.open("first")
        assert (await wire.receive())["result"] == "first"


DUPLICATE = {"code": -32600, "message": "Invalid Request", "data": {"reason": "duplicate-id"}}
NOBODY = Access(Identity("parent", frozenset()))


def guarded() -> tuple[Service, anyio.Event]:
    service, hold = Service("app"), anyio.Event()

    @service.query(timeout=None)
    async def wait() -> None:
        await hold.wait()

    @service.query(limit=1)
    async def one() -> None: ...

    @service.query(scopes=["secret"])
    async def secret() -> None: ...

    @service.subscription(scopes=["secret"])
    async def ticks() -> AsyncIterator[int]:
        yield 1

    return service, hold


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("app/wait", None),
        ("app/secret", None),
        ("no/such", None),
        ("app/one", {"surplus": 1}),
        ("version", None),
        ("shutdown", None),
        ("$/cancelRequest", {"id": 7}),
        ("services/call", {"operationId": "no/such"}),
    ],
)
async def test_duplicate_id_is_refused_whatever_else_is_wrong_and_first_answer_stands(
    serving: Serving, method: str, params: Any
) -> None:
    service, hold = guarded()
    async with serving(service, access=NOBODY) as wire:
        await wire.send(wire.request("app/wait", id=7))
        assert await wire.call(method, params, id=7) == {"jsonrpc": "2.0", "id": 7, "error": DUPLICATE}
        hold.set()
        assert (await wire.receive()) == {"jsonrpc": "2.0", "id": 7, "result": None}
        assert "result" in await wire.call("app/one", id=7)


async def test_who_may_not_call_an_operation_does_not_learn_its_kind(serving: Serving) -> None:
    service, _ = guarded()
    async with serving(service, access=NOBODY) as wire:
        for name in ("app/ticks", "app/secret"):
            assert (await wire.call(name))["error"]["data"]["code"] == "FORBIDDEN"
            for method in ("services/call", "services/subscribe"):
                reply = await wire.call(method, {"operationId": name})
                assert reply["error"]["data"]["code"] == "FORBIDDEN", (method, name)
        reply = await wire.call("services/subscribe", {"operationId": "app/one"})
        assert reply["error"]["data"] == {"reason": "invalid-operation-type"}
