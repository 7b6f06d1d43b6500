"""A service to be mounted: what it does can be asked for by its own operations, wherever it runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import anyio
import msgspec
from msgspec import Meta

from discreet import Context, OperationError, ServerEvent, Service


class Empty(OperationError, code="EMPTY", http_status=409, retryable=True):
    """Nothing is there."""

    shelf: int
    tags: tuple[str, ...] = ()


class Later(OperationError, code="LATER", http_status=429, retryable=True):
    """Not now."""

    retryAfterMs: int  # noqa: N815


class Bare(OperationError, code="BARE", http_status=404):
    """It has no details."""


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""


class Point(msgspec.Struct, forbid_unknown_fields=True):
    x: int
    y: Annotated[int, Meta(le=10)] = 0


class Item(msgspec.Struct):
    name: str
    points: list[Point] = []


far = Service("far", description="Far away.", version="3.2.1")
counts: Counter[str] = Counter()


@far.query(errors=[Empty, Later, Bare])
async def item(name: str, points: list[Point] = [], how: Literal["plain", "large"] = "plain") -> Item:  # noqa: B006
    """Give an item back."""
    match name:
        case "empty":
            raise Empty(shelf=3, tags=("a", "b"))
        case "later":
            raise Later(retryAfterMs=1500)
        case "bare":
            raise Bare
        case "hidden":
            raise Hidden
        case "broken":
            raise RuntimeError(name)
    return Item(name * (200_000 if how == "large" else 1), points)


@far.mutation()
def store(item: Item) -> None:
    """Take an item."""
    counts[f"stored {item.name}"] += 1


@far.query()
async def count(what: str) -> int:
    """How often something has happened."""
    return counts[what]


@far.mutation(timeout=0.05)
async def late() -> None:
    """Take too long."""
    await anyio.sleep_forever()


@far.mutation(timeout=None)
async def wait(name: str) -> None:
    """Wait until it is cancelled."""
    counts[f"{name} begun"] += 1
    try:
        await anyio.sleep_forever()
    finally:
        counts[f"{name} ended"] += 1


@far.mutation(limit=1, timeout=None)
async def alone(name: str) -> None:
    """Wait alone."""
    counts[f"{name} begun"] += 1
    try:
        await anyio.sleep_forever()
    finally:
        counts[f"{name} ended"] += 1


@far.mutation()
async def steps(ctx: Context, number: int) -> int:
    """Tell of each step."""
    for step in range(number):
        await ctx.progress({"step": step})
    return number


@far.subscription(errors=[Empty])
async def numbers(until: int, fail: bool = False) -> AsyncIterator[int]:
    """Count, and fail at the end."""
    for number in range(until):
        yield number
    if fail:
        raise Empty(shelf=until)


@far.subscription()
async def flood(name: str, size: int = 10) -> AsyncIterator[str]:
    """Never end."""
    try:
        while True:
            counts[name] += 1
            yield "x" * size
    finally:
        counts[f"{name} ended"] += 1


@far.subscription()
async def ticks(ctx: Context, until: int) -> AsyncIterator[ServerEvent[str]]:
    """Tick from behind the last number that the caller has."""
    for number in range((ctx.last_event_id or 0) + 1, until + 1):
        yield ServerEvent(f"tick {number}", id=number)


@far.query()
async def carried(ctx: Context) -> dict[str, str]:
    """What came along with the call, and who made it."""
    subject = "" if ctx.identity is None else ctx.identity.subject
    return {"subject": subject, **ctx.service_params}


@far.mutation()
async def crash(unless: str = "") -> int:
    """Die, unless this file is there."""
    return _crash(unless)


@far.query()
async def fragile(unless: str) -> int:
    """Die at the first time."""
    return _crash(unless)


def _crash(unless: str) -> int:
    counts["crash"] += 1
    if unless and os.path.exists(unless):
        return os.getpid()
    if unless:
        with open(unless, "w", encoding="utf-8"):
            pass
    os._exit(9)


@far.query()
async def pid() -> int:
    """The process."""
    return os.getpid()
