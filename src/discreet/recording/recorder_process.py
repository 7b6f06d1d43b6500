"""The process that records: what a session's relay heard comes in on stdin, the lines of the recording go out on stdout.

A process of its own, because looking for secrets in a large text keeps a whole interpreter busy, and those who talk must
not feel that. It says nothing but its exit status, for what it could say may hold what it was to hide.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import IO, Final

import msgspec

from ..errors.redaction import load_environment
from ..framing.parser import FramingChoice
from .format import RecordingWriter, Sender
from .transcript import Transcript

STDOUT: Final = 1

UNWRITABLE: Final = 100
"""The exit status of a recording that can't be written: this and the number of the system's error."""

NICENESS: Final = 10
"""On a busy machine the session comes first."""


class Kind(IntEnum):
    """What a note is about; the value of `size` follows, and so many bytes but for `SKIPPED_…`."""

    BEGIN = 0
    CLIENT = 1
    SERVER = 2
    STDERR = 3
    SKIPPED_CLIENT = 4
    SKIPPED_SERVER = 5
    END = 6


class Begin(msgspec.Struct, frozen=True):
    """What is recorded, and how."""

    command: tuple[str, ...]
    framing: FramingChoice
    hide_paths: bool


class Note(msgspec.Struct, frozen=True):
    """One thing that was heard, `ms` after the start. `size` is that of `data`, or of what was skipped."""

    kind: Kind
    ms: float
    size: int
    rested: bool
    data: bytes = b""


_HEAD: Final = struct.Struct("<BdQ?")
_SENDERS: Final[Mapping[Kind, Sender]] = {
    Kind.CLIENT: "client",
    Kind.SERVER: "server",
    Kind.SKIPPED_CLIENT: "client",
    Kind.SKIPPED_SERVER: "server",
}
_SKIPPED: Final = (Kind.SKIPPED_CLIENT, Kind.SKIPPED_SERVER)


def encode(kind: Kind, ms: float, data: bytes = b"", *, size: int | None = None, rested: bool = False) -> bytes:
    """A note as `read` takes it."""
    return _HEAD.pack(kind, ms, len(data) if size is None else size, rested) + data


def read(stream: IO[bytes]) -> Note | None:
    """The next note; None at the end, also within one."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    number, ms, size, rested = _HEAD.unpack(head)
    kind = Kind(number)
    data = b"" if kind in _SKIPPED else stream.read(size)
    return Note(kind, ms, size, rested, data) if kind in _SKIPPED or len(data) == size else None


def record(stream: IO[bytes], writer: RecordingWriter) -> None:
    """Write a recording of all notes. One that has no last note was cut off, and so is its recording. Raises `OSError`."""
    begin = read(stream)
    if begin is None:
        return
    told = msgspec.msgpack.decode(begin.data, type=Begin)
    transcript = Transcript(writer.write, command=told.command, framing=told.framing, hide_paths=told.hide_paths)
    while (note := read(stream)) is not None:
        match note.kind:
            case Kind.CLIENT | Kind.SERVER:
                transcript.take(_SENDERS[note.kind], note.ms, note.data, rested=note.rested)
            case Kind.STDERR:
                transcript.take_stderr(note.ms, note.data)
            case Kind.SKIPPED_CLIENT | Kind.SKIPPED_SERVER:
                transcript.skipped(_SENDERS[note.kind], note.ms, note.size)
            case Kind.END:
                transcript.end(note.ms, msgspec.msgpack.decode(note.data, type=int | None))
            case _:
                return


def main() -> int:
    """Record from stdin to stdout; the exit status."""
    if sys.platform != "win32":
        os.nice(NICENESS)
    load_environment(os.environ)
    try:
        record(sys.stdin.buffer, RecordingWriter(STDOUT))
    except OSError as exc:
        return UNWRITABLE + (exc.errno or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
