"""A stdin and stdout of any kind are read to the end and written whole, with and without an event loop."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from discreet.framing.transports.interface import PeerGone, StdoutClosed
from discreet.framing.transports.stdio import LARGE_TRANSFER_BYTES, StdioTransport
from discreet.framing.transports.threaded import threaded_writer
from support.descriptors import LARGE, closed_number, null_device, pipe_to_write, raw_terminal, socket_pair
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own devices")


@pytest.mark.parametrize("make", [os.pipe, socket_pair, raw_terminal], ids=["pipe", "socket", "terminal"])
def test_the_nowait_forms_need_no_event_loop(make: Callable[[], tuple[int, int]]) -> None:
    near, far = make()
    if make is os.pipe:
        incoming, outgoing, feed, drain = near, os.dup(far), far, near
    else:
        incoming, outgoing, feed, drain = near, os.dup(near), far, far
    transport = StdioTransport(incoming, outgoing)
    assert transport.receive_nowait() is None
    os.write(feed, b"request")
    assert transport.receive_nowait() == b"request"
    assert transport.receive_nowait() is None
    assert transport.send_nowait(b"reply") == 5
    assert os.read(drain, 100) == b"reply"
    transport.close()
    os.close(far)


async def test_a_file_is_read_to_its_end_and_a_file_is_written(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(LARGE)
    transport = StdioTransport(os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT))
    with anyio.fail_after(DEADLINE_SECONDS):
        while chunk := await transport.receive():
            await transport.send(chunk)
        await transport.send(LARGE)
    transport.close()
    assert target.read_bytes() == LARGE * 2


async def test_writing_a_large_file_lets_other_tasks_run(tmp_path: Path) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    transport = StdioTransport(null_device(), os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            await transport.send(LARGE)
            tasks.cancel_scope.cancel()
    transport.close()
    assert turns >= len(LARGE) // (2 * 1024 * 1024)


async def test_the_null_device_is_the_end_of_input_and_takes_everything() -> None:
    transport = StdioTransport(null_device(), null_device())
    with anyio.fail_after(DEADLINE_SECONDS):
        assert await transport.receive() == b""
        await transport.send(LARGE)
    transport.close()


async def test_a_stdin_that_was_never_open_is_the_end_of_input() -> None:
    reading, writing = os.pipe()
    transport = StdioTransport(closed_number(), writing)
    with anyio.fail_after(DEADLINE_SECONDS):
        assert await transport.receive() == b""
    assert transport.send_nowait(b"reply") == 5
    transport.close()
    assert os.read(reading, 100) + os.read(reading, 100) == b"reply"
    os.close(reading)


async def test_a_stdin_that_can_not_be_read_is_the_end_of_input(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    for stdin in (writing, os.open(tmp_path, os.O_RDONLY)):
        transport = StdioTransport(stdin, null_device())
        with anyio.fail_after(DEADLINE_SECONDS):
            assert await transport.receive() == b""
        transport.close()
    os.close(reading)


def test_a_stdout_that_takes_no_bytes_is_refused_at_once() -> None:
    stdin = null_device()
    reading, writing = os.pipe()
    for stdout in (closed_number(), reading):
        with pytest.raises(StdoutClosed):
            StdioTransport(stdin, stdout)
    for fd in (stdin, reading, writing):
        os.close(fd)  # none of them was closed by the refusal


@on_linux
async def test_a_full_disk_is_peer_gone() -> None:
    transport = StdioTransport(null_device(), os.open("/dev/full", os.O_WRONLY))
    with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(PeerGone):
        while True:
            await transport.send(LARGE)
    transport.close()


def test_what_was_cut_is_not_mended_when_there_is_room_again(tmp_path: Path) -> None:
    transport = StdioTransport(null_device(), os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))
    try:
        assert transport.send_nowait(b"a frame") == 5
        with pytest.raises(PeerGone) as refused:
            transport.send_nowait(b"me")
        assert isinstance(refused.value.__cause__, OSError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(PeerGone):
        transport.send_nowait(b"me")
    transport.close()


@on_linux
async def test_a_device_that_can_not_be_polled_is_read_by_a_thread() -> None:
    transport = StdioTransport(os.open("/dev/zero", os.O_RDONLY), null_device())
    with anyio.fail_after(DEADLINE_SECONDS):
        assert set(await transport.receive()) == {0}
    transport.close()


async def test_a_terminal_that_hangs_up_is_the_end_of_input() -> None:
    controlling, controlled = raw_terminal()
    transport = StdioTransport(controlled, null_device())
    received: list[bytes] = []

    async def receive() -> None:
        while chunk := await transport.receive():
            received.append(chunk)

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            os.close(controlling)
    assert received == []
    transport.close()


async def test_control_d_on_a_terminal_is_the_end_of_input_for_good() -> None:
    controlling, controlled = pty.openpty()
    transport = StdioTransport(controlled, null_device())
    os.write(controlling, b"typed\n\x04")
    with anyio.fail_after(DEADLINE_SECONDS):
        assert await transport.receive() == b"typed\n"
        assert await transport.receive() == b""
        os.write(controlling, b"more\n")
        assert await transport.receive() == b""
    transport.close()
    os.close(controlling)


# -- what other processes share --------------------------------------------------------------------------------------


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


# -- a thread that writes ---------------------------------------------------------------------------------------------


def test_closing_waits_for_what_a_thread_has_yet_to_write() -> None:
    script = """
import os, sys
from discreet.framing.transports.threaded import threaded_writer
from discreet.framing.transports.stdio import StdioTransport
from discreet.framing.transports.threaded import threaded_writer
transport = StdioTransport(0, 1, writer=threaded_writer)
taken = 0
while taken < 20_000:
    taken += transport.send_nowait(bytes(20_000 - taken))
transport.close()
os._exit(0)
"""
    child = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, timeout=DEADLINE_SECONDS, check=True
    )
    assert (len(child.stdout), child.stderr) == (20_000, b"")


def sent_by_a_thread(stdout: int) -> StdioTransport:
    """A transport that took more than a pipe holds, and then was closed."""
    transport = StdioTransport(null_device(), stdout, writer=threaded_writer)
    try:
        while transport.send_nowait(LARGE):
            pass
    except PeerGone:
        pass
    transport.close()
    return transport


def test_a_thread_tells_what_a_reader_has_not_taken() -> None:
    reading, writing = os.pipe()
    transport = sent_by_a_thread(writing)
    assert transport.unwritten > 0
    assert transport.failure is None
    os.close(reading)


@on_linux
def test_a_thread_tells_why_a_device_failed() -> None:
    transport = StdioTransport(null_device(), os.open("/dev/full", os.O_WRONLY), writer=threaded_writer)
    assert transport.send_nowait(b"reply") == 5
    transport.close()
    assert transport.unwritten == 5
    assert transport.failure is not None
    assert transport.failure.errno == errno.ENOSPC


def test_a_thread_that_wrote_everything_has_nothing_left() -> None:
    reading, writing = os.pipe()
    transport = StdioTransport(null_device(), writing, writer=threaded_writer)
    assert transport.send_nowait(b"reply") == 5
    transport.close()
    assert (transport.unwritten, transport.failure) == (0, None)
    assert os.read(reading, 100) == b"reply"
    os.close(reading)
