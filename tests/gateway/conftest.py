"""An agent behind the gateway, in the event loop of the test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from discreet.agents import Agent
from discreet.daemon.logs import log
from discreet.http import asgi
from support.asgi_client import AsgiClient
from support.executors import Scripted, echo

Serve = Callable[..., AbstractAsyncContextManager[AsgiClient]]


def agent_of(execute: Any = echo, cancel: Any = None, **options: Any) -> Agent:
    """An agent whose work is this function."""
    return Agent(Scripted(execute, cancel), name="Echo", description="Says it again.", **options)


@pytest.fixture
def anyio_backend() -> str:
    """What a request is answered with is the same on every event loop. Where the loop matters, a module has both."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _log_of_its_own() -> Iterator[None]:
    """What a test leaves in the log is none of the next one's business."""
    yield
    log.queue.clear()


@pytest.fixture
def serve() -> Serve:
    """`async with serve(hosted, …, **settings) as client`: behind the gateway until the block ends. The echo agent by default."""

    @asynccontextmanager
    async def serving(
        *hosted: Any, headers: dict[str, str] | None = None, **settings: Any
    ) -> AsyncGenerator[AsgiClient]:
        app = asgi(*(hosted or (agent_of(),)), isolated=True, **settings)
        async with app.lifespan():
            yield AsgiClient(app, headers)

    return serving


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    """Of a gateway with the echo agent alone."""
    async with serve() as found:
        yield found
