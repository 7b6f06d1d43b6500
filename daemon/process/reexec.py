"""Replaces the program in this process by a new start of it, which goes on where this one stopped. POSIX only.

The process keeps its number, and the real stdin, stdout and stderr stay open, so that client and parent notice nothing.
An environment variable names a descriptor from which the new program reads their numbers and the state of the
connection. The descriptors keep their private numbers until the new program takes them: until then no print can reach the
stream, and a failure to start it changes nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Final, Literal, NoReturn

import msgspec

VARIABLE: Final = "_DISCREET_HANDOVER"
"""The number of the descriptor that holds the `Handover`, or `CHECK`."""

CHECK: Final = "check"
"""The program is only to say whether it could serve."""


class ConnectionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a connection leaves to the next one over the same transport."""

    received: bytes = b""
    unsent: bytes = b""
    framing: Literal["content-length", "newline"] | None = None
    watched: tuple[int, ...] = ()
    asked: int = 0
    dialect: str | None = None
    session: bytes = b""


NEW_CONNECTION: Final = ConnectionState()
"""The state of a connection that nothing came before."""


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """The state that one program leaves to the next: descriptors, the parent's number, the log level in force, the connection."""

    stdin: int
    stdout: int
    stderr: int
    parent: int | None
    log_level: Literal["debug", "info", "warn", "error"]
    connection: ConnectionState


class Program(msgspec.Struct, frozen=True):
    """How this process was started. What user code does to its surroundings later is not handed on."""

    command: tuple[str, ...]
    environ: dict[str, str]
    directory: str


def program() -> Program:
    """This process's own start, but for the working directory on the module path. To be asked for before user code runs."""
    return Program((sys.executable, "-P", *sys.orig_argv[1:]), dict(os.environ), os.getcwd())


def take() -> Handover | Literal["check"] | None:
    """Take the state that the previous program left, and make 0, 1 and 2 the real descriptors again; None on a first start.

    To be called before anything else: the variable is removed, so that no child takes it for its own.
    """
    text = os.environ.pop(VARIABLE, "")
    if text == CHECK:
        return CHECK
    if not text.isdecimal():
        return None
    with open(int(text), "rb") as file:
        handover = msgspec.msgpack.decode(file.read(), type=Handover)
    for number, private in enumerate((handover.stdin, handover.stdout, handover.stderr)):
        os.dup2(private, number)
        os.close(private)
    return handover


def become(new: Program, handover: Handover) -> NoReturn:
    """Start `new` in the place of this program. Nothing of this one runs any more, no exit handler either.

    Raises `OSError` if that can't be done; nothing is changed then but the working directory.
    """
    from .signals import hold  # late, as the whole: only a reload comes here

    os.chdir(new.directory)
    stored = _stored(msgspec.msgpack.encode(handover))
    for fd in (stored, handover.stdin, handover.stdout, handover.stderr):
        os.set_inheritable(fd, True)
    hold()
    os.execve(new.command[0], new.command, {**new.environ, VARIABLE: str(stored)})


def _stored(data: bytes) -> int:
    """A descriptor from which `data` can be read, of a file without a name: a pipe would not hold it."""
    if sys.platform == "linux":
        fd = os.memfd_create("discreet-handover")
    else:
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as writer:
        writer.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
