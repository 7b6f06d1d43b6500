"""The three tools on fastmcp, as the public benchmark serves them: stateless, JSON answers, uvloop, four worker processes.

server_fastmcp.py PORT WORKERS
"""

import sys
from typing import Any

import httpx
import uvicorn
from fastmcp import FastMCP
from shop_tools import API, Shop

mcp = FastMCP("shop")
http = httpx.AsyncClient(base_url=API)
PATHS = {
    "search": ("GET", "/products/search"),
    "product": ("GET", "/products/{id}"),
    "calculate": ("POST", "/cart/calculate"),
}


async def ask(name: str, **params: Any) -> Any:
    method, path = PATHS[name]
    if method == "POST":
        return (await http.post(path, json=params)).json()
    return (await http.get(path.format(**params), params=params if name == "search" else None)).json()


shop = Shop(ask)


@mcp.tool
async def search_products(
    category: str = "Electronics", min_price: float = 50, max_price: float = 500, limit: int = 10
) -> dict[str, Any]:
    """Search products by category and price range, merged with popularity data."""
    return await shop.search_products(category, min_price, max_price, limit)


@mcp.tool
async def get_user_cart(user_id: str = "user-00042") -> dict[str, Any]:
    """Get a user's cart with the recent order history."""
    return await shop.get_user_cart(user_id)


@mcp.tool
async def checkout(user_id: str, items: list[dict[str, int]]) -> dict[str, Any]:
    """Check out: calculate the total, count against the rate limit, record the order."""
    return await shop.checkout(user_id, items)


app = mcp.http_app(stateless_http=True, json_response=True)

if __name__ == "__main__":
    uvicorn.run(
        "server_fastmcp:app",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        workers=int(sys.argv[2]),
        loop="uvloop",
        log_level="error",
    )
