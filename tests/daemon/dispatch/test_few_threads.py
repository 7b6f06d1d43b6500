"""What happens to requests when the system has no further thread for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import CallFailed, Context, Service
from discreet.errors.failures import Overloaded

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


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


def service(gate: threading.Event) -> Service:
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


def code(reply: dict[str, Any]) -> str:
    found: str = reply["error"]["data"]["code"]
    return found


async def test_without_any_thread_each_request_is_overloaded(serving: Serving) -> None:
    async with serving(service(threading.Event())) as wire:
        system = FewThreads(wire, 0)
        await wire.send(*(wire.request("nest/wait", {"n": n}) for n in range(5)))
        assert [code(reply) for reply in await wire.receive_all(5)] == ["OVERLOADED"] * 5
        system.left = 5
        assert (await wire.call("nest/inner"))["result"] == "inner"


async def test_the_threads_that_there_are_work_off_what_waits(serving: Serving) -> None:
    gate = threading.Event()
    async with serving(service(gate)) as wire:
        FewThreads(wire, 2)
        await wire.send(*(wire.request("nest/wait", {"n": n}) for n in range(9)))
        await wire.nothing_more()
        gate.set()
        assert {reply["result"] for reply in await wire.receive_all(9)} == set(range(9))


async def test_what_only_a_waiting_thread_could_run_is_overloaded(serving: Serving) -> None:
    async with serving(service(threading.Event())) as wire:
        FewThreads(wire, 1)
        assert (await wire.call("nest/outer"))["result"] == Overloaded.__name__
        assert (await wire.call("nest/inner"))["result"] == "inner"
        assert wire.daemon.host.scheduler.counts()["requests"] == 0
