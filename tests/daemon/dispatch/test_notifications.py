"""Notifications of one client are handled in the order of arrival, and requests see what those before them did."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


def _note(n: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "text/change", "params": {"n": n}}


async def test_notifications_to_threads_do_not_overtake_each_other(serving: Any) -> None:
    seen: list[int] = []
    running: list[int] = []
    most: list[int] = []
    service = Service("text")

    @service.notification
    def change(n: int) -> None:
        running.append(n)
        most.append(len(running))
        seen.append(n)
        running.remove(n)

    @service.query
    async def read() -> list[int]:
        return seen

    async with serving(service) as wire:
        await wire.send(*(_note(n) for n in range(200)), wire.request("text/read"))
        assert (await wire.receive())["result"] == list(range(200))
    assert max(most) == 1


@pytest.mark.parametrize("mode", ["thread", "inline"])
async def test_a_request_waits_for_the_plain_notifications_before_it(serving: Any, mode: str) -> None:
    text = [0]
    gate = threading.Event()
    service = Service("text")

    @service.notification
    def first() -> None:
        assert gate.wait(DEADLINE_SECONDS)

    @service.notification("text/change", inline=mode == "inline")
    def change(n: int) -> None:
        text[0] = n

    @service.query(inline=True)
    def inline() -> int:
        return text[0]

    @service.query
    async def coroutine() -> int:
        return text[0]

    @service.query(serial=True)
    def thread() -> int:
        return text[0]

    async with serving(service) as wire:
        names = ["text/inline", "text/coroutine", "text/thread"]
        before, after = [wire.request(name) for name in names], [wire.request(name) for name in names]
        await wire.send(*before)
        assert [answer["result"] for answer in await wire.receive_all(3)] == [0, 0, 0]
        await wire.send({"jsonrpc": "2.0", "method": "text/first"}, _note(7), *after)
        await until(lambda: wire.daemon.host.scheduler.counts()["requests"] == 5)
        gate.set()
        answers = await wire.receive_all(3)
        assert {answer["id"]: answer["result"] for answer in answers} == {request["id"]: 7 for request in after}
    assert not any(wire.daemon.host.scheduler.counts().values())


async def test_a_coroutine_for_notifications_keeps_no_request_waiting(serving: Any) -> None:
    go = anyio.Event()
    service = Service("text")

    @service.notification
    async def change(n: int) -> None:
        await go.wait()

    @service.query
    async def read() -> str:
        return "read"

    async with serving(service) as wire:
        await wire.send(_note(1))
        assert (await wire.call("text/read"))["result"] == "read"
        go.set()


async def test_a_request_that_waits_for_a_notification_can_be_cancelled(serving: Any) -> None:
    gate = threading.Event()
    service = Service("text")

    @service.notification
    def change(n: int) -> None:
        assert gate.wait(DEADLINE_SECONDS)

    @service.query
    async def read() -> str:
        return "read"

    async with serving(service) as wire:
        request = wire.request("text/read")
        await wire.send(_note(1), request)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        gate.set()
        assert (await wire.call("text/read"))["result"] == "read"
    assert not any(wire.daemon.host.scheduler.counts().values())


async def test_a_failing_notification_lets_the_next_one_run(serving: Any) -> None:
    seen: list[int] = []
    service = Service("text")

    @service.notification
    def change(n: int) -> None:
        if n == 1:
            raise RuntimeError
        seen.append(n)

    @service.query
    def read() -> list[int]:
        return seen

    async with serving(service) as wire:
        await wire.send(_note(1), _note(2))
        assert (await wire.call("text/read"))["result"] == [2]


async def test_sent_as_a_request_it_is_answered_with_null(serving: Any) -> None:
    service = Service("text")

    @service.notification
    async def change(ctx: Context) -> None: ...

    async with serving(service) as wire:
        answer = await wire.call("text/change")  # sent as a request, which is answered
        assert answer["result"] is None
