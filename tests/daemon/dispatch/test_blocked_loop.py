"""What of an app keeps the event loop beside its handlers is named in the log, with its place."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic
from typing import Any

import pytest

from discreet import Identity, Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.operations.access import PARENT, Access
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


class Blocking:
    """An executor, an interceptor and a lifespan that keep the loop at one place until the log says so."""

    def __init__(self, place: str, block: Callable[[], None]) -> None:
        self._place = place
        self._block = block

    def at(self, place: str) -> None:
        if place == self._place:
            self._block()

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

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.at("lifespan")
        yield


@pytest.mark.parametrize(
    "place", ["agent.check", "agent.execute", "agent.cancel", "interceptor.before", "interceptor.after", "lifespan"]
)
async def test_what_else_of_an_app_keeps_the_loop_is_named_too(
    serving: Serving, logged: LoggedEvents, place: str
) -> None:
    found: list[dict[str, Any]] = []

    def block() -> None:
        ends = monotonic() + DEADLINE_SECONDS
        while not found and monotonic() < ends:
            threading.Event().wait(0.001)
            blocked = (fields for name, fields in logged() if name == "loop.blocked")
            found.extend(fields for fields in blocked if "Blocking.at" in fields["at"])  # a slow machine blocks, too

    app = Blocking(place, block)
    agent = Agent(app, name="Clerk", description="Waits.", interceptors=[app])
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    async with serving(Service("shop", lifespan=app.lifespan), agent=agent, blocked_after=0.02) as wire:
        task = (await wire.call("SendMessage", {"message": message}))["result"]["task"]
        await wire.call("CancelTask", {"id": task["id"]})
    assert [fields["method"] for fields in found] == [place]


async def test_an_identity_provider_that_keeps_the_loop_is_named_too(serving: Serving, logged: LoggedEvents) -> None:
    found: list[dict[str, Any]] = []
    service = Service("shop")

    @service.query(scopes=["read"])
    async def price() -> int:
        return 1

    class Provider:
        schemes = ("bearer",)
        realm = "shop"

        def resolve(self, authorization: str) -> Identity | None:
            ends = monotonic() + DEADLINE_SECONDS
            while not found and monotonic() < ends:
                threading.Event().wait(0.001)
                found.extend(fields for name, fields in logged() if name == "loop.blocked")
            return Identity("someone", frozenset({"read"}))

    async with serving(service, access=Access(PARENT, Provider()), blocked_after=0.02) as wire:
        asked = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "shop/price",
            "serviceParams": {"authorization": "Bearer of-tests"},
        }
        await wire.send(asked)
        assert (await wire.receive())["result"] == 1
    assert [fields["method"] for fields in found] == ["identity.resolve"]
