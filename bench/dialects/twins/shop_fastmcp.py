"""The shop of examples/mcp_shop on fastmcp."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

PRICES = {"pen": 1.5, "paper": 4.0, "desk": 120.0}
STOCK = {"pen": 10, "paper": 3, "desk": 1}

shop = FastMCP("shop", instructions="Sells stationery. Look at an item before you order it.", version="1.0.0")


class Item(BaseModel):
    name: str
    price: float
    left: int


def item_of(name: str) -> Item | None:
    return Item(name=name, price=PRICES[name], left=STOCK[name]) if name in PRICES else None


def failure(code: str, *, retryable: bool = False, **details: Any) -> ToolResult:
    """A failure that the model can read, with its data."""
    return ToolResult(structured_content={"code": code, "retryable": retryable, "details": details}, is_error=True)


def unknown_item(name: str) -> ToolResult:
    return failure("UNKNOWN_ITEM", name=name, known=sorted(PRICES))


@shop.tool(name="shop_look", annotations=ToolAnnotations(read_only_hint=True), output_schema=Item.model_json_schema())
async def look(name: str) -> Any:
    """Tell the price of an item, and how many are left."""
    return item_of(name) or unknown_item(name)


@shop.tool(name="shop_order")
async def order(ctx: Context, name: str, amount: Annotated[int, Field(ge=1, le=100)] = 1) -> Any:
    """Order an item. The user is asked before."""
    answer = await ctx.elicit("Shall the order be placed?", bool)
    item = item_of(name)
    if item is None:
        return unknown_item(name)
    if not (isinstance(answer, AcceptedElicitation) and answer.data):
        return "nothing was ordered"
    if item.left < amount:
        return failure("SOLD_OUT", retryable=True, left=item.left)
    for packed in range(amount):
        await ctx.report_progress(packed + 1, amount)
    STOCK[name] -= amount
    await ctx.info(f"{amount} {name} ordered")
    updated = mcp_types.ResourceUpdatedNotificationParams(uri="shop://stock")
    await ctx.send_notification(mcp_types.ResourceUpdatedNotification(params=updated))
    return f"{amount} {name} for {amount * item.price:.2f}"


@shop.tool(name="shop_restock", annotations=ToolAnnotations(read_only_hint=True))
async def restock(ctx: Context, name: Literal["pen", "paper", "desk"], boxes: int = 3) -> list[Item]:
    """Fill the shelves, box by box."""
    items = []
    for _ in range(boxes):
        STOCK[name] += 1
        items.append(Item(name=name, price=PRICES[name], left=STOCK[name]))
        await ctx.report_progress(len(items), boxes, items[-1].model_dump_json())
    return items


@shop.resource("shop://stock", title="Stock", mime_type="text/plain")
async def stock() -> str:
    """What is left of every item."""
    return "\n".join(f"{name}: {left}" for name, left in STOCK.items())


@shop.resource("shop://items/{name}", mime_type="application/json")
async def item(name: str) -> str:
    """One item."""
    found = item_of(name)
    if found is None:
        raise ValueError(f"unknown item {name}")
    return found.model_dump_json()


@shop.prompt(title="Compare two items")
async def compare(one: str, other: str, style: Literal["brief", "thorough"] = "brief") -> str:
    """Ask for a comparison of two items."""
    return f"Look at the items {one} and {other} of the shop. Give a {style} comparison of what they cost."


@shop.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str] | None:
    if argument.name == "style":
        return [style for style in ("brief", "thorough") if style.startswith(argument.value)]
    return [name for name in PRICES if name.startswith(argument.value)]


if __name__ == "__main__":
    shop.run(show_banner=False)
