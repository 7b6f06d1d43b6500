"""A recorded session: one JSON text per line, what was said by whom and when. Knows no streams and no processes.

The first line is `Start`, the last one `Ended`; a recording whose last line is another was cut off, and is as good up to
there. Everything in it is scrubbed before it gets here. docs/recording.md describes the file for people.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Raw

from ..framing.parser import FramingChoice

VERSION: Final = 1
"""Of the format. A reader takes this one only; members that it does not know are ignored."""

Sender: TypeAlias = Literal["client", "server"]

StrPath: TypeAlias = "str | os.PathLike[str]"

_PRIVATE: Final = 0o600
"""What a session holds is the owner's: scrubbing finds secrets, and knows nothing of confidential prose."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", omit_defaults=True):
    """`ms` are milliseconds since the start of the session."""

    ms: float


class Start(_Line, frozen=True, kw_only=True, tag="start"):
    """How the session began. `command` is scrubbed as logs are."""

    version: int
    framing: FramingChoice
    command: tuple[str, ...]


class Said(_Line, frozen=True, kw_only=True, tag="message"):
    """One message. `scrubbed` maps places in it to the numbers of the secrets that were there, 0 for no number."""

    sender: Sender = msgspec.field(name="from")
    message: Raw
    scrubbed: dict[str, int] = msgspec.field(default_factory=dict)


class Lost(_Line, frozen=True, kw_only=True, tag="lost"):
    """Bytes that are no message; nothing of them is kept but how many they were."""

    sender: Sender = msgspec.field(name="from")
    reason: str
    size: int = msgspec.field(name="bytes")


class Closed(_Line, frozen=True, kw_only=True, tag="closed"):
    """One side ended its stream."""

    sender: Sender = msgspec.field(name="from")


class Noted(_Line, frozen=True, kw_only=True, tag="stderr"):
    """A line that the server wrote to stderr, scrubbed as logs are."""

    text: str


class Ended(_Line, frozen=True, kw_only=True, tag="end"):
    """The server's exit status; negative, the signal that ended it; None when it was not seen to end."""

    status: int | None


Line: TypeAlias = Start | Said | Lost | Closed | Noted | Ended


class Recording(msgspec.Struct, frozen=True):
    """What a file holds: its start, and the lines behind it."""

    start: Start
    lines: tuple[Line, ...]

    @property
    def ended(self) -> Ended | None:
        """The last line, unless the recording was cut off."""
        last = self.lines[-1] if self.lines else None
        return last if isinstance(last, Ended) else None


@final
class RecordingError(ValueError):
    """A file is no recording, or one of another version. The message names the file and the line."""


def create_file(path: StrPath) -> int:
    """A descriptor to write a recording to. A file that is there is left as it is, a new one is its owner's only.

    Raises `OSError`.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), _PRIVATE)


@final
class RecordingWriter:
    """Writes lines to a descriptor, each at once and whole. Raises `OSError`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, line: Line) -> None:
        rest = memoryview(_encode(line) + b"\n")
        while rest:
            rest = rest[os.write(self._fd, rest) :]


def read_recording(path: StrPath) -> Recording:
    """Read a file. A last line without its end was cut off and is left out. Raises `OSError`, `RecordingError`."""
    with open(path, "rb") as file:
        data = file.read()
    lines = _lines(data, os.fspath(path))
    start = next(lines, None)
    if not isinstance(start, Start):
        raise RecordingError(f"{os.fspath(path)}: no recording: it does not begin with its start")
    rest = tuple(lines)
    for number, line in enumerate(rest, 2):
        if isinstance(line, Start):
            raise RecordingError(f"{os.fspath(path)}:{number}: another recording begins: one file holds one")
    return Recording(start, rest)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class _Version(msgspec.Struct):
    version: int = VERSION


def _lines(data: bytes, name: str) -> Iterator[Line]:
    whole, _, _ = data.rpartition(b"\n")
    for number, text in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            if number == 1 and (version := msgspec.json.decode(text, type=_Version).version) != VERSION:
                raise RecordingError(f"{name}: version {version} of the format, not {VERSION}")
            text.decode()  # which a message within is not asked for
            line = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise RecordingError(f"{name}:{number}: no line of a recording: {exc}") from exc
        yield line
