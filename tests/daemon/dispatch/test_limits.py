"""What bounds the requests that run: places on the loop, worker threads, those that the system gives, and how deep calls are nested."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from discreet import CallFailed, Context, Service
from discreet.errors.failures import Internal, Overloaded
from support.daemon_wire import Serving
from support.logged_events import LoggedEvents
from support.waits import until

pytestmark = pytest.mark.anyio

DEPTH = 1000


def waiting_room() -> tuple[Service, threading.Event, anyio.Event]:
    service = Service("wait")
    threads, tasks = threading.Event(), anyio.Event()

    @service.query(timeout=None)
    async def task() -> str:
        await tasks.wait()
        return "task"

    @service.query(timeout=None)
    def thread() -> str:
        threads.wait(10)
        return "thread"

    @service.query()
    async def echo(value: int) -> int:
        return value

    @service.query(inline=True)
    def inline(value: int) -> int:
        return value

    return service, threads, tasks


@pytest.mark.parametrize("large", [{"id": "i" * 1_000_000}, {"serviceParams": {"key": "k" * 1_000_000}}])
async def test_what_a_running_request_keeps_of_its_envelope_counts(serving: Serving, large: dict[str, Any]) -> None:
    service, _, tasks = waiting_room()
    async with serving(service) as wire:
        budget = wire.daemon.host.memory
        await wire.send(wire.request("wait/task", **large))
        await until(lambda: tasks.statistics().tasks_waiting)
        assert 1_000_000 < budget.by_kind()["requests"] < 1_100_000
        tasks.set()
        await wire.receive()
        assert budget.by_kind()["requests"] == 0


async def test_busy_threads_hold_up_nothing_that_runs_on_the_loop(serving: Serving) -> None:
    service, threads, _ = waiting_room()
    async with serving(service, max_threads=2) as wire:
        await wire.send(*(wire.request("wait/thread") for _ in range(5)))
        try:
            assert (await wire.call("wait/echo", {"value": 1}))["result"] == 1
            assert (await wire.call("wait/inline", {"value": 2}))["result"] == 2
            assert wire.daemon.host.scheduler.counts()["threads_busy"] == 2
        finally:
            threads.set()
        assert [reply["result"] for reply in await wire.receive_all(5)] == ["thread"] * 5


async def test_a_full_loop_holds_up_no_thread(serving: Serving) -> None:
    service, threads, tasks = waiting_room()
    threads.set()
    async with serving(service, max_concurrency=2) as wire:
        await wire.send(*(wire.request("wait/task") for _ in range(3)))
        assert (await wire.call("wait/thread"))["result"] == "thread"
        tasks.set()
        await wire.receive_all(3)


async def test_ordered_runs_one_at_a_time_whatever_it_runs_on(serving: Serving) -> None:
    service, threads, tasks = waiting_room()
    threads.set()
    async with serving(service, ordered=True) as wire:
        await wire.send(wire.request("wait/task", id=1), wire.request("wait/thread", id=2))
        await wire.send(wire.request("wait/inline", {"value": 3}, id=3))
        await anyio.wait_all_tasks_blocked()
        assert wire.daemon.host.scheduler.counts()["running"] == 1
        tasks.set()
        assert [reply["id"] for reply in await wire.receive_all(3)] == [1, 2, 3]


def pit(caught: list[BaseException]) -> Service:
    service = Service("pit", uses=["pit/fall", "pit/fall_in_threads", "pit/ping", "pit/pong", "pit/careful"])

    @service.query(timeout=None)
    async def fall(ctx: Context, n: int) -> int:
        return 0 if n == 0 else 1 + await ctx.call("pit/fall", {"n": n - 1}, type=int)

    @service.query(timeout=None)
    def fall_in_threads(ctx: Context, n: int) -> int:
        return 0 if n == 0 else 1 + ctx.call_blocking("pit/fall_in_threads", {"n": n - 1}, type=int)

    @service.query(timeout=None)
    async def ping(ctx: Context) -> None:
        await ctx.call("pit/pong")

    @service.query(timeout=None)
    def pong(ctx: Context) -> None:
        ctx.call_blocking("pit/ping")

    @service.query(timeout=None)
    async def careful(ctx: Context, n: int) -> int:
        try:
            return 1 + await ctx.call("pit/careful", {"n": n - 1}, type=int)
        except CallFailed as exc:
            caught.append(exc)
            return 0

    return service


@pytest.mark.parametrize(
    ("method", "params"), [("pit/fall", {"n": DEPTH}), ("pit/fall_in_threads", {"n": DEPTH}), ("pit/ping", None)]
)
async def test_calls_that_are_nested_too_deep_fail_and_are_logged_once(
    serving: Serving, method: str, params: Any, logged: LoggedEvents
) -> None:
    before = threading.active_count()
    async with serving(pit([]), max_call_depth=40) as wire:
        reply = await wire.call(method, params)
        assert reply["error"] == {"code": -32603, "message": "Internal error"}
        assert (await wire.call("pit/fall", {"n": 40}))["result"] == 40
        assert threading.active_count() - before <= 64 + 40
    [(event, fields)] = [each for each in logged() if each[0].startswith(("call.", "handler."))]
    assert (event, fields["depth"]) == ("call.too_deep", 40)
    assert fields["chain"].startswith(f"{method} → ")


async def test_a_handler_may_catch_that_calls_are_nested_too_deep(serving: Serving) -> None:
    caught: list[BaseException] = []
    async with serving(pit(caught), max_call_depth=20) as wire:
        assert (await wire.call("pit/careful", {"n": 5}))["result"] == 20
    assert len(caught) == 1
    assert isinstance(caught[0], CallFailed)
    assert isinstance(caught[0].failure, Internal)


async def test_a_deep_tree_of_calls_is_cancelled_without_recursion(serving: Serving) -> None:
    service = Service("deep", uses=["deep/down"])
    reached = anyio.Event()

    @service.query(timeout=None)
    async def down(ctx: Context, n: int) -> None:
        if n == 0:
            reached.set()
            await anyio.sleep_forever()
        await ctx.call("deep/down", {"n": n - 1})

    async with serving(service, max_call_depth=5000) as wire:
        await wire.send(wire.request("deep/down", {"n": 2000}, id="d"))
        with anyio.fail_after(30):
            await reached.wait()
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "d"}})
        assert (await wire.receive())["error"]["code"] == -32800
        await wire.nothing_more()
        with anyio.fail_after(30):
            while not wire.daemon.host.idle:
                await anyio.lowlevel.checkpoint()


class FewThreads:
    """A system that gives the handlers of a daemon so many threads more."""

    def __init__(self, wire: Any, left: int) -> None:
        self.left = left
        wire.daemon.host.scheduler.threads.start_thread = self._start

    def _start(self, thread: threading.Thread) -> None:
        if not self.left:
            raise RuntimeError("can't start new thread")
        self.left -= 1
        thread.start()


def nesting(gate: threading.Event) -> Service:
    nest = Service("nest", uses=["nest/inner"])

    @nest.query(timeout=None)
    def wait(n: int) -> int:
        gate.wait(10)
        return n

    @nest.query(timeout=None)
    def inner() -> str:
        return "inner"

    @nest.query(timeout=None)
    def outer(ctx: Context) -> str:
        try:
            return ctx.call_blocking("nest/inner", type=str)
        except CallFailed as exc:
            return type(exc.failure).__name__

    return nest


async def test_the_threads_that_there_are_work_off_what_waits(serving: Serving) -> None:
    gate = threading.Event()
    async with serving(nesting(gate)) as wire:
        FewThreads(wire, 2)
        await wire.send(*(wire.request("nest/wait", {"n": n}) for n in range(9)))
        await wire.nothing_more()
        gate.set()
        assert {reply["result"] for reply in await wire.receive_all(9)} == set(range(9))


async def test_what_only_a_waiting_thread_could_run_is_overloaded(serving: Serving) -> None:
    async with serving(nesting(threading.Event())) as wire:
        FewThreads(wire, 1)
        assert (await wire.call("nest/outer"))["result"] == Overloaded.__name__
        assert (await wire.call("nest/inner"))["result"] == "inner"
        assert wire.daemon.host.scheduler.counts()["requests"] == 0


# -- limits --------------------------------------------------------------------------------------------------------


class Busy:
    """Operations with limits, which wait until they are let go."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.started = 0
        self.service = service = Service("busy")

        @service.query(limit=2, timeout=None)
        async def two() -> str:
            self.started += 1
            await self.go.wait()
            return "done"

        @service.query(limit=1, serial=True, timeout=None)
        async def one() -> str:
            self.started += 1
            await self.go.wait()
            return "done"

        @service.subscription(limit=1)
        async def watch() -> AsyncIterator[int]:
            self.started += 1
            await self.go.wait()
            yield 1

        @service.query(limit=1)
        async def fail() -> None:
            raise ValueError

        @service.query(limit=1)
        async def wrong(n: int) -> None:
            """Never runs in these tests."""


OVERLOADED = {"code": -32000, "message": "Server overloaded", "data": {"code": "OVERLOADED", "retryable": True}}


@pytest.mark.parametrize(("method", "limit"), [("busy/two", 2), ("busy/one", 1), ("busy/watch", 1)])
async def test_one_more_than_the_limit_is_refused_and_the_others_stand(
    serving: Serving, method: str, limit: int
) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        await wire.send(*(wire.request(method) for _ in range(limit + 2)))
        refused = await wire.receive_all(2)
        assert [reply["error"] for reply in refused] == [OVERLOADED] * 2
        assert [reply["id"] for reply in refused] == [limit + 1, limit + 2]
        busy.go.set()
        answers = [message for message in await wire.receive_all(limit + (method == "busy/watch")) if "id" in message]
        assert all("result" in answer for answer in answers)
        reply = await wire.call(method)
        assert "error" not in reply


@pytest.mark.parametrize("method", ["busy/two", "busy/watch"])
async def test_cancelled_calls_give_their_place_back(serving: Serving, method: str) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        for round_ in range(5):
            await wire.send(wire.request(method, id="x"))
            await until(lambda round_=round_: busy.started == round_ + 1)  # type: ignore[misc]
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}})
            assert (await wire.receive())["error"]["code"] == -32800
            await until(lambda: wire.daemon.host.idle)


async def test_failures_of_every_kind_give_their_place_back(serving: Serving) -> None:
    async with serving(Busy().service) as wire:
        for _ in range(3):
            assert (await wire.call("busy/fail"))["error"]["code"] == -32603
            assert (await wire.call("busy/wrong", {"n": "x"}))["error"]["code"] == -32602
        await wire.send(*[{"jsonrpc": "2.0", "method": "busy/fail"}] * 3)
        await wire.nothing_more()
        assert (await wire.call("busy/fail"))["error"]["code"] == -32603


async def test_a_duplicate_id_takes_no_place(serving: Serving) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        await wire.send(wire.request("busy/two", id="x"), wire.request("busy/two", id="x"))
        assert (await wire.receive())["error"]["data"] == {"reason": "duplicate-id"}
        await wire.send(wire.request("busy/two", id="y"))
        busy.go.set()
        assert {reply["id"] for reply in await wire.receive_all(2)} == {"x", "y"}
