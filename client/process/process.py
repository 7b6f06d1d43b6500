"""A server as a child process: its stdin and stdout as a byte transport, and its certain end.

Owns the process, its group and its pipes. Knows nothing of frames.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Final, final

import anyio
import msgspec

from ...framing.transports.stdio import StdioTransport
from ..errors import ConnectionFailed, Loss
from ..task_group import background_tasks
from ..validation import StrPath, check_command
from .stderr import Lines, Sink, StderrMode, Tail, drain

LAST_SECONDS: Final = 0.5
"""How long a child that was killed in haste is waited for, which blocks everything: to leave no zombie."""

LINGER_SECONDS: Final = 1.0
"""How long a pipe of a child that has exited may be silent before it counts as ended: someone else holds it open."""


class EndBounds(msgspec.Struct, frozen=True):
    """How long each way of ending a child is given, in seconds.

    `eof`: after its stdin was closed, more than a daemon's drain window of 2 s. `terminate`: after SIGTERM. `kill`: after
    SIGKILL, for the system to carry it out; a process that outlasts this hangs in the kernel and is left to it.
    """

    eof: float = 3.0
    terminate: float = 2.0
    kill: float = 1.0


@asynccontextmanager
async def spawn(
    command: Sequence[StrPath],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    stderr: StderrMode = "inherit",
    bounds: EndBounds = EndBounds(),  # noqa: B008 - frozen
) -> AsyncGenerator[ServerProcess]:
    """Run a command for as long as the block runs; `cwd` and `env` as in `subprocess.Popen` (None: this process's own).

    The child leads a session and group of its own, so that a Ctrl-C in the terminal is its parent's to handle. Leaving,
    also by cancellation, closes its stdin, then sends SIGTERM, then SIGKILL to its group, each when the `bounds` are
    over; its output is read and dropped meanwhile. What is left of the group when the child has exited is killed. An
    interrupt that comes while it ends (a second Ctrl-C) cuts this short: SIGKILL at once.

    Raises `ConnectionFailed` when the command can't be run, `TypeError` and `ValueError` for what is no command.
    """
    process = ServerProcess(command, cwd=cwd, env=env, stderr=stderr)
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(process._attend)
            yield process
    finally:
        await process._end(bounds)


@final
class ServerProcess:
    """A child and a `ByteTransport` to it: `send` writes its stdin, `receive` reads its stdout.

    The input ends when the child's stdout does, or when the child has exited and nothing came for `LINGER_SECONDS`
    (a grandchild may hold the pipe open for ever).
    """

    def __init__(
        self, command: Sequence[StrPath], *, cwd: StrPath | None, env: Mapping[str, str] | None, stderr: StderrMode
    ) -> None:
        check_command(command)
        self._pipes, self._errors, self._popen = _start(command, cwd, env, piped=stderr != "inherit")
        self._sink: Sink = Lines(stderr) if callable(stderr) else Tail()
        self._receiving = anyio.CancelScope()
        self._exited = anyio.Event()
        self._errors_ended = anyio.Event()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; negative, the signal that ended it; None while it runs."""
        return self._popen.returncode

    @property
    def stderr_tail(self) -> str:
        """The last of what it wrote to stderr, with `stderr="collect"`; else empty."""
        return str(self._sink) if isinstance(self._sink, Tail) else ""

    async def wait(self) -> int:
        """Wait for the child's exit; its status."""
        await self._exited.wait()
        return self._popen.returncode

    async def explain(self) -> Loss:
        """Why the input ended, given a moment to find out."""
        with anyio.move_on_after(LINGER_SECONDS):
            await self._exited.wait()
            await self._errors_ended.wait()
        return Loss(_how_it_ended(self.returncode), self.returncode, self.stderr_tail)

    # -- the transport -----------------------------------------------------------------------------------------

    def receive_nowait(self) -> bytes | None:
        return self._pipes.receive_nowait()

    async def receive(self) -> bytes:
        deadline = anyio.current_time() + LINGER_SECONDS if self._exited.is_set() else math.inf
        with anyio.CancelScope(deadline=deadline) as self._receiving:
            return await self._pipes.receive()
        self._pipes.close()  # or what somebody else writes later would follow the end
        return b""

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        return self._pipes.send_nowait(data)

    async def wait_sendable(self) -> None:
        await self._pipes.wait_sendable()

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await self._pipes.send(data)

    def send_eof(self) -> None:
        self._pipes.send_eof()

    def close(self) -> None:
        self._pipes.close()

    # -- life and end ------------------------------------------------------------------------------------------

    async def _attend(self) -> None:
        """Read stderr and wait for the exit. Can be cancelled and begun anew."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain_errors)
            await self._watch()

    async def _drain_errors(self) -> None:
        if self._errors is not None:
            await drain(self._errors, self._sink)
        self._errors_ended.set()

    async def _watch(self) -> None:
        if self._popen.returncode is None:
            await _wait_unreaped(self._popen)
            self._signal_group(_KILL)  # before the child is reaped nobody else can have its group's number
            self._popen.wait()
        self._exited.set()
        self._receiving.deadline = anyio.current_time() + LINGER_SECONDS

    async def _end(self, bounds: EndBounds) -> None:
        try:
            with anyio.CancelScope(shield=True):  # bounded by what it contains
                async with background_tasks() as tasks:
                    self._pipes.send_eof()
                    tasks.start_soon(self._discard_output)
                    tasks.start_soon(self._drain_errors)
                    await self.end(bounds)
                    with anyio.move_on_after(LINGER_SECONDS):
                        await self._errors_ended.wait()
        finally:
            self._kill()
            self._pipes.close()
            if self._errors is not None:
                self._errors.close()

    def _kill(self) -> None:
        """End a child that is still there, without the loop: an interrupt has cut through the shield, or it is a zombie soon."""
        if self._popen.returncode is None:
            self._signal_group(_KILL)
            try:
                self._popen.wait(LAST_SECONDS)
            except subprocess.TimeoutExpired:
                return  # it hangs in the kernel

    async def end(self, bounds: EndBounds) -> None:
        """Wait for the child's exit, then send SIGTERM, then SIGKILL to its group, each when the `bounds` are over."""
        with anyio.CancelScope(shield=True):  # also from a stderr callback that raises
            async with background_tasks() as tasks:
                tasks.start_soon(self._watch)
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
            if sys.platform == "win32":  # no groups to signal: the child alone, at once
                self._popen.kill()
            else:
                os.killpg(self._popen.pid, number)
        except OSError:
            return  # it has exited, or belongs to somebody else by now


_TERMINATE: Final = signal.SIGTERM
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


def _start(
    command: Sequence[StrPath], cwd: StrPath | None, env: Mapping[str, str] | None, *, piped: bool
) -> tuple[StdioTransport, StdioTransport | None, subprocess.Popen[bytes]]:
    """The child with its pipes: to its stdin and stdout, and, when `piped`, from its stderr."""
    with ExitStack() as theirs, ExitStack() as ours:
        try:
            child_in, our_out = _pipe(theirs, ours)
            child_out, our_in = reversed(_pipe(ours, theirs))
            child_err, our_err = reversed(_pipe(ours, theirs)) if piped else (None, None)
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
            reason = f"can't run {os.fspath(command[0])}: {exc.strerror}: {exc.filename}"
            raise ConnectionFailed(Loss(reason), sent=False) from exc
        ours.pop_all()
    errors = None if our_err is None else StdioTransport(our_err, os.open(os.devnull, os.O_WRONLY))
    return StdioTransport(our_in, our_out), errors, popen


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    readers.callback(os.close, reader)
    writers.callback(os.close, writer)
    return reader, writer


async def _wait_unreaped(popen: subprocess.Popen[bytes]) -> None:
    """Wait for the exit and, where the system has process descriptors, leave the reaping to the caller.

    Elsewhere the child is reaped here, and its group's number is free a moment before the group is signalled.
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
    """Reap a child on a thread of its own. Cancelled, the thread stays until the child exits."""
    await anyio.to_thread.run_sync(popen.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))


def _how_it_ended(returncode: int | None) -> str:
    if returncode is None:
        return "the server closed its stdout"
    if returncode >= 0:
        return f"the server exited with status {returncode}"
    try:
        return f"the server was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"the server was ended by signal {-returncode}"
