"""What a client sees of dispatch: which requests are cancelled or past their deadlines, and their one answer."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator

import anyio
import pytest

from discreet import Context, Service, Stopped
from discreet.daemon.operations.request import MAX_REQUESTS
from support.daemon_wire import Serving
from support.gates import Gate
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


async def test_a_running_request_is_cancelled_and_answered_once(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service) as wire:
        await wire.send(wire.request("gate/wait", {"name": "a"}, id="x"))
        await until(lambda: gate.started == ["a"])
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}})
        assert await wire.receive() == {
            "jsonrpc": "2.0", "id": "x", "error": {"code": -32800, "message": "Request cancelled"},
        }  # fmt: skip
        await until(lambda: gate.ended == ["a"])
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}})
        await wire.nothing_more()


async def test_a_request_not_yet_started_is_dropped_when_cancelled(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service, max_concurrency=1) as wire:
        await wire.send(wire.request("gate/wait", {"name": "a"}), wire.request("gate/wait", {"name": "b"}, id="b"))
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "b"}})
        assert (await wire.receive())["error"]["code"] == -32800
        gate.open("a", "b")
        assert (await wire.receive())["result"] == "a"
        await wire.nothing_more()
        assert gate.started == ["a"]


async def test_requests_that_were_cancelled_in_a_queue_do_not_keep_the_daemon_from_reading(serving: Serving) -> None:
    service = Service("slow")

    @service.query(serial=True, timeout=None)
    async def wait() -> None:
        await anyio.sleep_forever()

    async with serving(service) as wire:
        await wire.send(wire.request("slow/wait", id=0))
        for first in (1, MAX_REQUESTS):  # in all twice as many as may wait
            ids = range(first, first + MAX_REQUESTS - 1)
            await wire.send(*(wire.request("slow/wait", id=call_id) for call_id in ids))
            await wire.send(*({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": n}} for n in ids))
            assert [reply["id"] for reply in await wire.receive_all(len(ids))] == [*ids]
        await wire.nothing_more()
        assert wire.daemon.connection.counts()["waiting"] == 0


@pytest.mark.parametrize("mode", ["async", "stream"])
async def test_a_cancel_read_together_with_its_request_keeps_the_handler_from_running(
    serving: Serving, mode: str
) -> None:
    service = Service("never")
    ran: list[str] = []

    async def coroutine() -> None:
        ran.append(mode)
        await anyio.sleep_forever()

    async def stream() -> AsyncIterator[int]:
        ran.append(mode)
        await anyio.sleep_forever()
        yield 1

    if mode == "stream":
        service.subscription(name="it")(stream)
    else:
        service.query(name="it", timeout=None)(coroutine)
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}}
    async with serving(service, max_concurrency=1) as wire:
        await wire.send(wire.request("never/it", id="x"), cancel)
        assert (await wire.receive())["error"]["code"] == -32800
        await wire.nothing_more()
        await until(lambda: wire.daemon.host.idle)
        assert await wire.end() == 0
    assert ran == []


async def test_an_id_spelled_with_escapes_can_be_cancelled_by_its_plain_spelling(serving: Serving, gate: Gate) -> None:
    async with serving(gate.service) as wire:
        await wire.send(b'{"jsonrpc":"2.0","id":"\\u0061","method":"gate/wait","params":{"name":"a"}}')
        await until(lambda: gate.started == ["a"])
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}})
        assert (await wire.receive())["error"]["code"] == -32800


class Threaded:
    """A handler in a worker thread that looks at its context."""

    def __init__(self) -> None:
        self.service = Service("thread")
        self.started = threading.Event()
        self.stopped = threading.Event()

        @self.service.query(timeout=None)
        def wait(ctx: Context) -> bool:
            self.started.set()
            try:
                while not ctx.wait_cancelled(DEADLINE_SECONDS):
                    pass
                ctx.check_cancelled()
            except Stopped:
                self.stopped.set()
                raise
            return False

        @self.service.query(timeout=0.02)
        def late(ctx: Context) -> bool:
            assert ctx.time_left is not None
            self.stopped.set() if ctx.wait_cancelled(DEADLINE_SECONDS) else None
            return ctx.cancelled


async def test_cancellation_reaches_a_worker_thread(serving: Serving) -> None:
    threaded = Threaded()
    async with serving(threaded.service) as wire:
        await wire.send(wire.request("thread/wait", id=1))
        await anyio.to_thread.run_sync(threaded.started.wait, DEADLINE_SECONDS)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
        assert (await wire.receive())["error"]["code"] == -32800
        assert await anyio.to_thread.run_sync(threaded.stopped.wait, DEADLINE_SECONDS)
        await wire.nothing_more()


TIMEOUT = {"code": -32000, "message": "Request timed out", "data": {"code": "TIMEOUT", "retryable": True}}


async def test_a_thread_past_its_deadline_is_answered_for_and_told(serving: Serving) -> None:
    threaded = Threaded()
    async with serving(threaded.service) as wire:
        assert (await wire.call("thread/late"))["error"] == TIMEOUT
        assert await anyio.to_thread.run_sync(threaded.stopped.wait, DEADLINE_SECONDS)


async def test_a_deadline_of_the_setting_holds_where_an_operation_has_none(serving: Serving) -> None:
    service = Service("slow")
    cancelled = anyio.Event()

    @service.query()
    async def forever(ctx: Context) -> None:
        assert ctx.time_left is not None
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    @service.query(timeout=None)
    async def free(ctx: Context) -> float | None:
        return ctx.time_left

    async with serving(service, request_timeout=0.02) as wire:
        assert (await wire.call("slow/forever"))["error"] == TIMEOUT
        with anyio.fail_after(DEADLINE_SECONDS):
            await cancelled.wait()
        assert (await wire.call("slow/free"))["result"] is None
