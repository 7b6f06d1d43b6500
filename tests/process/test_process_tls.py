"""TLS in a handler: it is loaded when it is used, and works in asyncio and in anyio as anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority

Spawn = Callable[..., Any]

APP = """
import sys
from pathlib import Path
from discreet import Service

app = Service("app")

@app.query
async def loaded() -> list[str]:
    return sorted({"asyncio", "ssl"} & sys.modules.keys())

def contexts():
    import ssl

    here = Path(__file__).parent
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(here / "cert.pem", here / "key.pem")
    client = ssl.create_default_context(cafile=here / "ca.pem")
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the certificates of the test name no key of their authority
    return server, client

async def answer(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()

@app.query
async def over_asyncio(line: str) -> str:
    import asyncio

    ours, theirs = contexts()
    async with await asyncio.start_server(answer, "localhost", 0, ssl=ours) as server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1], ssl=theirs)
        writer.write(line.encode() + b"\\n")
        answered = await reader.readline()
        writer.close()
    return answered.decode().strip()

@app.query
async def over_anyio(line: str) -> str:
    import anyio
    from anyio.streams.tls import TLSListener

    ours, theirs = contexts()
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = TLSListener(tcp, ours)

    async def answer(stream):
        async with stream:
            await stream.send(await stream.receive())

    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = tcp.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port, ssl_context=theirs, tls_hostname="localhost") as stream:
            await stream.send(line.encode())
            answered = await stream.receive()
        group.cancel_scope.cancel()
    await listener.aclose()
    return answered.decode()

@app.query
async def over_udp(line: str) -> str:
    import anyio

    async with await anyio.create_udp_socket(local_host="127.0.0.1") as socket:
        port = socket.extra(anyio.abc.SocketAttribute.local_port)
        await socket.sendto(line.encode(), "127.0.0.1", port)
        packet, (host, from_port) = await socket.receive()
    assert (host, from_port) == ("127.0.0.1", port)
    return packet.decode()

@app.query
async def over_a_plain_socket(line: str) -> str:
    import asyncio, socket

    loop, (one, other) = asyncio.get_running_loop(), socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        await loop.sock_sendall(one, line.encode())
        return (await loop.sock_recv(other, 100)).decode()
"""


@pytest.mark.parametrize("way", ["asyncio", "anyio", "udp", "a_plain_socket"])
def test_tls_is_loaded_by_the_handler_that_uses_it(spawn: Spawn, app_directory: Path, way: str) -> None:
    authority = Authority("of a test")
    certificate, key = authority.for_localhost()
    for name, text in {
        "app.py": APP.encode(),
        "ca.pem": authority.certificate,
        "cert.pem": certificate,
        "key.pem": key,
    }.items():
        (app_directory / name).write_bytes(text)
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "app/loaded")["result"] == ["asyncio"]
    assert child.call(2, f"app/over_{way}", {"line": "hello"})["result"] == "hello"
    assert child.call(3, f"app/over_{way}", {"line": "again"})["result"] == "again"
    assert child.end() == 0
