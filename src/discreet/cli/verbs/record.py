"""`discreet record`: stands between a client and a server, passes every byte on, and writes a scrubbed recording.

Owns this process's descriptors and signals; `recording.proxy` passes the bytes, `recording.recorder` writes them down.
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
from ...framing.parser import FramingChoice
from ...framing.transports.descriptors import StdoutClosed, is_open, require_output
from ...framing.transports.stdio import StdioTransport
from ...recording.format import create_file
from ...recording.orphan_guard import orphan_guard
from ...recording.proxy import ClientStreams, forward_stderr, reader_is_gone, relay, terminate
from ...recording.recorder import Recorder
from ..output import complain

EXIT_CANNOT_RUN: Final = 126
EXIT_NOT_FOUND: Final = 127
SIGNAL_BASE: Final = 128
"""As shells have it: a command that can't be run, one that is not there, and one that a signal ended."""

_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_BOUNDS: Final = EndBounds()
_STDIN, _STDOUT, _STDERR = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, how to read along, and the server behind `--`."""
    parser.set_defaults(command=())
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to record (default: a new recording-….jsonl here)"
    )
    parser.add_argument(
        "--framing",
        choices=("content-length", "newline", "auto"),
        default="content-length",
        help="how messages are told apart; bytes pass whatever they are (default: content-length)",
    )
    parser.add_argument("--stderr", action="store_true", help="record the server's stderr, too")
    parser.add_argument(
        "--hide-paths",
        action="store_true",
        help="hide directories and account names in messages; those that had some may not replay",
    )


def run(args: argparse.Namespace) -> int:
    """Run the server and pass everything through. Returns its exit status, or what a shell says of one that can't be run.

    Raises `UsageError` for a missing command and a file that can't be written; then nothing was started.
    """
    command: list[str] = list(args.command)
    if not command:
        raise UsageError("what is to be recorded stands behind `--`: discreet record -- discreet serve")
    path = args.output if args.output is not None else time.strftime(f"recording-%Y%m%d-%H%M%S-{os.getpid()}.jsonl")
    _fill_gaps()
    is_new = not os.path.lexists(path)
    try:
        require_output(_STDOUT)
        file = create_file(path)
    except StdoutClosed as exc:
        raise UsageError(str(exc)) from exc
    except OSError as exc:
        raise UsageError(f"--output: {path}: {os.strerror(exc.errno or 0)}") from exc
    if args.output is None:
        complain(f"recording to {path}")
    begin = partial(_begin, file, command=command, framing=args.framing, hide_paths=args.hide_paths)
    try:
        status, recorder = anyio.run(_session, command, begin, bool(args.stderr))
    except ConnectionFailed as exc:
        complain(str(exc))
        os.close(file)
        if is_new:
            os.unlink(path)
        return EXIT_NOT_FOUND if isinstance(exc.__cause__, FileNotFoundError) else EXIT_CANNOT_RUN
    recorder.finish(status)
    if recorder.problem is not None:
        complain(recorder.problem)
    if status is None:
        return EXIT_FAILED
    return status if status >= 0 else SIGNAL_BASE - status


def _begin(file: int, *, command: list[str], framing: FramingChoice, hide_paths: bool) -> Recorder:
    """The server runs: what the file held before is replaced now, and not earlier."""
    with suppress(OSError):  # of a pipe or a device
        os.ftruncate(file, 0)
    return Recorder(file, command=command, framing=framing, hide_paths=hide_paths)


async def _session(command: list[str], begin: Callable[[], Recorder], stderr_too: bool) -> tuple[int | None, Recorder]:
    """The server's exit status, None for one that outlasted even SIGKILL, and whoever records."""
    drained = anyio.Event()
    async with background_tasks() as outer, AsyncExitStack() as stack:
        client = stack.enter_context(_client_ends())
        signals = stack.enter_context(_signals())
        async with AsyncExitStack() as running:
            guard_group = running.enter_context(orphan_guard())
            with _stderr_tapped(stderr_too) as stderr:
                server = await running.enter_async_context(spawn(command))
            guard_group(server.pid)
            recorder = begin()
            if stderr is None:
                drained.set()
            else:
                outer.start_soon(_pass_stderr, stderr, server, recorder, drained)
            tasks = await running.enter_async_context(background_tasks())
            tasks.start_soon(_forward_signals, signals, server, tasks)
            await relay(client, server, recorder.observe)
            server.close()
        await drained.wait()
    return server.returncode, recorder


@contextmanager
def _client_ends() -> Iterator[ClientStreams]:
    """The streams to the client under private numbers. What is printed here by mistake goes to stderr."""
    stdin, stdout = os.dup(_STDIN), os.dup(_STDOUT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, _STDIN)
    os.close(null)
    os.dup2(_STDERR, _STDOUT)
    incoming, outgoing = _reader(stdin), _writer(stdout)
    try:
        yield ClientStreams(incoming, outgoing, hung_up=partial(reader_is_gone, stdout))
    finally:
        incoming.close()
        outgoing.close()


@contextmanager
def _stderr_tapped(wanted: bool) -> Iterator[int | None]:
    """While entered, children inherit a pipe as their stderr; its reading end, or None where it is not wanted."""
    if not wanted:
        yield None
        return
    reading, writing = os.pipe()
    kept = os.dup(_STDERR)
    os.dup2(writing, _STDERR)
    os.close(writing)
    try:
        yield reading
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


async def _pass_stderr(fd: int, server: ServerProcess, recorder: Recorder, drained: anyio.Event) -> None:
    source, sink = _reader(fd), _writer(os.dup(_STDERR))
    try:
        await forward_stderr(source, sink, server, recorder.observe)
    finally:
        source.close()
        sink.close()
        drained.set()


@contextmanager
def _signals() -> Iterator[AsyncIterable[signal.Signals] | None]:
    """Those that would end this process, but for those that were ignored when it started; they stay so for the server."""
    if sys.platform == "win32":
        yield None
        return
    numbers = [getattr(signal, name) for name in _FORWARDED]
    with anyio.open_signal_receiver(*(n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN)) as signals:
        yield signals


async def _forward_signals(
    signals: AsyncIterable[signal.Signals] | None, server: ServerProcess, tasks: TaskGroup
) -> None:
    """Hand them to the server, whose end they are or are not; this process ends with it. SIGTERM is its end, in bounded time."""
    if signals is None:
        return
    async for number in signals:
        if server.returncode is None:
            os.kill(server.pid, number)
        if number == signal.SIGTERM:
            tasks.start_soon(_end_soon, server)


async def _end_soon(server: ServerProcess) -> None:
    await anyio.sleep(_BOUNDS.eof)
    await terminate(server, _BOUNDS)


def _reader(fd: int) -> StdioTransport:
    return StdioTransport(fd, os.open(os.devnull, os.O_WRONLY))


def _writer(fd: int) -> StdioTransport:
    return StdioTransport(os.open(os.devnull, os.O_RDONLY), fd)


def _fill_gaps() -> None:
    """Open the null device where a standard descriptor is closed, so that nothing else gets its number."""
    for number in (_STDIN, _STDOUT, _STDERR):
        if not is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one
