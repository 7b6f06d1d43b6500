"""A small shop for hosts of MCP: tools that look and order, a resource that changes, a prompt, a question to the user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import anyio
import msgspec

from discreet import Context, OperationError, Service, mcp

PRICES = {"pen": 1.5, "paper": 4.0, "desk": 120.0}
STOCK = {"pen": 10, "paper": 3, "desk": 1}


class Item(msgspec.Struct):
    name: str
    price: float
    left: int


class UnknownItem(OperationError, code="UNKNOWN_ITEM", http_status=404):
    """The shop does not sell this item."""

    name: str
    known: list[str]


class SoldOut(OperationError, code="SOLD_OUT", http_status=409, retryable=True):
    """Not enough of the item is left."""

    left: int


shop = Service("shop", description="Sells stationery. Look at an item before you order it.", version="1.0.0")


def item_of(name: str) -> Item:
    if name not in PRICES:
        raise UnknownItem(name=name, known=sorted(PRICES))
    return Item(name, PRICES[name], STOCK[name])


@shop.query(errors=[UnknownItem])
async def look(name: str) -> Item:
    """Tell the price of an item, and how many are left."""
    return item_of(name)


@shop.mutation(errors=[UnknownItem, SoldOut])
async def order(
    ctx: Context,
    name: str,
    sure: Annotated[bool, mcp.Ask("Shall the order be placed?")],
    amount: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1,
) -> str:
    """Order an item. The user is asked before."""
    item = item_of(name)
    if not sure:
        return "nothing was ordered"
    if item.left < amount:
        raise SoldOut(left=item.left)
    for packed in range(amount):
        await ctx.progress((packed + 1, amount))
    STOCK[name] -= amount
    await ctx.log("info", f"{amount} {name} ordered")
    await ctx.resource_updated("shop://stock")
    return f"{amount} {name} for {amount * item.price:.2f}"


@shop.subscription
async def restock(name: Literal["pen", "paper", "desk"], boxes: int = 3) -> AsyncIterator[Item]:
    """Fill the shelves, box by box."""
    for _ in range(boxes):
        STOCK[name] += 1
        yield item_of(name)
        await anyio.lowlevel.checkpoint()


@shop.resource("shop://stock", title="Stock", mime_type="text/plain")
async def stock() -> str:
    """What is left of every item."""
    return "\n".join(f"{name}: {left}" for name, left in STOCK.items())


def names_that_begin(begun: str) -> list[str]:
    return [name for name in PRICES if name.startswith(begun)]


@shop.resource("shop://items/{name}", complete={"name": names_that_begin}, errors=[UnknownItem])
async def item(name: str) -> Item:
    """One item."""
    return item_of(name)


@shop.prompt(title="Compare two items", complete={"one": names_that_begin, "other": names_that_begin})
async def compare(one: str, other: str, style: Literal["brief", "thorough"] = "brief") -> str:
    """Ask for a comparison of two items."""
    return f"Look at the items {one} and {other} of the shop. Give a {style} comparison of what they cost."
