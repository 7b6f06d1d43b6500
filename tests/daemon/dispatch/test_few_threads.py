"""What happens to requests when the system has no further thread for them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import CallFailed, Context, Service
from discreet.daemon.dispatch.thread_pool import ThreadPool
from discreet.errors.failures import Overloaded

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`only(n)`: from now on the system gives the handlers of this test's daemon `n` threads."""
    start = threading.Thread.start
    left = 0
    earlier = {id(found) for found in gc.get_objects() if type(found) is ThreadPool}  # they may still start some

    def start_if_any(thread: threading.Thread) -> None:
        nonlocal left
        pool = getattr(getattr(thread, "_target", None), "__self__", None)
        if isinstance(pool, ThreadPool) and id(pool) not in earlier:
            if not left:
                raise RuntimeError("can't start new thread")
            left -= 1
        start(thread)

    def allow(count: int) -> None:
        nonlocal left
        left = count
        monkeypatch.setattr(threading.Thread, "start", start_if_any)

    return allow


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


async def test_without_any_thread_each_request_is_overloaded(serving: Serving, only: Callable[[int], None]) -> None:
    only(0)
    async with serving(service(threading.Event())) as wire:
        await wire.send(*(wire.request("nest/wait", {"n": n}) for n in range(5)))
        assert [code(reply) for reply in await wire.receive_all(5)] == ["OVERLOADED"] * 5
        only(5)
        assert (await wire.call("nest/inner"))["result"] == "inner"


async def test_the_threads_that_there_are_work_off_what_waits(serving: Serving, only: Callable[[int], None]) -> None:
    gate = threading.Event()
    only(2)
    async with serving(service(gate)) as wire:
        await wire.send(*(wire.request("nest/wait", {"n": n}) for n in range(9)))
        await wire.nothing_more()
        gate.set()
        assert {reply["result"] for reply in await wire.receive_all(9)} == set(range(9))


async def test_what_only_a_waiting_thread_could_run_is_overloaded(
    serving: Serving, only: Callable[[int], None]
) -> None:
    only(1)
    async with serving(service(threading.Event())) as wire:
        assert (await wire.call("nest/outer"))["result"] == Overloaded.__name__
        assert (await wire.call("nest/inner"))["result"] == "inner"
        assert wire.daemon.host.scheduler.counts()["requests"] == 0
