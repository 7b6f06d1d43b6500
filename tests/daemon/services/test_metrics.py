"""`services/metrics`: what the daemon tells of itself, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import msgspec
import pytest

from discreet import Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.hosting import access_of
from discreet.daemon.settings import Settings
from discreet.gateway.figures import BOUNDS, Figures
from support.executors import Scripted, echo
from support.vault import vault

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


async def figures(wire: Any, **members: Any) -> Figures:
    reply = await wire.call("services/metrics", **members)
    return msgspec.convert(reply["result"], Figures)


async def test_what_is_under_way_is_told_and_goes_back_to_nothing(serving: Serving) -> None:
    service, gate = Service("shop"), anyio.Event()

    @service.query()
    async def wait(text: str) -> None:
        await gate.wait()

    @service.subscription()
    async def watch() -> AsyncIterator[int]:
        await gate.wait()
        yield 1

    async with serving(service, max_concurrency=3) as wire:
        await wire.send(wire.request("shop/watch"), *(wire.request("shop/wait", {"text": "x" * 100}) for _ in range(2)))
        found = await figures(wire)
        assert (found.version, found.in_flight, found.streams, found.busy_threads) == ("1.2.3", 4, 1, 0)
        assert found.memory.used["requests"] > 200
        assert found.memory.limit == wire.daemon.host.memory.limit
        assert found.backlog.requests == 0
        gate.set()
        await wire.receive_all(4)
        found = await figures(wire)
        assert (found.in_flight, found.streams) == (1, 0)  # the one that asks
        assert {(each.method, each.code, each.count) for each in found.requests} == {
            ("shop/wait", "ok", 2),
            ("shop/watch", "ok", 1),
            ("services/metrics", "ok", 1),
        }
        assert found.bounds == list(BOUNDS)
        assert {each.method: each.durations.count for each in found.durations} == {
            "shop/wait": 2,
            "services/metrics": 1,
        }


async def test_requests_that_wait_for_their_turn_are_the_backlog(serving: Serving) -> None:
    service, gate = Service("shop"), anyio.Event()

    @service.query(serial=True)
    async def wait(text: str) -> None:
        await gate.wait()

    async with serving(service) as wire:
        await wire.send(*(wire.request("shop/wait", {"text": "x" * 100}) for _ in range(5)))
        found = await figures(wire)
        assert found.backlog.requests == 4
        assert found.backlog.bytes > 400
        gate.set()
        await wire.receive_all(5)
        assert (await figures(wire)).backlog.requests == 0


async def test_tasks_and_commits_are_those_of_the_agent(serving: Serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await (events.require_input("Which?") if context.text == "ask" else echo(context, events))

    agent = Agent(Scripted(execute), name="Echo", description="Says it again.")
    async with serving(agent=agent) as wire:
        assert set((await figures(wire)).tasks.values()) == {0}
        for text in ("ask", "say", "say"):
            message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": text}]}
            assert "result" in await wire.call("SendMessage", {"message": message})
        found = await figures(wire)
        assert {state: count for state, count in found.tasks.items() if count} == {"input-required": 1, "completed": 2}
        assert found.store.commits.count >= 3
        assert found.store.failed_commits == 0


@pytest.mark.parametrize(("scopes", "named"), [((), False), (("watch",), False), (("metrics",), True), (None, True)])
async def test_methods_that_the_caller_may_not_call_have_no_name(
    scopes: tuple[str, ...] | None, named: bool, serving: Serving
) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        for _ in range(2):
            await wire.call("vault/both")
        await wire.call("vault/open_")
        found = await figures(wire)
        names = {each.method for each in found.requests}
        assert "vault/open_" in names
        assert ("vault/both" in names) is named
        hidden = sum(each.count for each in found.requests if each.method in ("vault/both", "other"))
        assert hidden == 2


async def test_it_is_described_as_a_method_of_the_daemon(serving: Serving) -> None:
    async with serving() as wire:
        described = {each["name"]: each for each in (await wire.call("describeMethods"))["result"]}
        assert described["services/metrics"]["params"] == []
