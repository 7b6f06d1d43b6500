"""The work of the three tools, which every server of the comparison does alike: each asks the HTTP API and Redis at once.

The tools, their I/O and the keys are those of the public benchmark "MCP Server Performance Benchmark v2" of TM Dev Lab
(https://www.tmdevlab.com/mcp-server-performance-benchmark-v2.html); this code is not.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis import asyncio as redis

API = os.environ.get("SHOP_API", "http://127.0.0.1:8100")
TOP = 10
RECENT = 5

Ask = Callable[..., Awaitable[Any]]
"""Calls an operation of the API (`search`, `product`, `calculate`) by name and params, and returns its JSON."""


class Shop:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._redis = redis.from_url(os.environ.get("SHOP_REDIS", "redis://127.0.0.1:6379"), decode_responses=True)

    async def search_products(self, category: str, min_price: float, max_price: float, limit: int) -> dict[str, Any]:
        found, popular = await asyncio.gather(
            self._ask("search", category=category, min_price=min_price, max_price=max_price, limit=limit),
            self._redis.zrevrange("bench:popular", 0, TOP - 1),
        )
        top = [int(name.partition(":")[2]) for name in popular]
        ranks = {number: rank for rank, number in enumerate(top, 1)}
        products = [
            {name: each[name] for name in ("id", "sku", "name", "price", "rating")}
            | {"popularity_rank": ranks.get(each["id"], 0)}
            for each in found["products"]
        ]
        return {
            "category": category,
            "total_found": found["total_found"],
            "products": products,
            "top10_popular_ids": top,
        }

    async def get_user_cart(self, user_id: str) -> dict[str, Any]:
        cart: dict[str, str] = await self._redis.hgetall(f"bench:cart:{user_id}")
        items = json.loads(cart.get("items", "[]"))
        _, history = await asyncio.gather(
            self._ask("product", id=items[0]["product_id"] if items else 1),
            self._redis.lrange(f"bench:history:{user_id}", 0, RECENT - 1),
        )
        total = float(cart.get("total", 0))
        return {
            "user_id": user_id,
            "cart": {"items": items, "item_count": len(items), "estimated_total": total},
            "recent_history": [json.loads(each) for each in history],
        }

    async def checkout(self, user_id: str, items: list[dict[str, int]]) -> dict[str, Any]:
        order = json.dumps({"order_id": f"ORD-{user_id}-{int(time.time())}", "items": items})
        calculated, count, *_ = await asyncio.gather(
            self._ask("calculate", user_id=user_id, items=items),
            self._redis.incr(f"bench:ratelimit:{user_id}"),
            self._redis.rpush(f"bench:history:{user_id}", order),
            self._redis.zincrby("bench:popular", 1, f"product:{items[0]['product_id']}"),
        )
        return {
            "order_id": calculated["order_id"],
            "user_id": user_id,
            "total": calculated["total"],
            "items_count": len(items),
            "rate_limit_count": count,
            "status": "confirmed",
        }
