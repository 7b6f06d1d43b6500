"""Back-pressure from inside: nothing stands still after congestion, nothing is begun in vain, nothing is held unseen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Service
from discreet.daemon.operations.request import MAX_BYTES, Backlog, Request
from discreet.daemon.rpc.envelope import decode
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


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
    async with serving(service, max_concurrency=1) as wire:
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


def test_ten_megabytes_of_brackets_are_refused_and_their_id_is_found() -> None:
    nested = b"[" * 5_000_000 + b"]" * 5_000_000
    message = decode(b'{"jsonrpc":"2.0","id":"deep","method":"m","params":%b}' % nested)
    assert getattr(message, "id", None) == b'"deep"'


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
