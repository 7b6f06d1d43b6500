"""The three tools on discreet. `from_api` asks the API by operations imported from its document, `with_httpx` by httpx."""

from pathlib import Path
from typing import Any

import httpx
from shop_tools import API, Shop

from discreet import Context, Service, from_openapi

ELECTRONICS, USER = "Electronics", "user-00042"
ITEMS = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]
PATHS = {
    "search": ("GET", "/products/search"),
    "product": ("GET", "/products/{id}"),
    "calculate": ("POST", "/cart/calculate"),
}

api = from_openapi(
    str(Path(__file__).with_name("shop_api.json")), namespace="api", base_url=API, allow_private=True, validate="off"
)
from_api = Service("", uses=["api/search", "api/product", "api/calculate"])
with_httpx = Service("")


def add_tools(service: Service, shop_of: Any) -> None:
    @service.query
    async def search_products(
        ctx: Context, category: str = ELECTRONICS, min_price: float = 50, max_price: float = 500, limit: int = 10
    ) -> dict[str, Any]:
        """Search products by category and price range, merged with popularity data."""
        return await shop_of(ctx).search_products(category, min_price, max_price, limit)

    @service.query
    async def get_user_cart(ctx: Context, user_id: str = USER) -> dict[str, Any]:
        """Get a user's cart with the recent order history."""
        return await shop_of(ctx).get_user_cart(user_id)

    @service.command
    async def checkout(ctx: Context, user_id: str = USER, items: list[dict[str, int]] = ITEMS) -> dict[str, Any]:
        """Check out: calculate the total, count against the rate limit, record the order."""
        return await shop_of(ctx).checkout(user_id, items)


class Imported(Shop):
    """`ctx` is that of one call."""

    def __init__(self, ctx: Context, shop: Shop) -> None:
        self._redis = shop._redis
        self._ask = lambda name, **params: ctx.call(f"api/{name}", {"body": params} if name == "calculate" else params)


_shop = Shop(lambda **_: None)
add_tools(from_api, lambda ctx: Imported(ctx, _shop))

_http = httpx.AsyncClient(base_url=API)


async def ask(name: str, **params: Any) -> Any:
    method, path = PATHS[name]
    if method == "POST":
        return (await _http.post(path, json=params)).json()
    return (await _http.get(path.format(**params), params=params if name == "search" else None)).json()


_httpx_shop = Shop(ask)
add_tools(with_httpx, lambda ctx: _httpx_shop)
