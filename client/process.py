"""Runs a server as a child process, with its stdin and stdout as a byte transport, and makes sure that it ends.

Owns the process, its group and its pipes. Its stderr is read all the time, so that a child that writes much to it never blocks.
Knows nothing of frames.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias, final

import anyio
import msgspec

from ..async_block import async_block
from ..awaited import refuses_bool
from ..framing.transports.stdio import StdioTransport
from .errors import ConnectionFailed, ConnectionLoss
from .task_group import background_tasks
from .validation import StderrMode, StrPath, check_command, check_instance, check_seconds, check_stderr, check_strings

TAIL_BYTES: Final = 64 * 1024
"""How much of the end is kept: enough for several tracebacks."""

LINE_BYTES: Final = 64 * 1024
"""The callback gets a longer line in pieces."""


@final
class StderrTail:
    """Keeps the last `TAIL_BYTES`; `str()` decodes them."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data
        del self._data[:-TAIL_BYTES]

    def finish(self) -> None:
        """Does nothing."""

    def __str__(self) -> str:
        return self._data.decode(errors="replace")


@final
class StderrLines:
    """Calls a callback with each line, as text without its line end. Bytes that are no UTF-8 are replaced."""

    def __init__(self, callback: Callable[[str], object]) -> None:
        self._callback = callback
        self._partial = bytearray()

    def feed(self, data: bytes) -> None:
        self._partial += data
        if b"\n" in data:
            *lines, self._partial = self._partial.split(b"\n")
            for line in lines:
                self._call(line)
        while len(self._partial) >= LINE_BYTES:
            self._call(self._partial[:LINE_BYTES])
            del self._partial[:LINE_BYTES]

    def finish(self) -> None:
        if self._partial:
            self._call(self._partial)
            self._partial.clear()

    def _call(self, line: bytearray) -> None:
        self._callback(line.removesuffix(b"\r").decode(errors="replace"))


_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Signals whose handlers commonly raise: Ctrl-C does by default."""

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]  # Any: what a handler returns is ignored


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Delay the handlers of signals that arrive during the block until its end, so that they can raise only there.

    Only the main thread runs handlers; elsewhere this does nothing. Signals without a handler keep their effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, _Handler] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    try:
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler  # before it is replaced, so that it is put back in any case
                signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in came:
        handlers[number](number, None)


REAP_SECONDS: Final = 5.0
"""How long to wait for a child that was killed without the event loop, to leave no zombie. Everything blocks meanwhile."""

LINGER_SECONDS: Final = 1.0
"""A pipe that is silent this long after the child's exit counts as ended: another process holds it open."""


class EndBounds(msgspec.Struct, frozen=True):
    """How long each step of ending a child may take, in seconds.

    `eof`: after closing its stdin; longer than a daemon's drain window of 2 s. `terminate`: after SIGTERM. `kill`: after
    SIGKILL. A process that outlives all three hangs in the kernel, and is left running. Raises `ValueError` for numbers below 0.
    """

    eof: float = 3.0
    terminate: float = 2.0
    kill: float = 5.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_seconds(name, getattr(self, name))


@async_block
async def spawn(
    command: Sequence[StrPath],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    stderr: StderrMode = "inherit",
    bounds: EndBounds = EndBounds(),  # noqa: B008 - frozen
) -> AsyncGenerator[ServerProcess]:
    """Run a command for the length of the block. `cwd` and `env` are as in `subprocess.Popen` (None: this process's own).

    The child leads its own session and process group, so a Ctrl-C in the terminal reaches only this process.

    Leaving the block, also by cancellation, closes the child's stdin, then sends SIGTERM and then SIGKILL to its group, each
    after the time that `bounds` give to the previous step. The child's output is read and dropped meanwhile. When the child
    has exited, the rest of its group is killed. An interrupt during all this (a second Ctrl-C) sends SIGKILL at once.

    Raises `ConnectionFailed` if the command can't be run, and `TypeError` or `ValueError` if `command` is no command.
    """
    check_command(command)
    check_stderr(stderr)
    check_strings("env", env)
    check_instance("bounds", bounds, EndBounds)
    process: ServerProcess | None = None
    try:
        with deferred_signals():  # else an interrupt could come between the child's start and its owner
            process = ServerProcess(command, cwd=cwd, env=env, stderr=stderr)
        async with background_tasks() as tasks:
            tasks.start_soon(process._supervise)
            yield process
    finally:
        if process is not None:
            await process._end(bounds)


@final
class ServerProcess:
    """A child process and a `ByteTransport` to it: `send` writes its stdin, `receive` reads its stdout.

    The input ends with the child's stdout, or when the child has exited and its stdout was silent for `LINGER_SECONDS`
    (a grandchild may hold the pipe open for ever).
    """

    def __init__(
        self, command: Sequence[StrPath], *, cwd: StrPath | None, env: Mapping[str, str] | None, stderr: StderrMode
    ) -> None:
        self._stderr_sink = StderrLines(stderr) if callable(stderr) else StderrTail()
        self._pipes, self._stderr, self._popen = _start_child(command, cwd, env, pipe_stderr=stderr != "inherit")
        self.receive_nowait = self._pipes.receive_nowait
        self.watch_input = self._pipes.watch_input
        self.send_nowait = self._pipes.send_nowait
        self.wait_sendable = self._pipes.wait_sendable
        self.send = self._pipes.send
        self.send_eof = self._pipes.send_eof
        self.close = self._pipes.close
        self._receiving = anyio.CancelScope()
        self._exited = anyio.Event()
        self._stderr_ended = anyio.Event()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while the child runs. A negative one is the number of the signal that ended it."""
        return self._popen.returncode

    @property
    def stderr_tail(self) -> str:
        """The end of the child's stderr with `stderr="collect"`; else empty."""
        return str(self._stderr_sink) if isinstance(self._stderr_sink, StderrTail) else ""

    @refuses_bool
    async def wait(self) -> int:
        """Wait for the child's exit and return its status."""
        await self._exited.wait()
        return self._popen.returncode

    async def explain(self) -> ConnectionLoss:
        """Return the reason why the input ended. Waits up to `LINGER_SECONDS` for the exit status and the rest of stderr."""
        with anyio.move_on_after(LINGER_SECONDS):
            await self._exited.wait()
            await self._stderr_ended.wait()
        return ConnectionLoss(_reason(self.returncode), self.returncode, self.stderr_tail)

    # -- the transport -----------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        """Return the next bytes of the child's stdout; empty once the input has ended."""
        deadline = anyio.current_time() + LINGER_SECONDS if self._exited.is_set() else math.inf
        with anyio.CancelScope(deadline=deadline) as self._receiving:
            return await self._pipes.receive()
        self._pipes.close()  # otherwise bytes that another process writes later would follow the end
        return b""

    # -- exit --------------------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        """Read stderr and wait for the exit. It may be cancelled and called again."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain_stderr)
            await self._wait_exit()

    async def _drain_stderr(self) -> None:
        if self._stderr is not None:
            while data := await self._stderr.receive():
                self._stderr_sink.feed(data)
            self._stderr_sink.finish()
        self._stderr_ended.set()

    async def _wait_exit(self) -> None:
        if self._popen.returncode is None:
            await _wait_unreaped(self._popen)
            self._signal_group(_KILL)  # until the child is reaped, no other group can have its number
            self._popen.wait()
        self._exited.set()
        self._receiving.deadline = anyio.current_time() + LINGER_SECONDS

    async def _end(self, bounds: EndBounds) -> None:
        try:
            with anyio.CancelScope(shield=True):  # each wait in it is bounded
                async with background_tasks() as tasks:
                    self._pipes.send_eof()
                    tasks.start_soon(self._discard_output)
                    tasks.start_soon(self._drain_stderr)
                    await self.end(bounds)
                    with anyio.move_on_after(LINGER_SECONDS):
                        await self._stderr_ended.wait()
        finally:
            self._kill()
            self._pipes.close()
            if self._stderr is not None:
                self._stderr.close()

    def _kill(self) -> None:
        """Kill a child that still runs, without the event loop: an interrupt may have broken through the shield."""
        if self._popen.returncode is None:
            self._signal_group(_KILL)
            try:
                self._popen.wait(REAP_SECONDS)
            except subprocess.TimeoutExpired:
                return  # it hangs in the kernel

    async def end(self, bounds: EndBounds) -> None:
        """Wait for the child's exit. Send SIGTERM to its group after `bounds.eof` seconds, SIGKILL after `bounds.terminate`
        more."""
        with anyio.CancelScope(shield=True):  # a stderr callback that raises must not cancel it either
            async with background_tasks() as tasks:
                tasks.start_soon(self._wait_exit)
                for number, seconds in ((None, bounds.eof), (_TERMINATE, bounds.terminate), (_KILL, bounds.kill)):
                    if number is not None:
                        self._signal_group(number)
                    with anyio.move_on_after(seconds):
                        await self._exited.wait()
                        return

    async def _discard_output(self) -> None:
        while await self._pipes.receive():
            pass

    def _signal_group(self, number: int) -> None:
        try:
            if sys.platform == "win32":  # it has no process groups: end the child alone, at once
                self._popen.kill()
            else:
                os.killpg(self._popen.pid, number)
        except OSError:
            return  # it has exited, or the number belongs to another process by now


_TERMINATE: Final = signal.SIGTERM
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


def _start_child(
    command: Sequence[StrPath], cwd: StrPath | None, env: Mapping[str, str] | None, *, pipe_stderr: bool
) -> tuple[StdioTransport, StdioTransport | None, subprocess.Popen[bytes]]:
    """The transport to the child's stdin and stdout; the one from its stderr, if that is piped; the child.

    The child is started last: nothing can fail behind it and leave it alone.
    """
    with ExitStack() as theirs, ExitStack() as ours:
        try:
            pipes, child_in, child_out = _stdin_and_stdout(theirs, ours)
            stderr, child_err = _stderr(theirs, ours) if pipe_stderr else (None, None)
            popen = subprocess.Popen(
                list(command),
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as exc:
            program = os.fspath(command[0])
            place = "" if exc.filename in (None, program) else f": {exc.filename}"
            reason = f"can't run {program}: {exc.strerror}{place}"
            raise ConnectionFailed(ConnectionLoss(reason), sent=False) from exc
        ours.pop_all()
    return pipes, stderr, popen


def _stdin_and_stdout(theirs: ExitStack, ours: ExitStack) -> tuple[StdioTransport, int, int]:
    with ExitStack() as loose:
        child_in, our_out = _pipe(theirs, loose)
        our_in, child_out = _pipe(loose, theirs)
        transport = StdioTransport(our_in, our_out)
        loose.pop_all()
    ours.callback(transport.close)
    return transport, child_in, child_out


def _stderr(theirs: ExitStack, ours: ExitStack) -> tuple[StdioTransport, int]:
    with ExitStack() as loose:
        our_err, child_err = _pipe(loose, theirs)
        null = _kept_in(loose, os.open(os.devnull, os.O_WRONLY))
        transport = StdioTransport(our_err, null)
        loose.pop_all()
    ours.callback(transport.close)
    return transport, child_err


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    return _kept_in(readers, reader), _kept_in(writers, writer)


def _kept_in(stack: ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


async def _wait_unreaped(popen: subprocess.Popen[bytes]) -> None:
    """Wait for the exit and, on a system with process descriptors, leave the reaping to the caller.

    Elsewhere the child is reaped here, so its group's number is free for a moment before the group is signalled.
    """
    try:
        descriptor = os.pidfd_open(popen.pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox that forbids it
        await wait_in_thread(popen)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def wait_in_thread(popen: subprocess.Popen[bytes]) -> None:
    """Reap a child in a thread of its own. After cancellation the thread stays until the child exits."""
    await anyio.to_thread.run_sync(popen.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))


def _reason(returncode: int | None) -> str:
    if returncode is None:
        return "the server closed its stdout"
    if returncode >= 0:
        return f"the server exited with status {returncode}"
    try:
        return f"the server was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"the server was ended by signal {-returncode}"
