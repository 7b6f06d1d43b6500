"""A shop and its store: services that call one another, in every way to do so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec

from discreet import CallFailed, Context, OperationError, Service, Stopped
from support.waits import DEADLINE_SECONDS


class Empty(OperationError, code="EMPTY", retryable=True):
    """Nothing is there."""

    shelf: int
    tags: tuple[str, ...] = ()


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""

    path: str


class Item(msgspec.Struct):
    name: str
    count: int


class Store:
    """The service that is called, and what it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.started = 0
        self.ended = 0
        self.service = service = Service("store")

        @service.query()
        async def item(ctx: Context, name: str) -> Item:
            self._see(ctx)
            return Item(name, 3)

        @service.query(inline=True)
        def inline(ctx: Context, n: int) -> int:
            self._see(ctx)
            return n + 1

        @service.query()
        def thread(ctx: Context, n: int) -> int:
            self._see(ctx)
            return n + 1

        @service.query(serial=True)
        async def serial(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n + 1

        @service.query(keyed="n")
        async def keyed(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n + 1

        @service.query(visibility="internal")
        async def internal() -> str:
            return "internal"

        @service.query(scopes=["vault"])
        async def locked() -> str:
            return "unlocked"

        @service.subscription()
        async def watch() -> AsyncIterator[int]:
            yield 1

        @service.query(errors=[Empty])
        async def fail(how: str) -> int:
            match how:
                case "declared":
                    raise Empty(shelf=4, tags=("a",))
                case "undeclared":
                    raise Hidden(path="/home/me/secret.txt")
                case _:
                    raise ValueError("/home/me/secret.txt")

        @service.query(timeout=None)
        async def forever() -> None:
            self.started += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.ended += 1

        @service.query(timeout=None)
        def forever_thread(ctx: Context) -> None:
            self.started += 1
            try:
                while True:
                    ctx.wait_cancelled(DEADLINE_SECONDS)
                    ctx.check_cancelled()
            except Stopped:
                self.ended += 1
                raise

        @service.query(timeout=0.02)
        async def brief() -> None:
            await anyio.sleep_forever()

        @service.query(limit=1, timeout=None)
        async def limited() -> None:
            self.started += 1
            await anyio.sleep_forever()

    def _see(self, ctx: Context) -> None:
        self.seen.append(
            {
                "identity": ctx.identity,
                "service_params": dict(ctx.service_params),
                "id": ctx.request_id,
                "credentials": dict(ctx.credentials),
            }
        )


NAMES = ["item", "inline", "thread", "serial", "keyed", "internal", "locked", "watch", "fail", "forever"]
NAMES += ["forever_thread", "brief", "limited"]


def failure_in_words(exc: CallFailed) -> str:
    return type(exc.failure).__name__


def shop(**options: Any) -> Service:
    """A service that may call all of the store, in each of the ways to do so."""
    service = Service("shop", uses=[f"store/{name}" for name in NAMES], **options)

    @service.query(timeout=None, name="async")
    async def call(ctx: Context, name: str, params: Any = None, keep: bool = False) -> Any:
        return await ctx.call(name, params, continue_running=keep)

    @service.query(timeout=None)
    def thread(ctx: Context, name: str, params: Any = None, keep: bool = False) -> Any:
        return ctx.call_blocking(name, params, continue_running=keep)

    @service.query(timeout=0.05)
    async def async_brief(ctx: Context, name: str) -> Any:
        return await ctx.call(name)

    @service.query(timeout=0.05)
    def thread_brief(ctx: Context, name: str) -> Any:
        return ctx.call_blocking(name)

    @service.subscription(name="stream")
    async def stream(ctx: Context, name: str, params: Any = None) -> AsyncIterator[Any]:
        yield await ctx.call(name, params)

    return service


WAYS = ["shop/async", "shop/thread"]
