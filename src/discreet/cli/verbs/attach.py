"""`discreet attach`: talks to the debugger of a daemon that was started with `--debug`. Sends lines, and prints what comes."""

import argparse
import codecs
import re
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...debugger.sockets import SocketUnusable, connect, listening
from ..output import require_stdout, write_stderr

READ_BYTES: Final = 65_536

PROMPT: Final = re.compile(r"(\(+\w+\)+|\.\.\.) *")
"""A line that the debugger has not ended: `(Pdb) `, `((Pdb)) `, `(com) `, or what asks for the rest of a statement."""


def run(args: argparse.Namespace) -> int:
    """Talk until either side ends it. Raises `UsageError` where there is no such daemon."""
    require_stdout()
    if sys.stdin is None:
        raise UsageError("stdin is closed: there is nowhere to read commands from")
    try:
        pid, connection = _connected(args.pid)
    except SocketUnusable as exc:
        raise UsageError(str(exc)) from None
    write_stderr(f"attached to {pid}: it stops at the next breakpoint(); c goes on, q leaves")
    with connection:
        _talk(connection)
    return EXIT_OK


def _connected(pid: int | None) -> tuple[int, socket.socket]:
    """The daemon of this number, or the only one."""
    found: list[tuple[int, socket.socket]] = []
    for each in listening() if pid is None else [pid]:
        with suppress(OSError):  # it has died, or there has never been one
            found.append((each, connect(each)))
    if len(found) == 1:
        return found[0]
    for _, connection in found:
        connection.close()
    if found:
        raise UsageError(f"there are several daemons with --debug: {', '.join(str(each) for each, _ in found)}")
    raise UsageError("there is no daemon with --debug" if pid is None else f"{pid} is no daemon of yours with --debug")


def _talk(connection: socket.socket) -> None:
    with suppress(ImportError):
        import_module("readline")  # gives `input` a history, where there is one
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    unended = ""
    with suppress(ConnectionError):  # the daemon has ended
        while data := connection.recv(READ_BYTES):
            lines, end, unended = (unended + decode(data)).rpartition("\n")
            sys.stdout.write(lines + end)
            sys.stdout.flush()
            if PROMPT.fullmatch(unended):
                try:
                    line = input(unended)
                except EOFError:
                    sys.stdout.write("\n")
                    return
                connection.sendall(f"{line}\n".encode("utf-8", "backslashreplace"))
                unended = ""
    sys.stdout.write(f"{unended}\n" if unended else "")
