"""Code of an app that keeps the event loop is named in the log, with its place."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import anyio
import pytest

from discreet import Identity, Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.operations.access import PARENT, Access
from discreet.daemon.process.loop_watch import LoopWatch
from support.daemon_wire import Serving
from support.logged_events import LoggedEvents, logged_events
from support.waits import DEADLINE_SECONDS, until


class Blocking:
    """Code of every kind that an app has, which keeps the loop at one place until the log says so."""

    schemes = ("bearer",)
    realm = "shop"

    def __init__(self, place: str, logged: LoggedEvents) -> None:
        self._told: list[tuple[str, dict[str, Any]]] = []
        self._place = place
        self.service = Service("shop", lifespan=self.lifespan)
        self.service.query(inline=True, scopes=["read"])(self.inline)
        self.service.query(scopes=["read"])(self.coroutine)
        self._logged = logged

    def heard(self, event: str) -> list[dict[str, Any]]:
        self._told += self._logged()
        found = [fields for name, fields in self._told if name == event]
        return [
            fields for fields in found if "Blocking.at" in fields.get("at", "Blocking.at")
        ]  # a slow machine blocks, too

    def at(self, place: str) -> None:
        if place == self._place:
            before, ends = len(self.heard("loop.blocked")), monotonic() + DEADLINE_SECONDS
            while len(self.heard("loop.blocked")) == before and monotonic() < ends:
                threading.Event().wait(0.001)

    def inline(self) -> None:
        self.at("shop/inline")

    async def coroutine(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.at("shop/coroutine")

    def check(self, context: RequestContext) -> None:
        self.at("agent.check")

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.at("agent.execute")
        await events.require_input()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        self.at("agent.cancel")

    async def before(self, call: object) -> None:
        self.at("interceptor.before")

    async def after(self, call: object, outcome: object) -> None:
        self.at("interceptor.after")

    def resolve(self, authorization: str) -> Identity | None:
        self.at("identity.resolve")
        return Identity("someone", None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.at("lifespan")
        yield


PLACES = ["agent.check", "agent.execute", "agent.cancel", "interceptor.before", "interceptor.after", "lifespan"]
MESSAGE = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}


@pytest.mark.anyio
@pytest.mark.parametrize("place", [*PLACES, "identity.resolve", "shop/inline", "shop/coroutine"])
async def test_code_that_keeps_the_loop_is_named_with_its_place(
    serving: Serving, logged: LoggedEvents, place: str
) -> None:
    app = Blocking(place, logged)
    agent = Agent(app, name="Clerk", description="Waits.", interceptors=[app])
    access = Access(PARENT, app) if place == "identity.resolve" else None
    async with serving(app.service, agent=agent, access=access, blocked_after=0.02) as wire:
        if place in PLACES:
            task = (await wire.call("SendMessage", MESSAGE))["result"]["task"]
            await wire.call("CancelTask", {"id": task["id"]})
        for method in ("shop/inline", "shop/coroutine") * 2:
            await wire.call(method, serviceParams={"authorization": "Bearer of-tests"} if access else {})
        blocked = app.heard("loop.blocked")
        assert {fields["method"] for fields in blocked} == {place}
        assert len(blocked) == 2 or not place.startswith("shop/")
        await until(lambda: len(app.heard("loop.resumed")) >= len(blocked))


@pytest.mark.parametrize("refusals", [0, 1, 3])
def test_a_step_without_a_thread_leaves_the_next_one_to_try(refusals: int) -> None:
    tried: list[Callable[[], None]] = []

    def start(run: Callable[[], None]) -> None:
        tried.append(run)
        if len(tried) <= refusals:
            raise RuntimeError("can't start new thread")

    watch = LoopWatch(0.1, start_thread=start)
    for _ in range(5):
        watch.step = ("a",)
        if watch.asleep:
            watch.look()
        watch.step = None
    assert len(tried) == refusals + 1
    assert not watch.asleep


def test_a_step_that_was_logged_is_known_to_have_ended_when_the_watch_closes() -> None:
    watch = LoopWatch(0.001)
    with logged_events("warn") as logged:
        watch.step = ("a",)
        watch.look()
        names, ends = list[str](), monotonic() + DEADLINE_SECONDS
        while not names and monotonic() < ends:
            names = logged.names()
        watch.step = None
        watch.close()
        watch.close()
        assert watch.blocked == 1
        assert [*names, *logged.names()] == ["loop.blocked", "loop.resumed"]


def test_with_no_limit_nothing_is_watched() -> None:
    assert not LoopWatch(None).asleep


@pytest.mark.anyio
async def test_what_waits_does_not_keep_the_loop(serving: Serving, logged: LoggedEvents) -> None:
    service = Service("patient")

    @service.query
    async def wait() -> None:
        await anyio.sleep(0.1)

    async with serving(service, blocked_after=0.02) as wire:
        await wire.call("patient/wait")
    assert not [name for name in logged.names() if name.startswith("loop.")]
