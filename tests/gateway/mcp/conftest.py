"""A service whose handlers wait for the test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from support.asgi_client import AsgiClient
from support.mcp_http import McpHttp, begun

from ..conftest import Serve


class Works:
    """`service` has the tools; what its handlers did is in `done`. `going` lets those go on that wait."""

    def __init__(self) -> None:
        self.going = anyio.Event()
        self.began = anyio.Event()
        self.done: list[Any] = []
        self.contexts: list[Context] = []
        self.service = service = Service("work", version="1")

        @service.query
        async def add(a: int, b: int) -> int:
            return a + b

        @service.query
        async def steps(ctx: Context, count: int, text: str = "") -> str:
            """Tell of so many steps, with a pause for the test behind the first one."""
            for number in range(count):
                await ctx.progress({"progress": number, "total": count} | ({"message": text} if text else {}))
                if number == 0:
                    self.began.set()
                    await self.going.wait()
            self.done.append("steps")
            return "done"

        @service.query
        async def wait(ctx: Context) -> str:
            """Tell nothing, and answer when the test lets it go on."""
            self.contexts.append(ctx)
            self.began.set()
            try:
                await self.going.wait()
            except BaseException:
                self.done.append("cancelled")
                raise
            self.done.append("waited")
            return "waited"

        @service.query
        async def ask(ctx: Context) -> Any:
            return await ctx.request("roots/list", {}, timeout=30)

        @service.subscription
        async def count(ctx: Context, to: int, size: int = 1) -> AsyncIterator[str]:
            for number in range(to):
                self.done.append(number)
                yield "x" * size

        @service.resource("work://one")
        async def one() -> str:
            return "1"

        @service.mutation
        async def touch(ctx: Context) -> None:
            await ctx.resource_updated("work://one")


@pytest.fixture
def works() -> Works:
    return Works()


SERVED = {"http_mcp": True, "http_keep_alive": 0.05}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Sessions and streams are tasks that wait for each other and are cancelled: on both event loops."""
    return str(request.param)


@pytest.fixture
async def client(serve: Serve, works: Works) -> AsyncGenerator[AsgiClient]:
    async with serve(works.service, **SERVED) as found:
        yield found


@pytest.fixture
async def ours(client: AsgiClient) -> McpHttp:
    """A client with a session of 2025-11-25."""
    return await begun(client)
