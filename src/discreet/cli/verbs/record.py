"""`discreet record`: runs a server, passes everything through, and writes a scrubbed recording of the session.

Owns this process's standard descriptors and signals. `recording.proxy` passes the bytes on, `recording.recorder` records them.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from ...client import ConnectionFailed, EndBounds, ServerProcess, spawn
from ...client.task_group import background_tasks
from ...daemon.lifecycle import EXIT_FAILED
from ...daemon.settings import UsageError
from ...framing.stdio_guard import STDERR, STDIN, STDOUT
from ...framing.transports.interface import StdoutClosed, is_open, require_output
from ...framing.transports.stdio import StdioTransport
from ...recording.format import ForeignFile, create_file, create_new_file
from ...recording.proxy import ClientStreams, forward_stderr, reader_is_gone, relay, terminate
from ...recording.recorder import Recorder, RecordingOptions, TailStyle
from ..exit_status import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, SIGNAL_BASE
from ..output import has_colour, write_stderr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, what is recorded, and the server's command line after `--`."""
    parser.set_defaults(command=())
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to record (default: a new recording-….jsonl here)"
    )
    parser.add_argument(
        "--framing",
        choices=("content-length", "newline", "auto"),
        default="content-length",
        help="how messages are delimited; bytes are passed through in any case (default: content-length)",
    )
    parser.add_argument("--stderr", action="store_true", help="record the server's stderr, too")
    parser.add_argument(
        "--tail", action="store_true", help="print the session on stderr as it goes, as discreet show does"
    )
    parser.add_argument(
        "--hide-paths",
        action="store_true",
        help="hide directories and account names in messages; messages that had some may not replay",
    )


def run(args: argparse.Namespace) -> int:
    """Run the server and pass everything through. Returns the server's exit status, or a shell's for one that can't be run.

    Raises `UsageError`, before anything is started, for a missing command and for a file that can't be written.
    """
    command: list[str] = list(args.command)
    if not command:
        raise UsageError("the server's command line goes after `--`: discreet record -- discreet serve")
    path = time.strftime(f"recording-%Y%m%d-%H%M%S-{os.getpid()}.jsonl") if args.output is None else args.output
    _open_closed_descriptors()
    is_new = not os.path.lexists(path)
    try:
        require_output(STDOUT)
        file = create_new_file(path) if args.output is None else create_file(path)
    except StdoutClosed as exc:
        raise UsageError(str(exc)) from exc
    except ForeignFile as exc:
        raise UsageError(f"--output: {path}: it belongs to another user, and not only that one may use it") from exc
    except OSError as exc:
        raise UsageError(f"--output: {path}: {os.strerror(exc.errno or 0)}") from exc
    if args.output is None:
        write_stderr(f"recording to {path}")
    tail = TailStyle(has_colour("stderr"), getattr(sys.stderr, "encoding", "utf-8")) if args.tail else None
    words = tuple(word.encode(errors="backslashreplace").decode() for word in command)  # a name may be no UTF-8

    def start(group: int) -> Recorder:
        """Empty the file and start the recorder, once the server runs: a failed start loses no old recording."""
        with suppress(OSError):  # of a pipe or a device
            os.ftruncate(file, 0)
        return Recorder(file, RecordingOptions(words, args.framing, args.hide_paths, tail, group))

    try:
        status, recorder = anyio.run(_run_session, command, start, bool(args.stderr))
    except ConnectionFailed as exc:
        write_stderr(str(exc))
        os.close(file)
        if is_new:
            os.unlink(path)
        return EXIT_NOT_FOUND if isinstance(exc.__cause__, FileNotFoundError) else EXIT_CANNOT_RUN
    recorder.finish(status)
    if recorder.problem is not None:
        write_stderr(recorder.problem)
    if status is None:
        return EXIT_FAILED
    return status if status >= 0 else SIGNAL_BASE - status


_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_END_BOUNDS: Final = EndBounds()


async def _run_session(
    command: list[str], start_recording: Callable[[int], Recorder], with_stderr: bool
) -> tuple[int | None, Recorder]:
    """Run the server until the session ends. Returns its exit status and the recorder, which is not finished yet.

    The status is None if the server outlived even SIGKILL. `start_recording` is called with the server's process group, once it
    runs. Raises `ConnectionFailed` for a server that can't be started.
    """
    stderr_drained = anyio.Event()
    async with background_tasks() as outer, AsyncExitStack() as stack:
        client = stack.enter_context(_private_client_streams())
        signals = stack.enter_context(_received_signals())
        async with AsyncExitStack() as running:
            with _piped_stderr(with_stderr) as stderr:
                server = await running.enter_async_context(spawn(command))
            recorder = start_recording(server.pid)
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


def _open_closed_descriptors() -> None:
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
