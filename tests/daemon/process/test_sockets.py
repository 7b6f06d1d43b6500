"""The listening sockets: what the connections that they accept are like."""

from __future__ import annotations

import asyncio
import socket

import pytest

from discreet.daemon.settings.option import read_address
from discreet.gateway.server.sockets import listen

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_answers_leave_at_once(anyio_backend: str) -> None:
    """With Nagle's algorithm, the body of each answer would wait until the client's system acknowledges its head."""
    address = read_address("127.0.0.1:0")
    assert address is not None
    set_at_server: list[int] = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        set_at_server.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listen(address) as listener:
        async with await asyncio.start_server(accepted, sock=listener):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert await reader.read() == b""
            writer.close()
    assert set_at_server == [1]
