"""Runs a server between this process's stdin and stdout, and shows the bytes that pass to an observer.

Never interprets the bytes, never holds more than one read of each direction. A thread for each stream copies with blocking
calls, so that a slow reader on one side slows the writer on the other.
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Final, Protocol, final

from ..client.process import LINGER_SECONDS, EndBounds
from ..framing.channel import SILENCE_SECONDS
from ..framing.stdio_guard import STDERR, STDIN, STDOUT, redirect_to_null
from ..framing.transports.interface import reader_is_gone
from ..framing.transports.threaded import read_blocking
from .format import StreamName

POLL_SECONDS: Final = 0.1
"""The interval of the checks whether the session should end. The server's own exit is noticed at once."""

BOUNDS: Final = EndBounds()

_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


class Observer(Protocol):
    """Gets a copy of everything that passes, from several threads."""

    def __call__(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        """Take some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before them."""
        ...


@final
class Relay:
    """A server and this process's standard streams as its client's. Takes this process's signals: for the main thread."""

    def __init__(self, command: Sequence[str], *, pipe_stderr: bool) -> None:
        """Start the server. Raises `OSError`."""
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if pipe_stderr else None,
            bufsize=0,
            start_new_session=True,
        )
        self._exited = Event()
        self._is_dead = False
        self._reads_client = True
        self._input_ended = math.inf  # when the client ended it; times are the next two, too
        self._hung_up = math.inf  # the client
        self._terminated = math.inf  # by a SIGTERM to this process
        self._silent_since = monotonic()  # infinite while the server's output waits for the client to read it

    def run(self, observe: Observer) -> int | None:
        """Pass everything on until the server has ended. Returns its exit status; None if it outlived even SIGKILL.

        The end of one side's stream, and a reader that goes away, reach the other side as such. The server is ended when the
        client no longer reads, when it writes nothing for `BOUNDS.eof` after the client's end, or so long after a SIGTERM.
        """
        self._forward_signals()
        server = self._server
        output = _started(self._pass_output, observe)
        errors = None if server.stderr is None else _started(_pass_stderr, server.stderr.fileno(), observe)
        _started(self._pass_input, observe)
        _started(self._wait_for_exit)
        try:
            while not self._exited.wait(POLL_SECONDS) and monotonic() < self._due():
                continue
            for number, seconds in ((signal.SIGTERM, BOUNDS.terminate), (_KILL, BOUNDS.kill)):
                if not self._exited.is_set():
                    self._signal_group(number)
                    self._exited.wait(seconds)
            exited = monotonic()
            while output.is_alive() and monotonic() < max(self._silent_since, exited) + LINGER_SECONDS:
                output.join(POLL_SECONDS)
            if errors is not None:
                errors.join(LINGER_SECONDS)
        finally:
            if not self._exited.is_set():
                self._signal_group(_KILL)
        return server.returncode

    def _due(self) -> float:
        """When the server is to be ended, as far as it is known now."""
        if self._hung_up == math.inf and not self._reads_client and reader_is_gone(STDOUT):
            self._hung_up = monotonic()
        silent = max(self._input_ended, self._silent_since)
        return min(silent, self._hung_up, self._terminated) + BOUNDS.eof

    def _pass_input(self, observe: Observer) -> None:
        assert self._server.stdin is not None
        sink = self._server.stdin.fileno()
        if _copy("client", STDIN, lambda data: _write(sink, data), observe):
            self._input_ended = monotonic()
        else:
            redirect_to_null(STDIN, os.O_RDONLY)  # the server reads no more, and the client should see that
        self._reads_client = False
        with suppress(OSError):
            self._server.stdin.close()

    def _pass_output(self, observe: Observer) -> None:
        assert self._server.stdout is not None

        def deliver(data: bytes) -> None:
            self._silent_since = math.inf
            _write(STDOUT, data)
            self._silent_since = monotonic()

        if not _copy("server", self._server.stdout.fileno(), deliver, observe):
            self._hung_up = self._silent_since = monotonic()
            self._server.stdout.close()  # the server, too, should see that there is no reader
        redirect_to_null(STDOUT)

    def _wait_for_exit(self) -> None:
        if hasattr(os, "waitid"):  # not on macOS before Python 3.13
            os.waitid(os.P_PID, self._server.pid, os.WEXITED | os.WNOWAIT)
            self._signal_group(_KILL)  # until the server is reaped, no other group can have its number
            self._is_dead = True
        self._server.wait()
        self._is_dead = True
        self._exited.set()

    def _signal_group(self, number: int) -> None:
        if self._is_dead:
            return
        with suppress(OSError):  # it has exited
            if sys.platform == "win32":  # it has no process groups
                self._server.kill()
            else:
                os.killpg(self._server.pid, number)

    def _forward_signals(self) -> None:
        """Pass signals on to the server, which decides whether to end. One that was ignored at the start stays so."""
        if sys.platform == "win32":
            return

        def forward(number: int, _: object) -> None:
            if number == signal.SIGTERM:
                self._terminated = monotonic()
            if not self._is_dead:
                os.kill(self._server.pid, number)

        for number in (getattr(signal, name) for name in _FORWARDED):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, forward)


def _started(work: Callable[..., None], *args: object) -> Thread:
    thread = Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def _pass_stderr(source: int, observe: Observer) -> None:
    if not _copy("stderr", source, lambda data: _write(STDERR, data), observe):
        _copy("stderr", source, len, observe)  # this process's stderr has no reader, but the server must not block


def _copy(stream: StreamName, source: int, deliver: Callable[[bytes], object], observe: Observer) -> bool:
    """Copy until the source ends, which returns True, or `deliver` raises an `OSError`, which returns False."""
    while True:
        began = monotonic()
        try:
            data = read_blocking(source)
        except OSError:
            data = b""
        observe(stream, data, rested=monotonic() - began >= SILENCE_SECONDS["long"])
        if not data:
            return True
        try:
            deliver(data)
        except OSError:
            return False


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:  # another process made the description non-blocking
            select.select([], [fd], [])
