"""Runs the session of `discreet record`: a server between this process's own stdin and stdout, and a recorder beside it.

Owns this process's standard descriptors and signals. `recording.proxy` passes the bytes on, `recording.recorder` records them.
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..client import EndBounds, ServerProcess, spawn
from ..client.task_group import background_tasks
from ..daemon.settings import UsageError
from ..framing.events import Framing
from ..framing.stdio_guard import STDERR, STDIN, STDOUT
from ..framing.transports.interface import is_open
from ..framing.transports.stdio import StdioTransport
from ..recording.format import Entry, Recording, RecordingError, read_entries, read_recording
from ..recording.proxy import ClientStreams, forward_stderr, reader_is_gone, relay, terminate
from ..recording.recorder import Recorder
from ..recording.script import Script, build_script

# Loads a recording, for `discreet replay` and `discreet show`. Plays nothing.


class LoadedRecording(msgspec.Struct, frozen=True):
    """What is needed of a recording to replay it. `exit_status` is the server's, None unless it ended by itself."""

    script: Script
    framing: Framing
    exit_status: int | None


def load_recording(path: str, framing: Framing | None) -> LoadedRecording:
    """Read the file. `framing` None is the recorded one. Raises `UsageError` for a file that is no recording."""
    with _usage_errors(path):
        recording = read_recording(path)
        script = build_script(recording)
    return LoadedRecording(script, framing or _framing(recording), _exit_status(recording))


def open_entries(path: str) -> Iterator[Entry]:
    """Read the file entry by entry. Raises `UsageError` where it is no recording."""
    entries = read_entries(path)
    while True:
        with _usage_errors(path):
            entry = next(entries, None)
        if entry is None:
            return
        yield entry


@contextmanager
def _usage_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise UsageError(f"{path}: {os.strerror(exc.errno or 0)}") from exc
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc


def _framing(recording: Recording) -> Framing:
    """Return the framing of the recorded client. `auto` that was never decided is the daemon's default."""
    framing = recording.start.framing
    return "content-length" if framing == "auto" else framing


def _exit_status(recording: Recording) -> int | None:
    ended = recording.end
    return None if ended is None or ended.status is None or ended.status < 0 else ended.status


# Kills a server's process group when this process dies, even by SIGKILL.
#
# A small shell process waits at the end of a pipe. If the pipe closes without a message, it kills the group.


GRACE_SECONDS: Final = 1
"""How long the server may go on after this process died, which ended its input, before it is killed."""

_SCRIPT: Final = f'read -r group || exit 0; read -r done || {{ sleep {GRACE_SECONDS}; kill -s KILL -- "-$group"; }}'


@contextmanager
def orphan_guard() -> Iterator[Callable[[int], None]]:
    """Yields a function; call it once with a process group. If this process dies within the block, the group is killed.

    Does nothing on Windows, which has no process groups, and where there is no shell.
    """
    guard = _start()
    if guard is None:
        yield lambda _: None
        return
    pipe, process = guard
    try:
        yield lambda group: _send(pipe, b"%d\n" % group)
    finally:
        _send(pipe, b"done\ndone\n")  # without a group, the first line is read as the group and the second as the end
        os.close(pipe)
        process.wait()


def _start() -> tuple[int, subprocess.Popen[bytes]] | None:
    if sys.platform == "win32":
        return None
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to this process's group must not end the guard
        )
    except OSError:
        os.close(writer)
        return None
    finally:
        os.close(reader)
    return writer, process


def _send(fd: int, line: bytes) -> None:
    try:
        os.write(fd, line)
    except OSError:
        return  # the guard process was killed


_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_END_BOUNDS: Final = EndBounds()


async def run_session(
    command: list[str], start_recording: Callable[[], Recorder], with_stderr: bool
) -> tuple[int | None, Recorder]:
    """Run the server until the session ends. Returns its exit status and the recorder, which is not finished yet.

    The status is None if the server outlived even SIGKILL. `start_recording` is called once the server runs. Raises
    `ConnectionFailed` for a server that can't be started.
    """
    stderr_drained = anyio.Event()
    async with background_tasks() as outer, AsyncExitStack() as stack:
        client = stack.enter_context(_private_client_streams())
        signals = stack.enter_context(_received_signals())
        async with AsyncExitStack() as running:
            name_group = running.enter_context(orphan_guard())
            with _piped_stderr(with_stderr) as stderr:
                server = await running.enter_async_context(spawn(command))
            name_group(server.pid)
            recorder = start_recording()
            if stderr is None:
                stderr_drained.set()
            else:
                outer.start_soon(_forward_stderr, stderr, server, recorder, stderr_drained)
            tasks = await running.enter_async_context(background_tasks())
            tasks.start_soon(_forward_signals, signals, server, tasks)
            await relay(client, server, recorder.observe)
            server.close()
        await stderr_drained.wait()
    return server.returncode, recorder


def open_closed_descriptors() -> None:
    """Open the null device in place of a closed standard descriptor, so that no other file gets its number."""
    for number in (STDIN, STDOUT, STDERR):
        if not is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one


@contextmanager
def _private_client_streams() -> Iterator[ClientStreams]:
    """Move stdin and stdout to private descriptors. What this process prints by mistake then goes to stderr."""
    stdin, stdout = os.dup(STDIN), os.dup(STDOUT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    os.dup2(STDERR, STDOUT)
    incoming, outgoing = _reader(stdin), _writer(stdout)
    try:
        yield ClientStreams(incoming, outgoing, hung_up=partial(reader_is_gone, stdout))
    finally:
        incoming.close()
        outgoing.close()


@contextmanager
def _piped_stderr(wanted: bool) -> Iterator[int | None]:
    """While entered, children inherit a pipe as stderr. Yields its reading end, or None if it is not wanted."""
    if not wanted:
        yield None
        return
    reading, writing = os.pipe()
    saved = os.dup(STDERR)
    os.dup2(writing, STDERR)
    os.close(writing)
    try:
        yield reading
    finally:
        os.dup2(saved, STDERR)
        os.close(saved)


async def _forward_stderr(fd: int, server: ServerProcess, recorder: Recorder, drained: anyio.Event) -> None:
    source, sink = _reader(fd), _writer(os.dup(STDERR))
    try:
        await forward_stderr(source, sink, server, recorder.observe)
    finally:
        source.close()
        sink.close()
        drained.set()


@contextmanager
def _received_signals() -> Iterator[AsyncIterable[signal.Signals] | None]:
    """Receive the signals that would end this process. One that was ignored at the start stays so, for the server too."""
    if sys.platform == "win32":
        yield None
        return
    numbers = [getattr(signal, name) for name in _FORWARDED]
    with anyio.open_signal_receiver(*(n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN)) as signals:
        yield signals


async def _forward_signals(
    signals: AsyncIterable[signal.Signals] | None, server: ServerProcess, tasks: TaskGroup
) -> None:
    """Pass signals to the server, which decides whether to end; this process ends with it. After SIGTERM its time is bounded."""
    if signals is None:
        return
    async for number in signals:
        if server.returncode is None:
            os.kill(server.pid, number)
        if number == signal.SIGTERM:
            tasks.start_soon(_end_after_grace, server)


async def _end_after_grace(server: ServerProcess) -> None:
    await anyio.sleep(_END_BOUNDS.eof)
    await terminate(server, _END_BOUNDS)


def _reader(fd: int) -> StdioTransport:
    return StdioTransport(fd, os.open(os.devnull, os.O_WRONLY))


def _writer(fd: int) -> StdioTransport:
    return StdioTransport(os.open(os.devnull, os.O_RDONLY), fd)
