"""A server that is a process, behind the gateway, in the event loop of the test."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.bridge import Bridge, HeadersFor, ServerLog
from discreet.daemon.apps import Hosted
from discreet.daemon.logs import log
from discreet.daemon.settings import Settings
from discreet.gateway.mounted import mounted
from discreet.imports.targets import Command, Target
from support.asgi_client import AsgiClient

RELAYED = Path(__file__).parents[1] / "lib" / "support" / "relayed_server.py"
SERVER = Command((sys.executable, "-I", "-S", str(RELAYED)))

Bridged = Callable[..., AbstractAsyncContextManager[AsgiClient]]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Sessions are tasks that wait for each other and are cancelled: on both event loops."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _log_of_its_own() -> Iterator[None]:
    yield
    log.queue.clear()


@pytest.fixture
def bridged() -> Bridged:
    """`async with bridged(**settings) as client`: the server behind the gateway until the block ends."""

    @asynccontextmanager
    async def bridging(
        server: Target = SERVER,
        *,
        share: bool = False,
        headers: HeadersFor | None = None,
        server_log: ServerLog | None = None,
        **settings: Any,
    ) -> AsyncGenerator[AsgiClient]:
        given = Settings(http_mcp=True, dialect="mcp", **settings)
        bridge = Bridge(server, share=share, headers=headers, server_log=server_log)
        app = mounted(Hosted([], bridge=bridge), given, None, os.environ)
        async with app.lifespan():
            yield AsgiClient(app)

    return bridging


@pytest.fixture
async def client(bridged: Bridged) -> AsyncGenerator[AsgiClient]:
    async with bridged() as found:
        yield found
