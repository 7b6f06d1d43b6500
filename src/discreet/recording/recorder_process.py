"""The process that records: reads packets from stdin and writes the recording to stdout.

It is a separate process because the search for secrets in a large text keeps an interpreter busy, which must not delay the
session. It reports nothing but its exit status, because an error text might hold a secret. Where the session is
to be watched, `view.tail` prints the scrubbed entries to stderr, and nothing else does.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import IO, Final

import msgspec

from ..errors.redaction import load_environment
from ..framing.parser import FramingChoice
from .builder import RecordingBuilder
from .format import Entry, RecordingWriter, Sender

STDOUT: Final = 1
STDERR: Final = 2


class TailStyle(msgspec.Struct, frozen=True):
    """How the session is printed while it goes on. Characters that the encoding lacks are escaped."""

    colour: bool
    encoding: str


UNWRITABLE: Final = 100
"""The exit status for a recording that can't be written is this plus the system's error number."""

NICENESS: Final = 10
"""On a busy machine the session has priority."""


class PacketKind(IntEnum):
    """What a packet holds. `size` bytes of data follow its head, except for `SKIPPED_…`."""

    BEGIN = 0
    CLIENT = 1
    SERVER = 2
    STDERR = 3
    SKIPPED_CLIENT = 4
    SKIPPED_SERVER = 5
    END = 6


class RecordingOptions(msgspec.Struct, frozen=True):
    """The data of `BEGIN`: what is recorded, and how."""

    command: tuple[str, ...]
    framing: FramingChoice
    hide_paths: bool
    tail: TailStyle | None = None


class Packet(msgspec.Struct, frozen=True):
    """One event of a session, `ms` after its start. `size` is the length of `data`, or of the bytes that were skipped."""

    kind: PacketKind
    ms: float
    size: int
    rested: bool
    data: bytes = b""


_HEAD: Final = struct.Struct("<BdQ?")
_SENDERS: Final[Mapping[PacketKind, Sender]] = {
    PacketKind.CLIENT: "client",
    PacketKind.SERVER: "server",
    PacketKind.SKIPPED_CLIENT: "client",
    PacketKind.SKIPPED_SERVER: "server",
}
_SKIPPED: Final = (PacketKind.SKIPPED_CLIENT, PacketKind.SKIPPED_SERVER)


def encode_packet(
    kind: PacketKind, ms: float, data: bytes = b"", *, size: int | None = None, rested: bool = False
) -> bytes:
    """A packet as `read_packet` reads it."""
    return _HEAD.pack(kind, ms, len(data) if size is None else size, rested) + data


def read_packet(stream: IO[bytes]) -> Packet | None:
    """The next packet; None at the end of the stream, also within a packet."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    number, ms, size, rested = _HEAD.unpack(head)
    kind = PacketKind(number)
    data = b"" if kind in _SKIPPED else stream.read(size)
    return Packet(kind, ms, size, rested, data) if kind in _SKIPPED or len(data) == size else None


def record(stream: IO[bytes], writer: RecordingWriter, tail_fd: int = STDERR) -> None:
    """Write a recording of all packets. Without an `END` packet the recording has no end entry. Raises `OSError`.

    If the first packet asks for it, each entry is printed to `tail_fd` as well, once it is written.
    """
    begin = read_packet(stream)
    if begin is None:
        return
    options = msgspec.msgpack.decode(begin.data, type=RecordingOptions)
    if options.tail is None:
        _record(stream, options, writer.write)
        return
    from .view.tail import Tail  # late: few recordings are watched

    tail = Tail(tail_fd, colour=options.tail.colour, encoding=options.tail.encoding)

    def write(entry: Entry) -> None:
        writer.write(entry)
        tail.show(entry)

    try:
        _record(stream, options, write)
    finally:
        tail.close()


def _record(stream: IO[bytes], options: RecordingOptions, write: Callable[[Entry], None]) -> None:
    builder = RecordingBuilder(write, command=options.command, framing=options.framing, hide_paths=options.hide_paths)
    while (packet := read_packet(stream)) is not None:
        match packet.kind:
            case PacketKind.CLIENT | PacketKind.SERVER:
                builder.feed(_SENDERS[packet.kind], packet.ms, packet.data, rested=packet.rested)
            case PacketKind.STDERR:
                builder.feed_stderr(packet.ms, packet.data)
            case PacketKind.SKIPPED_CLIENT | PacketKind.SKIPPED_SERVER:
                builder.skip(_SENDERS[packet.kind], packet.ms, packet.size)
            case PacketKind.END:
                builder.end(packet.ms, msgspec.msgpack.decode(packet.data, type=int | None))
            case _:
                return


def main() -> int:
    """Record from stdin to stdout and return the exit status."""
    if sys.platform != "win32":
        os.nice(NICENESS)
    load_environment(os.environ)
    try:
        record(sys.stdin.buffer, RecordingWriter(STDOUT), _private_stderr())
    except OSError as exc:
        return UNWRITABLE + (exc.errno or 0)
    return 0


def _private_stderr() -> int:
    """Move stderr to another descriptor, where no traceback and no warning goes."""
    fd = os.dup(STDERR)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, STDERR)
    os.close(null)
    return fd


if __name__ == "__main__":
    sys.exit(main())
