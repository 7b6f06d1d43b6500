"""The relay between a client and a child: every byte, both ends of stream, on both event loops."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from discreet.client import EndBounds, ServerProcess, spawn
from discreet.framing.transports.interface import PeerGone
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from discreet.recording.format import StreamName
from discreet.recording.proxy import ClientStreams, relay
from support.waits import DEADLINE_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="plays with POSIX signals"),
]

ECHO = "import os\nwhile data := os.read(0, 65536):\n while data: data = data[os.write(1, data):]"


class Wire:
    """The client's ends of its two streams, and what the observer got."""

    def __init__(self) -> None:
        self.gone = False
        self.observed: dict[StreamName, bytes] = {"client": b"", "server": b""}
        self.ended: list[StreamName] = []
        self.incoming, self.stdin = memory_pair()
        self.outgoing, self.stdout = memory_pair()

    def observe(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        self.observed[stream] += data
        if not data:
            self.ended.append(stream)


@asynccontextmanager
async def relayed(code: str, *, eof: float = 0.2) -> AsyncIterator[tuple[Wire, ServerProcess]]:
    """A session that must be over when the block ends. `eof` is how long a server may be silent after its input's end."""
    wire = Wire()
    ends = ClientStreams(wire.incoming, wire.outgoing, hung_up=lambda: wire.gone)
    bounds = EndBounds(eof=eof, terminate=1.0)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with spawn([sys.executable, "-I", "-S", "-c", code], bounds=bounds) as server:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(relay, ends, server, wire.observe, bounds=bounds))
                yield wire, server
            server.close()


async def read_all(transport: MemoryTransport) -> bytes:
    data = bytearray()
    while chunk := await transport.receive():
        data += chunk
    return bytes(data)


async def test_every_byte_passes_in_both_directions_and_is_observed() -> None:
    data = bytes(range(256)) * 8192
    async with relayed(ECHO, eof=DEADLINE_SECONDS) as (wire, server), anyio.create_task_group() as tasks:

        async def send() -> None:
            await wire.stdin.send(data)
            wire.stdin.send_eof()

        tasks.start_soon(send)
        assert await read_all(wire.stdout) == data
        assert await server.wait() == 0
    assert wire.observed == {"client": data, "server": data}
    assert wire.ended == ["client", "server"]


async def test_a_server_that_ends_ends_the_session_though_the_client_stays() -> None:
    async with relayed("import os; os.write(1, b'bye')") as (wire, _):
        assert await read_all(wire.stdout) == b"bye"


async def test_a_client_that_reads_no_more_has_hung_up() -> None:
    async with relayed("import os\nwhile True: os.write(1, b'x' * 4096)") as (wire, _):
        assert await wire.stdout.receive()
        wire.stdout.close()


async def test_a_client_that_ended_its_input_and_hung_up_ends_the_session() -> None:
    async with relayed("import signal; signal.pause()") as (wire, server):
        wire.stdin.send_eof()
        wire.gone = True
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


async def test_a_server_that_reads_no_more_is_seen_by_the_client() -> None:
    async with relayed("import os, signal\nos.close(0)\nos.write(1, b'!')\nsignal.pause()") as (wire, server):
        assert await wire.stdout.receive() == b"!"
        with pytest.raises(PeerGone):
            while True:
                await wire.stdin.send(b"x" * 65536)
        os.kill(server.pid, signal.SIGTERM)


async def test_a_server_that_stays_silent_after_the_clients_end_is_terminated() -> None:
    async with relayed("import signal; signal.pause()") as (wire, server):
        wire.stdin.send_eof()
        assert await server.wait() == -signal.SIGTERM


async def test_a_server_that_still_writes_after_the_clients_end_may_finish() -> None:
    code = "import os, time\nos.write(1, b'!')\nos.read(0, 1)\nfor _ in range(8): time.sleep(0.1); os.write(1, b'.')"
    async with relayed(code, eof=0.7) as (wire, server):  # less than all its pauses together
        assert await wire.stdout.receive() == b"!"
        wire.stdin.send_eof()
        assert await read_all(wire.stdout) == b"." * 8
        assert await server.wait() == 0
