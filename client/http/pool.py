"""The pool of connections to a server: how they are made, kept and bounded. Follows no redirect and uses no proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx

from ...framing.transports.keep_alive import keep_alive_options
from .addresses import ServerAddress

CONNECT_SECONDS: Final = 10.0
"""How long a connection may take to be made, TLS included."""

IDLE_SECONDS: Final = 4.0
"""How long an unused connection is kept: less than the 5 s of uvicorn's default, after which the server would close it just
when a request goes out."""

MAX_IDLE: Final = 20

CLOSE_SECONDS: Final = 1.0


@asynccontextmanager
async def open_client(
    address: ServerAddress, *, ssl_context: ssl.SSLContext | None
) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of httpx for this server. Deadlines but that of the connection are for the caller to set."""
    transport = httpx.AsyncHTTPTransport(
        verify=_ssl_context(address) if ssl_context is None else ssl_context,
        uds=address.socket,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=MAX_IDLE, keepalive_expiry=IDLE_SECONDS),
        socket_options=None if address.socket else keep_alive_options(),
    )
    client = httpx.AsyncClient(
        transport=transport,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
        headers={},
    )
    try:
        yield client
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await client.aclose()


def _ssl_context(address: ServerAddress) -> ssl.SSLContext | bool:
    """Without TLS, one that loads no certificates, which takes tens of milliseconds."""
    return True if address.url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
