"""A service's lifespan surrounds the serving, and its value is the state of the handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from discreet.daemon.apps import AppError
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.transports.memory import memory_pair
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


def _shop(events: list[str], name: str = "shop") -> Service:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[dict[str, int]]:
        events.append(f"{name} opens")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            try:
                yield {"price": 3}
            finally:
                events.append(f"{name} closes")
                tasks.cancel_scope.cancel()

    service = Service(name, lifespan=lifespan)

    @service.query(inline=True)
    def inline(ctx: Context) -> int:
        events.append("asked")
        return int(ctx.state["price"])

    @service.query
    def thread(ctx: Context) -> int:
        return int(ctx.state["price"])

    @service.query
    async def coroutine(ctx: Context) -> int:
        return int(ctx.state["price"])

    return service


async def test_handlers_of_every_kind_have_its_value(serving: Any) -> None:
    events: list[str] = []
    plain = Service("plain")

    @plain.query
    async def state(ctx: Context) -> None:
        assert ctx.state is None

    async with serving(_shop(events), _shop(events, "stock"), plain) as wire:
        for kind in ("inline", "thread", "coroutine"):
            assert (await wire.call(f"shop/{kind}"))["result"] == 3
        assert "result" in await wire.call("plain/state")
        assert await wire.end() == 0
    assert events == ["shop opens", "stock opens", "asked", "stock closes", "shop closes"]


async def test_requests_that_came_early_are_answered_when_it_is_entered(serving: Any) -> None:
    events: list[str] = []
    ours, theirs = memory_pair()
    await theirs.send(encode_frame(b'{"jsonrpc":"2.0","id":1,"method":"shop/inline"}', "content-length"))
    theirs.send_eof()
    daemon = Daemon(Host([_shop(events)], Settings(), version="1"), ours)
    daemon.begin()
    assert not daemon.finished()
    with anyio.fail_after(DEADLINE_SECONDS):
        assert await daemon.run() == 0
    assert events == ["shop opens", "asked", "shop closes"]


async def test_it_serves_once_they_are_entered_and_has_stopped_once_they_are_left(
    serving: Any, logged: LoggedEvents
) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        seen.extend([*logged.names(), "enters"])
        yield
        seen.extend([*logged.names(), "leaves"])

    async with serving(Service("shop", lifespan=lifespan)) as wire:
        await wire.call("version")
        assert await wire.end() == 0
    assert [*seen, *logged.names()] == ["enters", "daemon.serving", "daemon.draining", "leaves", "daemon.stopped"]


async def test_what_fails_on_the_way_out_is_named_by_its_service_and_not_by_the_others(logged: LoggedEvents) -> None:
    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        yield
        raise OSError

    ours, theirs = memory_pair()
    theirs.send_eof()
    services = [_shop([], "first"), Service("bad", lifespan=failing), _shop([], "last")]
    daemon = Daemon(Host(services, Settings(), version="1"), ours)
    daemon.begin()
    with anyio.fail_after(DEADLINE_SECONDS):
        await daemon.run()
    (failed,) = [fields for name, fields in logged() if name == "lifespan.failed"]
    assert failed["service"] == "bad"
    assert failed["at"].startswith("test_lifespans.py:")


@pytest.mark.parametrize("fault", [ValueError("no database"), SystemExit(3)], ids=["exception", "exit"])
async def test_where_it_fails_nothing_is_served_and_what_was_entered_is_left(fault: BaseException) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        raise fault
        yield

    ours, theirs = memory_pair()
    daemon = Daemon(Host([_shop(events), Service("bad", lifespan=failing)], Settings(), version="1"), ours)
    daemon.begin()
    with (
        anyio.fail_after(DEADLINE_SECONDS),
        pytest.raises(
            AppError, match=rf"service 'bad': its lifespan \(test_lifespans.py:\d+\) failed: {type(fault).__name__}"
        ),
    ):
        await daemon.run()
    assert events == ["shop opens", "shop closes"]
    theirs.close()
