"""A web server that takes one push notification."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def webhook() -> AsyncIterator[tuple[str, asyncio.Future[tuple[str, Any]]]]:
    """Its URL, and what will come: the token and the body."""
    delivered: asyncio.Future[tuple[str, Any]] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        if not delivered.done():
            delivered.set_result((headers.get("x-a2a-notification-token", ""), body))

    async with await asyncio.start_server(take, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", delivered
