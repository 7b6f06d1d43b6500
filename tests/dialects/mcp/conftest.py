"""A shop that the tests of MCP serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import anyio
import msgspec
import pytest

from discreet import Context, OperationError, Service, mcp


class Item(msgspec.Struct):
    name: str
    price: float


class Basket(msgspec.Struct):
    items: list[Item]
    best: Item | None = None
    inner: list[Basket] = []


class ItemNotFound(OperationError, code="ITEM_NOT_FOUND", http_status=404, retryable=True):
    """No such item."""

    name: str


class Address(msgspec.Struct):
    street: str
    number: int = 1


def make_shop() -> Service:
    shop = Service("shop", description="Sells things.", version="2.1")

    @shop.query(errors=[ItemNotFound])
    async def price(name: str, amount: int = 1, labels: list[str] | None = None) -> Item:
        """Tell a price."""
        if name == "none":
            raise ItemNotFound(name=name)
        if name == "crash":
            raise RuntimeError("secret text")
        return Item(name, 2.5 * amount)

    @shop.mutation
    async def count(ctx: Context, steps: int = 3) -> int:
        """Count to a number."""
        for step in range(steps):
            await ctx.progress((step, steps))
        await ctx.progress(0)
        await ctx.log("debug", "quiet")
        await ctx.log("warning", {"counted": steps})
        return steps

    @shop.query
    async def basket() -> Basket:
        """Show a basket."""
        return Basket([Item("pen", 1)])

    @shop.query
    async def wait() -> None:
        """Wait for ever."""
        await anyio.sleep_forever()

    @shop.query
    async def greet() -> str:
        """Greet."""
        return "hello"

    @shop.query
    async def picture() -> list[mcp.TextContent | mcp.ImageContent | mcp.AudioContent | mcp.ResourceLink]:
        """Show and tell."""
        return [
            mcp.TextContent(text="look"),
            mcp.ImageContent(data="AA==", mime_type="image/png"),
            mcp.AudioContent(data="AA==", mime_type="audio/wav"),
            mcp.ResourceLink(name="all", uri="shop://prices"),
        ]

    @shop.subscription
    async def deliveries(number: int) -> AsyncIterator[Item]:
        """Tell of deliveries."""
        for place in range(number):
            yield Item("box", place)

    @shop.mutation
    async def change(ctx: Context) -> None:
        """Change all prices."""
        await ctx.resource_updated("shop://prices")

    @shop.mutation
    async def order(
        name: str,
        sure: Annotated[Literal["yes", "no"], mcp.Ask("Really?")],
        address: Annotated[Address, mcp.Ask("Where to?")],
    ) -> str:
        """Order an item."""
        return f"{name} {sure} {address.street} {address.number}"

    @shop.query(visibility="internal")
    async def hidden() -> int:
        return 1

    @shop.notification
    def told(text: str) -> None:
        """Take note."""

    @shop.query(scopes=["shop:admin"])
    async def books() -> int:
        """Show the books."""
        return 1

    @shop.resource("shop://prices", mime_type="text/plain", title="All prices")
    def prices() -> str:
        """All prices."""
        return "pen 1"

    @shop.resource("shop://logo", mime_type="image/png")
    def logo() -> bytes:
        return b"\x00\x01"

    @shop.resource("shop://items/{name}/{count}")
    def item(name: str, count: int) -> Item:
        """One item."""
        return Item(name, count)

    @shop.prompt(
        title="Advice", complete={"about": lambda begun: [w for w in ("pens", "paper") if w.startswith(begun)]}
    )
    def advise(about: str, style: Literal["short", "long"] = "short", words: int = 10) -> str:
        """Ask for advice."""
        return f"{about} {style} {words}"

    @shop.prompt
    def show() -> list[mcp.PromptMessage]:
        return [mcp.PromptMessage(role="assistant", content=mcp.AudioContent(data="AA==", mime_type="audio/wav"))]

    return shop


@pytest.fixture
def shop() -> Service:
    return make_shop()
