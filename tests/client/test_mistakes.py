"""What people get wrong with the client, and what each of them reads. A row is a mistake; add the next one here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from discreet import OperationError, Service
from discreet.client import ConnectionFailed, EndBounds, attach, connect, spawn
from discreet.client.typed import Caller
from discreet.framing.transports.memory import memory_pair
from discreet.testing import in_memory, spawned

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


async def test_a_server_that_refuses_to_start_is_told_with_the_last_line_that_was_collected() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('first\\nno such app; password=hunter2secret')"]
    with pytest.raises(ConnectionFailed, match="status 1; its stderr ends: no such app; password=<redacted>$"):
        async with connect(command, stderr="collect", bounds=EndBounds(eof=0.1)) as peer:
            await peer.call("m")


@pytest.mark.parametrize("peer", [["discreet", "serve"], None, connect(["x"])])
async def test_a_generated_client_takes_a_peer_only(peer: Any) -> None:
    with pytest.raises(TypeError, match="a generated client takes the Peer of"):
        Caller(peer)
