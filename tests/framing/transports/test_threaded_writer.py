"""A thread that writes tells what was not written, and why."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from discreet.framing.transports.interface import PeerGone
from discreet.framing.transports.stdio import StdioTransport
from discreet.framing.transports.threaded import threaded_writer
from support.descriptors import LARGE, null_device
from support.waits import DEADLINE_SECONDS

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own devices")


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
