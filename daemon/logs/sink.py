"""Where lines go and in which form: chosen once at the start, written by the writer's thread alone.

Never stdout. Never raises because nobody reads: a descriptor that is gone makes the sink silent.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal, TypeAlias, final

import msgspec

from .levels import Level

Form: TypeAlias = Literal["console", "keyvalue", "json", "journald"]

Kind: TypeAlias = Literal["terminal", "journal", "file", "stream"]

DEFAULTS: Final[dict[Kind, tuple[Form, Level]]] = {
    "terminal": ("console", "info"),
    "journal": ("journald", "info"),
    "file": ("keyvalue", "info"),  # named by the user
    "stream": ("keyvalue", "warn"),  # editors paint every line on a server's stderr as an error
}
"""The form and the level of each kind of sink, where the user names none."""

_PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Faults after which a later line may succeed. After any other the sink is silent for good."""


class LogSettings(msgspec.Struct, frozen=True):
    """What the user asked for. None and `auto` leave the choice to what the sink is and to the environment."""

    level: str | None = None
    format: Literal["auto", "console", "keyvalue", "json", "journald"] = "auto"
    file: str | None = None
    """As `--log-file` or `DISCREET_LOG` says; None or empty: stderr."""
    color: bool | None = None


@final
class Sink:
    """One descriptor of its own. `write` is for one thread at a time and may block as long as nobody reads."""

    def __init__(self, fd: int, *, kind: Kind, name: str) -> None:
        self._fd = fd
        self._torn = False
        self.kind: Kind = kind
        self.name = name
        self.silent = fd < 0

    def write(self, line: bytes) -> bool:
        """Writes a whole line and says whether it did. Never raises `OSError`."""
        rest = memoryview(b"\n" + line if self._torn else line)
        while rest and not self.silent:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                self._wait()
            except OSError as fault:
                self._torn = self._torn or len(rest) < len(line)
                self.silent = fault.errno not in _PASSING
                return False
        self._torn = False
        return not self.silent

    def _wait(self) -> None:
        """Until the reader makes room: whoever shares stderr may have made it non-blocking."""
        import select  # a rare case, so not at start-up

        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        poll.poll()

    def close(self) -> None:
        """Gives the descriptor back; later writes do nothing."""
        fd, self._fd, self.silent = self._fd, -1, True
        if fd >= 0:
            with suppress(OSError):  # gone already: nothing to give back
                os.close(fd)


def open_sink(settings: LogSettings, stderr_fd: int, environ: Mapping[str, str]) -> tuple[Sink, str | None]:
    """The sink that the settings ask for, and the fault for which it is not the file that they name.

    `stderr_fd` is duplicated, so that the caller may close it. A file that is stdout or stderr by another name means
    stderr. The fault is an errno's name such as `EACCES`.
    """
    if not settings.file:
        return _open_stderr(stderr_fd, environ), None
    try:
        fd = _open_file(settings.file)
    except OSError as fault:
        return _open_stderr(stderr_fd, environ), errno.errorcode.get(fault.errno or 0, "OSError")
    except ValueError:  # a null character in the name
        return _open_stderr(stderr_fd, environ), "EINVAL"
    if not _is_standard(fd):
        return Sink(fd, kind="file", name=settings.file), None
    os.close(fd)
    return _open_stderr(stderr_fd, environ), None


def _open_file(path: str) -> int:
    """Appends; a new file is for its owner alone. A FIFO that nobody reads is refused (ENXIO) instead of waited for."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(path, flags, 0o600)
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(fd, True)
    return fd


def _is_standard(fd: int) -> bool:
    """Such as `/dev/stderr`. What 1 and 2 are now may lead back into the logs, and 1 must never be written."""
    opened = os.fstat(fd)
    for standard in (1, 2):
        with suppress(OSError):  # closed by the parent
            if os.path.samestat(opened, os.fstat(standard)):
                return True
    return False


def _open_stderr(stderr_fd: int, environ: Mapping[str, str]) -> Sink:
    try:
        fd = os.dup(stderr_fd)
    except OSError:  # closed by the parent
        return Sink(-1, kind="stream", name="stderr")
    if os.isatty(fd):
        return Sink(fd, kind="terminal", name="stderr")
    if _is_journal(fd, environ):
        return Sink(fd, kind="journal", name="journal")
    return Sink(fd, kind="stream", name="stderr")


def _is_journal(fd: int, environ: Mapping[str, str]) -> bool:
    """systemd.exec(5), JOURNAL_STREAM: `device:inode` of what systemd connected; a redirected stderr doesn't match."""
    status = os.fstat(fd)
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def wants_color(settings: LogSettings, sink: Sink, environ: Mapping[str, str]) -> bool:
    """As the user says; else on a terminal that can, unless NO_COLOR is set and not empty (no-color.org)."""
    if settings.color is not None:
        return settings.color
    return sink.kind == "terminal" and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
