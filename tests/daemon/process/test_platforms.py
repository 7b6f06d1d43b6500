"""What other systems have in place of Linux's primitives, tried wherever the primitives allow; and what accepted connections are like."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from typing import Any

import anyio
import pytest

from discreet.daemon.process import liveness
from discreet.daemon.process.liveness import _Waiting
from discreet.daemon.process.signals import Wakeup
from discreet.daemon.settings.option import read_address
from discreet.gateway.server.sockets import listen
from support.waits import DEADLINE_SECONDS


@pytest.mark.anyio
@pytest.mark.parametrize("sockets", [True] if sys.platform == "win32" else [False, True], ids=lambda it: "sockets" * it)
async def test_a_wakeup_from_a_thread_is_waited_for_and_many_may_be_one(sockets: bool) -> None:
    wakeup = Wakeup(sockets=sockets)
    with anyio.fail_after(DEADLINE_SECONDS):
        for _ in range(2):
            await anyio.to_thread.run_sync(wakeup.notify)
            wakeup.notify()
            await wakeup.wait()
    with anyio.move_on_after(0) as scope:
        await wakeup.wait()
    assert scope.cancelled_caught


@pytest.mark.skipif(sys.platform == "win32", reason="there is no poll(2)")
def test_an_input_that_the_system_can_not_poll_is_told_once_and_not_taken_for_hung_up() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    os.close(reading)  # POLLNVAL, as for a device on macOS
    waiting = _Waiting(reading, None)
    assert waiting.wait(None) is False
    assert waiting._poll is not None and waiting._poll.poll(0) == []


class Kernel32:
    """What the functions of kernel32 return."""

    def __init__(self, *, handle: int | None, waited: int = 0) -> None:
        self.closed: list[Any] = []
        self.OpenProcess = type("Function", (), {"__call__": lambda self, access, inherit, pid: handle})()
        self.WaitForSingleObject = lambda opened, milliseconds: waited
        self.CloseHandle = lambda opened: self.closed.append(opened.value)


@pytest.mark.parametrize(
    ("kernel", "error", "runs"),
    [
        (Kernel32(handle=64, waited=0x102), 0, True),  # WAIT_TIMEOUT
        (Kernel32(handle=64, waited=0), 0, False),  # it has ended, and somebody holds a handle to it
        (Kernel32(handle=None), 87, False),  # ERROR_INVALID_PARAMETER: there is none
        (Kernel32(handle=None), 5, True),  # ERROR_ACCESS_DENIED: it has more rights than we have
    ],
)
def test_on_windows_a_process_is_asked_whether_it_runs(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel32, error: int, runs: bool
) -> None:
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: error, raising=False)
    assert liveness._exists_on_windows(4) is runs
    assert liveness._exists_on_windows(2**32) is False  # a client may name any number
    assert kernel.closed == ([64] if kernel.OpenProcess(0, False, 4) else [])


def test_this_process_runs_and_a_number_that_no_process_has_does_not() -> None:
    assert liveness.exists(os.getpid())
    assert not liveness.exists(2**40)


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
