"""Nothing changes for the processes that share stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import anyio
import anyio.to_thread
import pytest

from discreet.framing.transports.stdio import LARGE_TRANSFER_BYTES, StdioTransport
from support.descriptors import LARGE, null_device, pipe_to_write, raw_terminal, socket_pair
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own devices")


@pytest.mark.parametrize("make", [pipe_to_write, socket_pair, raw_terminal], ids=["pipe", "socket", "terminal"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
async def test_a_large_write_to_a_slow_reader_stalls_nobody_and_leaves_the_description_alone(
    make: Callable[[], tuple[int, int]], blocking: bool
) -> None:
    reader, stdout = make()
    os.set_blocking(stdout, blocking)
    transport = StdioTransport(null_device(), stdout, closefd=False)
    got = bytearray()

    def read_slowly() -> None:
        while len(got) < len(LARGE):
            got.extend(os.read(reader, 4096 if len(got) < 65536 else 1 << 20))

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.send, LARGE)
            await anyio.wait_all_tasks_blocked()  # the loop goes on while the reader does not read
            assert os.get_blocking(stdout) is blocking
            await anyio.to_thread.run_sync(read_slowly)
    assert bytes(got) == LARGE
    assert os.get_blocking(stdout) is blocking
    transport.close()
    os.close(reader)
    os.close(stdout)


@pytest.mark.parametrize("make", [os.pipe, socket_pair, raw_terminal], ids=["pipe", "socket", "terminal"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
async def test_reading_leaves_the_description_alone(make: Callable[[], tuple[int, int]], blocking: bool) -> None:
    stdin, feed = make()
    if make is raw_terminal:
        stdin, feed = feed, stdin
    os.set_blocking(stdin, blocking)
    transport = StdioTransport(stdin, null_device(), closefd=False)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def receive() -> None:
                assert await transport.receive() == b"request"

            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            os.write(feed, b"request")
    assert os.get_blocking(stdin) is blocking
    transport.close()
    os.close(stdin)
    os.close(feed)


def test_borrowed_descriptors_stay_open_and_owned_ones_are_closed() -> None:
    reading, writing = os.pipe()
    before = {reading, writing}
    StdioTransport(reading, writing, closefd=False).close()
    assert {fd for fd in before if os.fstat(fd)} == before
    StdioTransport(reading, writing).close()
    for fd in before:
        with pytest.raises(OSError):
            os.fstat(fd)


@on_linux
def test_only_large_transfers_enlarge_a_pipe() -> None:
    import fcntl

    (stdin, feed), (drain, stdout) = os.pipe(), os.pipe()
    usual = fcntl.fcntl(feed, fcntl.F_GETPIPE_SZ)
    transport = StdioTransport(stdin, stdout)
    for _ in range(LARGE_TRANSFER_BYTES // 1024 * 2):
        os.write(feed, bytes(1024))
        assert transport.receive_nowait() == bytes(1024)
        assert transport.send_nowait(bytes(1024)) == 1024
        assert os.read(drain, 65536) == bytes(1024)
    assert {fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (feed, drain)} == {usual}
    transport.send_nowait(bytes(LARGE_TRANSFER_BYTES))
    for _ in range(LARGE_TRANSFER_BYTES // 65536):
        os.write(feed, bytes(65536))
        assert transport.receive_nowait() == bytes(65536)
    assert min(fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (feed, drain)) > usual
    transport.close()
    os.close(feed)
    os.close(drain)
