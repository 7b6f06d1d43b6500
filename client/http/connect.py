"""Opens what carries requests by HTTP, for as long as a block runs. Never asks for anything itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ...errors.backoff import SYSTEM_TIMING
from ..task_group import background_tasks
from ..validation import check_instance
from .a2a import A2AKinds
from .addresses import parse_address

if TYPE_CHECKING:
    from ssl import SSLContext

    from .connection import HttpConnection


# Whether httpx is installed, which is an extra. Imports nothing of it.


INSTALL: Final = "pip install 'discreet[http]'"


def has_httpx() -> bool:
    """Whether HTTP can be spoken."""
    return find_spec("httpx") is not None


A2A_KINDS: Final = A2AKinds()


@asynccontextmanager
async def open_http(url: str, *, ssl_context: SSLContext | None = None) -> AsyncGenerator[HttpConnection]:
    """A connection to the server at this URL. Leaving it ends what still runs.

    Raises `ValueError` for a URL that is none, and `ImportError` where httpx is missing.
    """
    address = parse_address(url)
    if not has_httpx():
        raise ImportError(f"a URL needs httpx: {INSTALL}", name="httpx")
    from .connection import HttpConnection  # late: these load httpx
    from .pool import open_client

    if ssl_context is not None:
        from ssl import SSLContext

        check_instance("ssl_context", ssl_context, SSLContext)
    connection: HttpConnection | None = None
    async with open_client(address, ssl_context=ssl_context) as client:
        try:
            async with background_tasks() as tasks:
                connection = HttpConnection(client, address, tasks, timing=SYSTEM_TIMING)
                yield connection
        finally:
            if connection is not None:
                connection.close()
