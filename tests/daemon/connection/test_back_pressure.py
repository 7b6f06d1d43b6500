"""Back-pressure: what is not read holds the daemon up and nothing else, is bounded in bytes, and is lost only where nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from discreet.daemon.connection.notices import MAX_UNSENT, MAX_UNSENT_BYTES
from discreet.daemon.operations.request import MAX_BYTES, Backlog, Request
from discreet.daemon.rpc.envelope import decode
from discreet.framing.channel import HIGH_WATER_BYTES
from support.daemon_wire import Serving
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


def large() -> tuple[Service, list[int]]:
    service = Service("large")
    begun: list[int] = []

    @service.query()
    async def reply(size: int, number: int = 0) -> str:
        begun.append(number)
        return "x" * size

    @service.mutation(timeout=None)
    async def wait(number: int) -> None:
        begun.append(number)
        await anyio.sleep_forever()

    return service, begun


@pytest.mark.parametrize("ordered", [False, True])
async def test_large_replies_one_after_the_other_are_all_sent(serving: Serving, ordered: bool) -> None:
    service, _ = large()
    async with serving(service, ordered=ordered, max_concurrency=1) as wire:
        sizes = [2_000_000, *[300_000] * 20]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *(wire.request("large/reply", {"size": size}) for size in sizes))
            with anyio.fail_after(DEADLINE_SECONDS):
                replies = await wire.receive_all(len(sizes))
        assert sorted(len(reply["result"]) for reply in replies) == sorted(sizes)
        await wire.nothing_more()


async def test_nothing_more_is_begun_when_the_reader_has_gone(serving: Serving) -> None:
    service, begun = large()
    async with serving(service, max_concurrency=1, drain_timeout=0.1) as wire:
        await wire.send(*(wire.request("large/wait", {"number": number}) for number in range(50)))
        with anyio.fail_after(DEADLINE_SECONDS):
            while not begun:
                await anyio.lowlevel.checkpoint()
        wire.transport.close()
        with anyio.fail_after(DEADLINE_SECONDS):
            await wire.ended.wait()
    assert begun == [0]


def test_a_waiting_request_counts_all_that_it_keeps_alive() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"large/wait","params":{"number":1},"other":"%b"}' % (b"x" * MAX_BYTES)
    call = decode(body)
    assert isinstance(call, Request)
    backlog = Backlog(Any)
    backlog.add(call)
    assert backlog.full


async def test_a_thread_that_can_not_be_had_is_an_answer_and_not_the_end(serving: Serving) -> None:
    service = Service("thread")

    @service.query()
    def plain() -> str:
        return "done"

    async with serving(service) as wire:
        size = threading.stack_size()
        threading.stack_size(1 << 46)  # more than any address space holds
        try:
            reply = await wire.call("thread/plain")
        finally:
            threading.stack_size(size)
        assert reply["error"]["data"]["code"] == "OVERLOADED"
        assert (await wire.call("thread/plain"))["result"] == "done"


SIZE = 100_000
COUNT = 5 * MAX_UNSENT_BYTES // SIZE


def chatty() -> tuple[Service, list[str]]:
    """A service, and the names of its handlers that have sent everything, or wait for room. The careful ones come last."""
    service = Service("chatty")
    finished: list[str] = []
    ready = anyio.Event()

    @service.query(timeout=None)
    async def careless(ctx: Context, count: int, size: int) -> str:
        for number in range(count):
            ctx.notify("n", [number, "x" * size])
        finished.append("careless")
        ready.set()
        return "done"

    @service.query(timeout=None)
    async def careful(ctx: Context, number: int, size: int) -> str:
        await ready.wait()
        sending = ctx.notify("n", [number, "x" * size])
        finished.append("careful")
        await sending
        return "done"

    @service.query(timeout=None)
    def threaded(ctx: Context, count: int, size: int) -> str:
        for number in range(count):
            ctx.notify("n", [number, "x" * size])
        return "done"

    return service, finished


async def read_until_answer(wire: Any) -> tuple[list[int], Any]:
    numbers = []
    while "method" in (message := await wire.receive()):
        numbers.append(message["params"][0])
    return numbers, message["result"]


async def test_what_is_not_awaited_and_has_no_room_is_dropped_and_logged(serving: Serving, logged: Any) -> None:
    service, finished = chatty()
    async with serving(service) as wire:
        await wire.send(wire.request("chatty/careless", {"count": COUNT, "size": SIZE}))
        await until(lambda: finished)
        assert MAX_UNSENT_BYTES < wire.daemon.host.memory.by_kind()["replies"] < MAX_UNSENT_BYTES + 2 * SIZE
        assert ("notification.dropped", {"method": "n"}) in logged()
        numbers, result = await read_until_answer(wire)
        assert (numbers, result) == (list(range(len(numbers))), "done")
        await wire.nothing_more()
        assert ("notifications.dropped", {"count": COUNT - len(numbers)}) in logged()


async def test_a_client_that_reads_again_gets_what_comes_then(serving: Serving) -> None:
    service, _ = chatty()
    async with serving(service) as wire:
        for _ in range(2):
            await wire.send(wire.request("chatty/careless", {"count": COUNT, "size": SIZE}))
            numbers, _ = await read_until_answer(wire)
            assert len(numbers) >= MAX_UNSENT_BYTES // SIZE


async def test_the_memory_budget_bounds_them_too(serving: Serving) -> None:
    limit = 16 * SIZE
    service, finished = chatty()
    async with serving(service, max_memory=limit) as wire:
        await wire.send(wire.request("chatty/careless", {"count": COUNT, "size": SIZE}))
        await until(lambda: finished)
        assert wire.daemon.host.memory.used < limit + SIZE
        numbers, result = await read_until_answer(wire)
        assert (numbers, result) == (list(range(len(numbers))), "done")


async def test_what_is_awaited_arrives_whatever_the_client_left_unread(serving: Serving, logged: Any) -> None:
    service, finished = chatty()
    async with serving(service) as wire:
        careful = [wire.request("chatty/careful", {"number": -number, "size": SIZE}) for number in range(1, 50)]
        await wire.send(*careful, wire.request("chatty/careless", {"count": COUNT, "size": SIZE}))
        await until(lambda: len(finished) == 50)
        assert wire.daemon.host.memory.by_kind()["replies"] < MAX_UNSENT_BYTES + 2 * SIZE
        messages = await receive_answers(wire, 50)
        numbers = [message["params"][0] for message in messages if "method" in message]
        assert sorted(number for number in numbers if number < 0) == list(range(-49, 0))
        await wire.nothing_more()
        assert ("notifications.dropped", {"count": COUNT + 49 - len(numbers)}) in logged()


async def receive_answers(wire: Any, count: int) -> list[dict[str, Any]]:
    """All messages up to so many answers."""
    messages: list[dict[str, Any]] = []
    while count:
        messages.append(await wire.receive())
        count -= "result" in messages[-1]
    return messages


async def test_threads_wait_for_a_client_that_does_not_read_by_bytes_too(serving: Serving) -> None:
    size = MAX_UNSENT_BYTES // 4
    service, _ = chatty()
    async with serving(service) as wire:
        await wire.send(wire.request("chatty/threaded", {"count": MAX_UNSENT, "size": size}))
        first = await wire.receive()
        assert wire.daemon.host.memory.by_kind()["replies"] < 2 * MAX_UNSENT_BYTES
        numbers, result = await read_until_answer(wire)
        assert ([first["params"][0], *numbers], result) == (list(range(MAX_UNSENT)), "done")


def together(written: list[int]) -> Service:
    """A service whose handler sends everything together, and notes what it has encoded."""
    service = Service("together")

    def params(count: int, size: int) -> Iterator[list[Any]]:
        for number in range(count):
            written.append(number)
            yield [number, "x" * size]

    @service.query(timeout=None)
    async def send(ctx: Context, count: int, size: int) -> str:
        await ctx._request.context_backend.notify_all("n", params(count, size))
        return "done"

    return service


async def test_messages_that_are_there_together_leave_in_one_write_with_the_answer(serving: Serving) -> None:
    async with serving(together([])) as wire:
        before = wire.daemon.connection.pulse
        await wire.send(wire.request("together/send", {"count": 100, "size": 1}))
        assert await read_until_answer(wire) == (list(range(100)), "done")
        assert wire.daemon.connection.pulse == before + 2  # the request came in, and everything went out


async def test_many_messages_together_wait_for_a_client_that_does_not_read_and_none_is_lost(serving: Serving) -> None:
    written: list[int] = []
    async with serving(together(written)) as wire:
        await wire.send(wire.request("together/send", {"count": COUNT, "size": SIZE}))
        await until(lambda: wire.daemon.connection.writer.congested)
        assert len(written) < COUNT
        assert wire.daemon.host.memory.by_kind()["replies"] < HIGH_WATER_BYTES + 2 * SIZE
        assert await read_until_answer(wire) == (list(range(COUNT)), "done")
