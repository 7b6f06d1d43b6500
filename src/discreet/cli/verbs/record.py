"""`discreet record`: runs a server, passes everything through, and writes a scrubbed recording of the session.

Owns the command line, the file and the exit status. `recorded_session` runs the session.
"""

import argparse
import os
import sys
import time
from contextlib import suppress
from functools import partial

import anyio

from ...client import ConnectionFailed
from ...daemon.lifecycle import EXIT_FAILED
from ...daemon.settings import UsageError
from ...framing.parser import FramingChoice
from ...framing.stdio_guard import STDOUT
from ...framing.transports.interface import StdoutClosed, require_output
from ...recording.format import ForeignFile, create_file, create_new_file
from ...recording.recorder import Recorder, TailStyle
from ..exit_status import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, SIGNAL_BASE
from ..output import has_colour, write_stderr
from ..recorded_session import open_closed_descriptors, run_session


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
    open_closed_descriptors()
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
    start = partial(
        _start_recording, file, command=command, framing=args.framing, hide_paths=args.hide_paths, tail=tail
    )
    try:
        status, recorder = anyio.run(run_session, command, start, bool(args.stderr))
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


def _start_recording(
    file: int, *, command: list[str], framing: FramingChoice, hide_paths: bool, tail: TailStyle | None
) -> Recorder:
    """Empty the file and start the recorder. Called only once the server runs, so that a failed start loses no old recording."""
    with suppress(OSError):  # of a pipe or a device
        os.ftruncate(file, 0)
    return Recorder(file, command=command, framing=framing, hide_paths=hide_paths, tail=tail)
