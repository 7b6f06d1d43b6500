"""The HTTP API behind the tools: 100,000 products in memory. As cheap as Python gets, so that it is not what is measured.

shop_api.py PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import httptools
import uvloop

PRODUCTS = 100_000
CATEGORIES = ("Electronics", "Books", "Clothing", "Garden", "Toys", "Sports", "Food", "Music", "Tools", "Health")


def product(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "sku": f"SKU-{number:06d}",
        "name": f"Product {number}",
        "category": CATEGORIES[number % len(CATEGORIES)],
        "price": round(5 + (number * 7919 % 99_500) / 50, 2),
        "rating": 1 + number * 31 % 41 / 10,
    }


PRICES = {
    category: sorted(
        (product(number)["price"], number) for number in range(1, PRODUCTS + 1) if number % len(CATEGORIES) == place
    )
    for place, category in enumerate(CATEGORIES)
}


@lru_cache(1024)
def search(category: str, low: float, high: float, limit: int) -> bytes:
    prices = PRICES.get(category, [])
    first, last = bisect_left(prices, (low, 0)), bisect_right(prices, (high, PRODUCTS))
    found = [product(number) for _, number in prices[first : min(last, first + limit)]]
    return json.dumps({"total_found": last - first, "products": found}).encode()


def total(order: dict[str, Any]) -> bytes:
    price = sum(product(item["product_id"])["price"] * item["quantity"] for item in order["items"])
    return json.dumps({"order_id": f"ORD-{order['user_id']}", "total": round(price, 2)}).encode()


def answer(target: bytes, body: bytes) -> bytes:
    path, _, query = target.decode().partition("?")
    if path == "/cart/calculate":
        return total(json.loads(body))
    if path == "/products/search":
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        return search(asked["category"], float(asked["min_price"]), float(asked["max_price"]), int(asked["limit"]))
    return json.dumps(product(int(path.rpartition("/")[2]))).encode()


class Connection(asyncio.Protocol):
    """httptools calls the `on_` methods."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is none of asyncio's
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._target = self._body = b""

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        text = answer(self._target, self._body)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
        self._transport.write(head + text)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
