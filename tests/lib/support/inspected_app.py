"""What `discreet inspect` is tried with: tools that ask, tell of progress, fail, and run as tasks; resources, a prompt, an app, and
texts that would be markup."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec

from discreet import Context, OperationError, Service, mcp

HOSTILE = "<img src='http://127.0.0.1:9/x' onerror='document.hacked = 1'>"
PRICES = {"pen": 1.5, "desk": 120.0}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="

shop = Service("shop", description=f"Sells stationery. {HOSTILE}", version="1.2.3")


class Item(msgspec.Struct):
    name: str
    price: float


class UnknownItem(OperationError, code="UNKNOWN_ITEM", http_status=404):
    """The shop does not sell this item."""

    known: list[str]


class Address(msgspec.Struct):
    street: str
    country: Literal["DE", "FR"] = "FR"


@shop.query(errors=[UnknownItem])
async def look(name: str, currency: Literal["EUR", "USD"] = "EUR") -> Item:
    """Tell the price of an item."""
    logging.getLogger("shop").warning("somebody looks at %s, token=%s", name, "k7Qzp2LwX9")
    if name not in PRICES:
        raise UnknownItem(known=sorted(PRICES))
    return Item(name, PRICES[name])


@shop.mutation(options={"ui": {"visibility": ["model"]}})
async def erase(path: str, sure: Annotated[bool, mcp.Ask("Erase it for good?")]) -> str:
    """Erase a file, if the user is sure."""
    return f"{path} erased" if sure else "nothing done"


@shop.mutation
async def send(item: str, to: Annotated[Address, mcp.Ask(f"Where to? {HOSTILE}")]) -> str:
    """Send an item to where the user says."""
    return f"{item} to {to.street}, {to.country}"


@shop.query
async def title(
    text: str, line: Annotated[str, mcp.Sample(lambda text: f"A headline for {text}", max_tokens=9)]
) -> str:
    """Have the client's model write a headline."""
    return line.upper()


@shop.query
async def count(ctx: Context, to: int = 2, forever: bool = False) -> str:
    """Count, and tell of it."""
    for number in range(to):
        await ctx.progress({"progress": number + 1, "total": to, "message": f"number {number + 1}"})
        await ctx.log("warning", f"counted {number + 1}")
    if forever:
        await anyio.sleep_forever()
    return "counted"


@shop.query(task="optional")
async def yearly(year: int) -> str:
    """Write the report of a year."""
    return f"Report of {year}"


@shop.mutation
async def order(items: list[Item], note: str = "") -> dict[str, Any]:
    """Order several items."""
    return {"items": items, "note": note}


@shop.query
async def picture() -> list[mcp.ImageContent | mcp.ResourceLink | mcp.TextContent]:
    """Show a picture, and what belongs to it."""
    link = mcp.ResourceLink(name=HOSTILE, uri="shop://prices")
    return [mcp.ImageContent(data=PIXEL, mime_type="image/png"), link, mcp.TextContent(text=HOSTILE)]


@shop.resource("ui://shop/board")
async def page() -> str:
    """The page of the board: an app."""
    return Path(__file__).with_suffix(".html").read_text("utf-8")


@shop.query(options={"ui": {"resourceUri": "ui://shop/board"}})
async def board(act: str = "") -> str:
    """Have the app do this."""
    if act == "wait":
        await anyio.sleep_forever()
    return act


@shop.resource("shop://prices", mime_type="application/json", title="All prices")
async def prices() -> dict[str, float]:
    """What everything costs."""
    return PRICES


@shop.resource("shop://item/{name}", complete={"name": lambda begun: [it for it in PRICES if it.startswith(begun)]})
async def item(name: str) -> str:
    """What one item costs."""
    return f"{name}: {PRICES[name]}"


@shop.mutation
async def raise_price(ctx: Context, name: str) -> None:
    """Double the price of an item."""
    PRICES[name] *= 2
    await ctx.resource_updated("shop://prices")


@shop.prompt(title="Advertise")
async def advertise(name: str, words: int = 50) -> str:
    """An advertisement."""
    return f"Write {words} words about {name}. {HOSTILE}"
