"""The tool server of the comparison on fastmcp."""

from fastmcp import FastMCP
from pydantic import BaseModel

shop = FastMCP("shop", version="1")


class Item(BaseModel):
    name: str
    price: float
    number: int


@shop.tool
async def look(name: str, number: int) -> Item:
    """Tell the price of an item."""
    return Item(name=name, price=1.5, number=number)


if __name__ == "__main__":
    shop.run(show_banner=False)
