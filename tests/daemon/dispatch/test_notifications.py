"""Notifications of one client are handled in the order of arrival, and requests see what those before them did."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from discreet import Service
from support.daemon_wire import Serving
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

READERS = ["text/inline", "text/coroutine", "text/thread"]


class Text:
    """Notifications of each mode that change a text, and requests of each mode that read it."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.running = self.most = 0
        self.gate, self.go = threading.Event(), anyio.Event()
        self.service = service = Service("text")

        @service.notification
        def hold() -> None:
            assert self.gate.wait(DEADLINE_SECONDS)

        @service.notification("text/changed_in_thread")
        @service.notification("text/changed_inline", inline=True)
        def change(n: int) -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            self.running -= 1
            if n < 0:
                raise RuntimeError
            self.seen.append(n)

        @service.notification
        async def changed_later() -> None:
            await self.go.wait()

        @service.query(inline=True)
        def inline() -> list[int]:
            return self.seen

        @service.query
        async def coroutine() -> list[int]:
            return self.seen

        @service.query(serial=True)
        def thread() -> list[int]:
            return self.seen


@pytest.fixture
def text() -> Text:
    return Text()


def note(method: str, *params: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"text/{method}", "params": params}


async def test_notifications_to_threads_do_not_overtake_each_other(serving: Serving, text: Text) -> None:
    async with serving(text.service) as wire:
        await wire.send(*(note("changed_in_thread", n) for n in range(200)), wire.request("text/coroutine"))
        assert (await wire.receive())["result"] == list(range(200))
    assert text.most == 1


@pytest.mark.parametrize("mode", ["in_thread", "inline"])
async def test_a_request_waits_for_the_plain_notifications_before_it(serving: Serving, text: Text, mode: str) -> None:
    async with serving(text.service) as wire:
        await wire.send(*map(wire.request, READERS))
        assert [answer["result"] for answer in await wire.receive_all(3)] == [[], [], []]
        after = [wire.request(name) for name in READERS]
        await wire.send(note("hold"), note(f"changed_{mode}", 7), *after)
        await until(lambda: wire.daemon.host.scheduler.counts()["requests"] == 5)
        text.gate.set()
        answers = await wire.receive_all(3)
        assert {answer["id"]: answer["result"] for answer in answers} == {request["id"]: [7] for request in after}
    assert not any(wire.daemon.host.scheduler.counts().values())


async def test_a_coroutine_for_notifications_keeps_no_request_waiting(serving: Serving, text: Text) -> None:
    async with serving(text.service) as wire:
        await wire.send(note("changed_later"))
        assert (await wire.call("text/coroutine"))["result"] == []
        text.go.set()


async def test_a_request_that_waits_for_a_notification_can_be_cancelled(serving: Serving, text: Text) -> None:
    async with serving(text.service) as wire:
        request = wire.request("text/coroutine")
        await wire.send(note("hold"), request)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        text.gate.set()
        assert (await wire.call("text/coroutine"))["result"] == []
    assert not any(wire.daemon.host.scheduler.counts().values())


async def test_a_failing_notification_lets_the_next_one_run(serving: Serving, text: Text) -> None:
    async with serving(text.service) as wire:
        await wire.send(note("changed_in_thread", -1), note("changed_in_thread", 2))
        assert (await wire.call("text/thread"))["result"] == [2]


async def test_sent_as_a_request_it_is_answered_with_null(serving: Serving, text: Text) -> None:
    async with serving(text.service) as wire:
        assert (await wire.call("text/changed_inline", [1]))["result"] is None


@pytest.mark.parametrize("limit", [0.05, 0.06])
async def test_a_request_that_begins_as_a_notification_is_given_up_has_its_own_deadline(
    serving: Serving, limit: float
) -> None:
    gate, service = threading.Event(), Service("")

    @service.notification(timeout=0.05)
    def hang() -> None:
        gate.wait(DEADLINE_SECONDS)

    @service.query(timeout=limit)
    async def sleep() -> None:
        await anyio.sleep_forever()

    async with serving(service) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "hang"})
        error = (await wire.call("sleep"))["error"]
        gate.set()
        assert error["data"]["code"] == "TIMEOUT"
