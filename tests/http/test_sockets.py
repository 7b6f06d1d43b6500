"""The sockets that the gateway listens on."""

from __future__ import annotations

import asyncio
import socket

import anyio
import pytest

from discreet.daemon.http.server.sockets import listen
from discreet.daemon.settings.addresses import read_address
from support.waits import DEADLINE_SECONDS


@pytest.mark.parametrize("name", ["127.0.0.1:0", "localhost:0"])
def test_an_answer_does_not_wait_until_the_client_has_acknowledged_its_head(name: str) -> None:
    async def accepted_socket() -> int:
        address = read_address(name)
        assert address is not None
        accepted: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer.get_extra_info("socket"))
            writer.close()

        listener = listen(address)
        async with await asyncio.start_server(accept, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            with anyio.fail_after(DEADLINE_SECONDS):
                no_delay = (await accepted).getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            await writer.wait_closed()
            return no_delay

    assert asyncio.run(accepted_socket()) != 0
