"""What people get wrong with the client, and what each of them reads. A row is a mistake; add the next one here."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import pytest
from anyio import to_thread

from discreet import OperationError, Service
from discreet.client import ConnectionFailed, EndBounds, attach, connect, spawn
from discreet.client.agent import AgentClient
from discreet.client.errors import OperationTypeMismatch
from discreet.client.typed import Caller
from discreet.framing.transports.memory import memory_pair
from discreet.testing import in_memory, spawned
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

UNBEGUN: Final[dict[str, Callable[[], Any]]] = {
    "connect": lambda: connect(["x"]),
    "spawn": lambda: spawn(["x"]),
    "attach": lambda: attach(memory_pair()[0]),
    "in_memory": lambda: in_memory(Service("shop")),
    "spawned": lambda: spawned("./shop.py:shop"),
}


async def awaited(block: Any) -> None:
    await block


async def entered(block: Any) -> None:
    with block:
        pass


async def used(block: Any) -> None:
    await block.call("m")


@pytest.mark.parametrize("name", UNBEGUN)
@pytest.mark.parametrize("use", [awaited, entered, used])
async def test_a_block_that_was_not_begun_says_how_it_is(name: str, use: Callable[[Any], Awaitable[None]]) -> None:
    with pytest.raises((TypeError, AttributeError), match=rf"`async with {name}\(…\) as it:`"):
        await use(UNBEGUN[name]())


class SoldOut(OperationError, code="SOLD_OUT"):
    "There is none left."

    article: str


def shop() -> Service:
    service = Service("shop")

    @service.query(errors=[SoldOut])
    def buy(article: str) -> int:
        raise SoldOut(article=article)

    @service.subscription()
    async def ticks() -> Any:
        yield 1

    return service


CALLS: Final[dict[str, tuple[Callable[[Any], Awaitable[Any]], str]]] = {
    "no such method": (lambda peer: peer.call("shop/by"), "shop/by: NOT_FOUND: Method not found"),
    "a declared error": (
        lambda peer: peer.call("shop/buy", {"article": "pen"}),
        'shop/buy: SOLD_OUT: There is none left ({"article":"pen"})',
    ),
    "a declared error as its class": (
        lambda peer: peer.call("shop/buy", {"article": "pen"}, errors=[SoldOut]),
        "SoldOut: SOLD_OUT: There is none left (article='pen')\nraised by shop/buy",
    ),
    "a subscription that is called": (lambda peer: peer.call("shop/ticks"), "shop/ticks is for peer.subscribe(…)"),
    "a call that is subscribed to": (
        lambda peer: anext(peer.subscribe("shop/buy", {"article": "pen"})),
        "shop/buy is for peer.call(…)",
    ),
    "an event of a method that is not there": (lambda peer: anext(peer.subscribe("no")), "no: NOT_FOUND: "),
    "an object deep in the params": (
        lambda peer: peer.call("shop/buy", {"article": [1, {"b": object()}]}),
        "TypeError: params.article[1].b: Encoding objects of type object is unsupported",
    ),
    "keys that are no texts": (
        lambda peer: peer.call("shop/buy", {"article": {(1,): 1}}),
        "TypeError: params: Only dicts",
    ),
    "params that are no struct": (lambda peer: peer.call("shop/buy", object()), "TypeError: params: Encoding objects"),
}
"""A call, and what its uncaught error shows."""


@pytest.mark.parametrize("name", CALLS)
async def test_an_uncaught_error_says_what_was_called_and_what_went_wrong(name: str) -> None:
    call, shown = CALLS[name]
    async with in_memory(shop()) as peer:
        with pytest.raises(Exception) as raised:
            await call(peer)
    assert shown in "".join(traceback.format_exception_only(raised.value))
    if isinstance(raised.value, OperationTypeMismatch):  # a log may have the text alone
        assert shown in str(raised.value)


async def test_a_server_that_refuses_to_start_is_told_with_the_last_line_that_was_collected() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('first\\nno such app; password=hunter2secret')"]
    with pytest.raises(ConnectionFailed, match="status 1; its stderr ends: no such app; password=<redacted>$"):
        async with connect(command, stderr="collect", bounds=EndBounds(eof=0.1)) as peer:
            await peer.call("m")


@pytest.mark.parametrize("peer", [["discreet", "serve"], None, connect(["x"])])
async def test_a_generated_client_takes_a_peer_only(peer: Any) -> None:
    with pytest.raises(TypeError, match="a generated client takes the Peer of"):
        Caller(peer)


async def test_a_stream_of_events_says_how_it_is_read() -> None:
    async with in_memory(shop()) as peer:
        for events in (peer.subscribe("shop/ticks"), AgentClient(peer).stream("hello")):
            with pytest.raises(TypeError, match="`async for event in …:`"):
                await awaited(events)
            with pytest.raises(TypeError, match="`async for event in …:`"):
                list(events)  # type: ignore[call-overload]  # what is tested


ELSEWHERE: Final[dict[str, Callable[[Any], Any]]] = {
    "call": lambda peer: peer.call("shop/buy", {"article": "pen"}),
    "notify": lambda peer: peer.notify("shop/buy"),
    "subscribe": lambda peer: anext(peer.subscribe("shop/ticks")),
    "send_raw": lambda peer: peer.send_raw(b""),
}


async def refused_in_another_loop(use: Callable[[], Any]) -> None:
    async def run() -> None:
        await use()

    with (
        anyio.fail_after(DEADLINE_SECONDS),
        pytest.raises(RuntimeError, match=r"event loop.*discreet\.client\.blocking"),
    ):
        await to_thread.run_sync(lambda: asyncio.run(run()), abandon_on_cancel=True)


@pytest.mark.parametrize("use", ELSEWHERE)
async def test_a_peer_says_at_once_that_it_belongs_to_another_event_loop(use: str) -> None:
    async with in_memory(shop()) as peer:
        await refused_in_another_loop(lambda: ELSEWHERE[use](peer))
        assert await peer.call("version")


async def test_so_does_a_subscription_that_has_begun() -> None:
    async with in_memory(shop()) as peer, peer.subscribe("shop/ticks") as ticks:
        assert await anext(ticks) == 1
        await refused_in_another_loop(lambda: anext(ticks))


async def test_so_does_a_peer_by_http() -> None:
    async with connect("http://127.0.0.1:9/") as peer:
        await refused_in_another_loop(lambda: peer.call("GetTask", {"id": "1"}))
