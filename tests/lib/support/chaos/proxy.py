"""A process between daemons and the server of their store. It passes bytes on, late or not at all, and cuts connections.

`python proxy.py SERVER_PORT COUNT` listens on so many ports, prints them as JSON, and does what the lines on its stdin say:
`cut I`, `delay I SECONDS`, `silence I` (nothing passes), `mute I` (nothing of what the server says passes), `isolate I` (nothing
passes, and the server thinks that the daemon is gone), `normal I`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
from typing import Final

LARGEST_READ: Final = 1 << 16
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with which closing sends RST."""


class Gate:
    """One port: how bytes pass now, and the connections that lead through it."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.to_daemon: set[asyncio.StreamWriter] = set()
        self.to_server: set[asyncio.StreamWriter] = set()
        self._passing = {"up": asyncio.Event(), "down": asyncio.Event()}
        self.let_pass("up", "down")

    def let_pass(self, *ways: str) -> None:
        for way, passing in self._passing.items():
            (passing.set if way in ways else passing.clear)()

    async def passes(self, way: str) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        await self._passing[way].wait()

    def cut(self) -> None:
        for writer in (*self.to_daemon, *self.to_server):
            reset(writer)

    def isolate(self) -> None:
        self.let_pass()
        for writer in self.to_server:
            reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def pump(gate: Gate, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(LARGEST_READ):
            await gate.passes(way)
            writer.write(data)
            await writer.drain()
        await gate.passes(way)
        writer.close()
    except OSError:
        await gate.passes(way)
        reset(writer)


async def serve(gate: Gate, server_port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    gate.to_daemon.add(writer)
    try:
        await gate.passes("up")
        there, onward = await asyncio.open_connection("127.0.0.1", server_port)
    except OSError:
        gate.to_daemon.discard(writer)
        return reset(writer)
    gate.to_server.add(onward)
    await asyncio.gather(pump(gate, "up", reader, onward), pump(gate, "down", there, writer))
    gate.to_daemon.discard(writer)
    gate.to_server.discard(onward)
    for each in (writer, onward):
        each.close()


def obey(gates: list[Gate], line: str) -> None:
    word, number, *more = line.split()
    gate = gates[int(number)]
    match word:
        case "cut":
            gate.cut()
        case "delay":
            gate.delay = float(more[0])
        case "silence":
            gate.let_pass()
        case "mute":
            gate.let_pass("up")
        case "isolate":
            gate.isolate()
        case _:
            gate.delay = 0.0
            gate.let_pass("up", "down")


async def main(server_port: int, count: int) -> None:
    gates = [Gate() for _ in range(count)]
    ports = []
    for gate in gates:
        server = await asyncio.start_server(
            lambda reader, writer, gate=gate: serve(gate, server_port, reader, writer), "127.0.0.1", 0
        )
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        obey(gates, line.decode())


class Proxies:
    """The process, and where it listens. Ends with its stdin."""

    def __init__(self, server_port: int, count: int) -> None:
        command = [sys.executable, "-P", __file__, str(server_port), str(count)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.ports: list[int] = json.loads(self._process.stdout.readline())

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
