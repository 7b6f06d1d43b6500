"""The file format of a recorded session: one JSON object per line. Knows no streams and no processes.

The first entry is `StartEntry`, the last one `EndEntry`. A recording without `EndEntry` was cut off and is valid up to there.
Everything in it is already scrubbed. docs/recording.md describes the file for users.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from typing import Annotated, Final, Literal, NoReturn, TypeAlias, cast, final

import msgspec
from msgspec import Meta, Raw

from ..errors.decoders import decoder_for
from ..framing.parser import FramingChoice

VERSION: Final = 1
"""The version of the format. Other versions are refused; unknown members are ignored."""

Sender: TypeAlias = Literal["client", "server"]

StreamName: TypeAlias = Literal["client", "server", "stderr"]
"""The streams of a session: the client's output, the server's output, the server's stderr."""

MAX_RECORDING_BYTES: Final = 256 * 1024 * 1024
"""The largest file that is read. All of it is in memory during a replay."""

StrPath: TypeAlias = "str | os.PathLike[str]"

_OWNER_ONLY: Final = 0o600
"""The mode of a new file. Scrubbing finds secrets, but a session may hold other confidential text."""

_OTHERS: Final = 0o077
"""Every permission of users other than the owner."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """`ms` is in milliseconds since the start of the session."""

    ms: Annotated[float, Meta(ge=0)]


class StartEntry(_Entry, frozen=True, kw_only=True, tag="start"):
    """How the session began. `command` is scrubbed like logs."""

    version: int
    framing: FramingChoice
    command: tuple[str, ...]


class MessageEntry(_Entry, frozen=True, kw_only=True, tag="message"):
    """One message. `scrubbed` maps paths in it to the number of the secret that was there, 0 for no number."""

    sender: Sender = msgspec.field(name="from")
    message: Raw
    scrubbed: dict[str, Annotated[int, Meta(ge=0)]] = msgspec.field(default_factory=dict)


class OmittedEntry(_Entry, frozen=True, kw_only=True, tag="omitted"):
    """Bytes that are not in the recording, most often because they are no message. Only their number is known."""

    sender: Sender = msgspec.field(name="from")
    reason: str
    size: Annotated[int, Meta(ge=0)] = msgspec.field(name="bytes")


class ClosedEntry(_Entry, frozen=True, kw_only=True, tag="closed"):
    """One side ended its stream."""

    sender: Sender = msgspec.field(name="from")


class StderrEntry(_Entry, frozen=True, kw_only=True, tag="stderr"):
    """A line of the server's stderr, scrubbed like logs."""

    text: str


class EndEntry(_Entry, frozen=True, kw_only=True, tag="end"):
    """The server's exit status; a negative one is the number of the signal that ended it; None if it did not end."""

    status: int | None


Entry: TypeAlias = StartEntry | MessageEntry | OmittedEntry | ClosedEntry | StderrEntry | EndEntry


class Recording(msgspec.Struct, frozen=True):
    """The content of a file: its start, and the entries after it. `name` is the file's."""

    start: StartEntry
    entries: tuple[Entry, ...]
    name: str = "the recording"

    @property
    def end(self) -> EndEntry | None:
        """The last entry; None if the recording was cut off."""
        last = self.entries[-1] if self.entries else None
        return last if isinstance(last, EndEntry) else None


@final
class RecordingError(ValueError):
    """A file can't be read, is no recording, or has another version. The message names the file and the line."""


@final
class ForeignFile(OSError):
    """The file belongs to another user, and not only that one may use it."""


def create_file(path: StrPath, *, new: bool = False) -> int:
    """Open a file for a recording, and return its descriptor. Only the owner can use the file, also if others could before.

    A file that a user named may exist, and be a symbolic link; its content stays. With `new` it must not exist yet, not even as
    a link that another user left there. Raises `OSError`; `ForeignFile` for another user's file that more than its owner may use.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0) | getattr(os, "O_BINARY", 0)
    fd = os.open(path, flags, _OWNER_ONLY)
    try:
        _make_private(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def _make_private(fd: int) -> None:
    """Take every permission of other users away from a file. A pipe or a device keeps its own."""
    if sys.platform == "win32":
        return
    status = os.fstat(fd)
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode) or not mode & _OTHERS:
        return
    if status.st_uid != os.geteuid():
        raise ForeignFile
    os.fchmod(fd, mode & ~_OTHERS)


def write_entry(fd: int, entry: Entry) -> None:
    """Write an entry to a descriptor at once and completely. Raises `OSError`."""
    rest = memoryview(_encode(entry) + b"\n")
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_recording(path: StrPath) -> Recording:
    """Read a file into memory. An incomplete last line is left out. Raises `RecordingError`."""
    name = str(os.fspath(path))
    entries = read_entries(path, whole=True)
    start = next(entries)
    assert isinstance(start, StartEntry)  # see read_entries
    return Recording(start, tuple(entries), name)


def read_entries(path: StrPath, *, whole: bool = False) -> Iterator[Entry]:
    """Read a file line by line: first its `StartEntry`. An incomplete last line is left out.

    Raises `RecordingError` where the fault is, so that what is before it has been read. With `whole`,
    `MAX_RECORDING_BYTES` bounds the file; without it, each line.
    """
    name = str(os.fspath(path))
    no_start = f"{name}: not a recording: the first line is no start entry"
    size, number, ended = 0, 0, False
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as exc:
        raise RecordingError(f"{name}: {os.strerror(exc.errno or 0)}") from exc
    with file:
        while (line := file.readline(MAX_RECORDING_BYTES + 1)).endswith(b"\n") or len(line) > MAX_RECORDING_BYTES:
            size += len(line)
            if max(len(line), size if whole else 0) > MAX_RECORDING_BYTES:
                raise RecordingError(f"{name}: larger than {MAX_RECORDING_BYTES} bytes, the largest that is read")
            number += 1
            entry = _read_entry(line, name, number)
            if isinstance(entry, StartEntry) != (number == 1):
                second = f"{name}:{number}: a second start entry: a file holds one recording"
                raise RecordingError(no_start if number == 1 else second)
            if ended:
                raise RecordingError(f"{name}:{number}: an entry after the end entry")
            ended = isinstance(entry, EndEntry)
            yield entry
    if number == 0:
        raise RecordingError(no_start)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class _Version(msgspec.Struct):
    version: int = VERSION


def _read_entry(line: bytes, name: str, number: int) -> Entry:
    try:
        if number == 1 and (version := decoder_for(_Version)(line).version) != VERSION:
            raise RecordingError(f"{name}: the format's version is {version}, but only {VERSION} is supported")
        line.decode()  # msgspec does not check the encoding within `Raw`
        return cast(Entry, _decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RecordingError(f"{name}:{number}: not a line of a recording: {exc}") from exc


# JSON values without loss: numbers keep every digit. Text that is no UTF-8 or no JSON is refused, `NaN` included.

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | Raw | None"
"""A number is kept as its text, in a `Raw`."""

JSON_ERRORS: Final = (ValueError, RecursionError)
"""Exceptions of `load` and `dump`. `UnicodeError`, for text that is no UTF-8 and for lone surrogates, is a `ValueError`."""


def load(text: bytes) -> Json:
    """Read one JSON text. Of equal keys the last wins. Raises one of `JSON_ERRORS`."""
    value: Json = json.loads(text.decode(), parse_int=_number, parse_float=_number, parse_constant=_refuse)
    return value


def dump(value: Json) -> bytes:
    """The shortest text of a value. Raises one of `JSON_ERRORS`."""
    return msgspec.json.encode(value)


def _number(text: str) -> Raw:
    return Raw(text.encode())


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
