"""`discreet record`: runs a server, passes everything through, and writes a scrubbed recording of the session.

Owns this process's standard descriptors and signals. `recording.relay` passes the bytes on, `recording.recorder` records them.
"""

import argparse
import os
import sys
import time
from contextlib import suppress

from ...daemon.lifecycle import EXIT_FAILED
from ...daemon.settings import UsageError
from ...framing.stdio_guard import STDERR, STDIN, STDOUT
from ...framing.transports.interface import StdoutClosed, is_open, require_output
from ...recording.format import ForeignFile, create_file
from ...recording.lines import Tail
from ...recording.recorder import Recorder
from ...recording.relay import Relay
from ..exit_status import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, SIGNAL_BASE
from ..output import has_colour, write_stderr

_SWITCH_SECONDS = 0.0005
"""How long the recording may keep the interpreter while bytes wait to be passed on."""


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
    file = _create(path, new=args.output is None)
    if args.output is None:
        write_stderr(f"recording to {path}")
    try:
        relay = Relay(command, pipe_stderr=args.stderr)
    except OSError as exc:
        place = "" if exc.filename in (None, command[0]) else f": {exc.filename}"
        write_stderr(f"can't run {command[0]}: {exc.strerror}{place}")
        if is_new:
            os.unlink(path)
        return EXIT_NOT_FOUND if isinstance(exc, FileNotFoundError) else EXIT_CANNOT_RUN
    with suppress(OSError):  # of a pipe or a device
        os.ftruncate(file, 0)  # not before: a failed start loses no old recording
    sys.setswitchinterval(_SWITCH_SECONDS)
    recorder = Recorder(
        file,
        command=[word.encode(errors="backslashreplace").decode() for word in command],  # a name may be no UTF-8
        framing=args.framing,
        hide_paths=args.hide_paths,
        tail=_tail() if args.tail else None,
    )
    status = relay.run(recorder.observe)
    if (problem := recorder.finish(status)) is not None:
        write_stderr(problem)
    if status is None:
        return EXIT_FAILED
    return status if status >= 0 else SIGNAL_BASE - status


def _create(path: str, *, new: bool) -> int:
    try:
        require_output(STDOUT)
        return create_file(path, new=new)
    except StdoutClosed as exc:
        raise UsageError(str(exc)) from exc
    except ForeignFile as exc:
        raise UsageError(f"--output: {path}: it belongs to another user, and not only that one may use it") from exc
    except OSError as exc:
        raise UsageError(f"--output: {path}: {os.strerror(exc.errno or 0)}") from exc


def _tail() -> Tail:
    return Tail(os.dup(STDERR), colour=has_colour("stderr"), encoding=getattr(sys.stderr, "encoding", "utf-8"))


def _open_closed_descriptors() -> None:
    """Open the null device in place of a closed standard descriptor, so that no other file gets its number."""
    for number in (STDIN, STDOUT, STDERR):
        if not is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one
