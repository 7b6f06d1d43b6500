"""The tool server of the comparison on discreet: one tool with declared params and a declared result."""

import msgspec

from discreet import Service, serve

shop = Service("", version="1", dialect="mcp")


class Item(msgspec.Struct):
    name: str
    price: float
    number: int


@shop.query
async def look(name: str, number: int) -> Item:
    """Tell the price of an item."""
    return Item(name, 1.5, number)


if __name__ == "__main__":
    serve(shop)
