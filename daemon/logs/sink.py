"""Opens the place that log lines go to, and chooses their form. Chosen once at the start, used by the writer thread alone.

Never writes to stdout. Never raises if the descriptor breaks: the sink then writes nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, TypeAlias, TypeVar, final

import msgspec

from .logger import Level

# The only place in the logs that catches any exception: logging must never fail the caller, nor end the writer thread.


T = TypeVar("T")


def safe_call(
    func: Callable[[], T], on_error: Callable[[BaseException], T], catch: type[BaseException] = Exception
) -> T:
    """The result of `func`; if it raises `catch`, the result of `on_error` for the exception.

    For calls that run foreign code, such as a `__str__` or a `__repr__`, which may raise anything.
    """
    try:
        return func()
    except catch as exc:
        return on_error(exc)


Form: TypeAlias = Literal["console", "keyvalue", "json", "journald"]

SinkKind: TypeAlias = Literal["terminal", "journal", "file", "stream"]

DEFAULTS: Final[dict[SinkKind, tuple[Form, Level]]] = {
    "terminal": ("console", "info"),
    "journal": ("journald", "info"),
    "file": ("keyvalue", "info"),  # named by the user
    "stream": ("keyvalue", "warn"),  # editors paint every line on a server's stderr as an error
}
"""The default form and level of each kind of sink."""

_TEMPORARY: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors after which a later line may succeed. After any other the sink stays silent."""


class LogSettings(msgspec.Struct, frozen=True):
    """The user's settings. None and `auto` leave the choice to the kind of sink and to the environment."""

    level: str | None = None
    format: Literal["auto", "console", "keyvalue", "json", "journald"] = "auto"
    file: str | None = None
    """The value of `--log-file` or `DISCREET_LOG`; None or empty for stderr."""
    color: bool | None = None


@final
class Sink:
    """Owns one descriptor. `write` is for one thread at a time and may block as long as there is no reader."""

    def __init__(self, fd: int, *, kind: SinkKind, name: str, spare: int = -1) -> None:
        """`spare` is a descriptor of the caller's for the same: an app may have closed ours."""
        self._fd = fd
        self._spare = spare
        self._path = os.path.abspath(name) if kind == "file" else name  # now: an app may change the working directory
        self._line_cut = False
        self._writing = False
        self._taken = 0  # bytes, of all lines
        self.kind: SinkKind = kind
        self.name = name
        self.silent = fd < 0

    def write(self, line: bytes) -> bool:
        """Write a whole line. Returns whether it was written. Never raises `OSError`."""
        self._writing = True
        written = self._write(memoryview(b"\n" + line if self._line_cut else line), len(line))
        self._writing = False
        return written

    @property
    def position(self) -> int | None:
        """How many bytes were taken so far, while a line is being written; else None. Any thread may ask: a number that
        does not change means a reader that does not read.
        """
        return self._taken if self._writing else None

    def _write(self, rest: memoryview, size: int) -> bool:
        while rest and not self.silent:
            try:
                taken = os.write(self._fd, rest)
            except BlockingIOError:
                self._wait_writable()
            except OSError as fault:
                if fault.errno == errno.EBADF and self._open_again():
                    continue
                self._line_cut = self._line_cut or len(rest) < size
                self.silent = fault.errno not in _TEMPORARY
                return False
            else:
                self._taken += taken
                rest = rest[taken:]
        self._line_cut = False
        return not self.silent

    def _open_again(self) -> bool:
        """Go on where the descriptor was closed by an app. Once: it may well be closed again."""
        spare, self._spare = self._spare, -1
        self._fd = -1  # the number may be that of anything now
        if self.kind == "file":
            return self.reopen() is None
        try:
            self._fd = os.dup(spare)
        except OSError:
            return False
        return True

    def _wait_writable(self) -> None:
        """Wait until the reader makes room: a process that shares stderr may have made it non-blocking."""
        import select  # late: a rare case

        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        poll.poll()

    def reopen(self) -> str | None:
        """Open the file under its name anew: somebody has renamed it. Nothing for another kind of sink.

        If that can't be done, the old one stays; returns the errno's name then. For the thread that writes.
        """
        if self.kind != "file":
            return None
        try:
            fd = _open_file(self._path)
        except OSError as fault:
            return errno.errorcode.get(fault.errno or 0, "OSError")
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._line_cut, self.silent = fd, False, False
        return None

    def close(self) -> None:
        """Close the descriptor. Later writes do nothing."""
        fd, self._fd, self.silent = self._fd, -1, True
        if fd >= 0:
            with suppress(OSError):  # closed by somebody else
                os.close(fd)


def open_sink(settings: LogSettings, stderr_fd: int, environ: Mapping[str, str]) -> tuple[Sink, str | None]:
    """The sink that the settings ask for. If their file can't be used: stderr, and the errno's name, such as `EACCES`.

    `stderr_fd` is duplicated, so that the caller may close it. A file that is stdout or stderr under another name means
    stderr.
    """
    if not settings.file:
        return _open_stderr(stderr_fd, environ), None
    try:
        fd = _open_file(settings.file)
    except OSError as fault:
        return _open_stderr(stderr_fd, environ), errno.errorcode.get(fault.errno or 0, "OSError")
    except ValueError:  # a null character in the name
        return _open_stderr(stderr_fd, environ), "EINVAL"
    if not _is_standard_stream(fd):
        return Sink(fd, kind="file", name=settings.file), None
    os.close(fd)
    return _open_stderr(stderr_fd, environ), None


def _open_file(path: str) -> int:
    """Open for appending. A new file is private to its owner. A FIFO without a reader raises ENXIO instead of blocking."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_NOCTTY", "O_NONBLOCK", "O_BINARY"):  # the first two are POSIX's, the last is Windows'
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, 0o600)
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(fd, True)
    return fd


def _is_standard_stream(fd: int) -> bool:
    """Whether it is stdout or stderr, as `/dev/stderr` is: both may now lead back into the logs."""
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
        return Sink(fd, kind="terminal", name="stderr", spare=stderr_fd)
    if _is_journal(fd, environ):
        return Sink(fd, kind="journal", name="journal", spare=stderr_fd)
    return Sink(fd, kind="stream", name="stderr", spare=stderr_fd)


def _is_journal(fd: int, environ: Mapping[str, str]) -> bool:
    """Whether systemd's journal reads it. JOURNAL_STREAM is `device:inode` of the stream it opened (systemd.exec(5))."""
    status = os.fstat(fd)
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def wants_color(settings: LogSettings, sink: Sink, environ: Mapping[str, str]) -> bool:
    """The user's choice; by default on a terminal that supports colours. The settings have read NO_COLOR already."""
    if settings.color is not None:
        return settings.color
    return sink.kind == "terminal" and environ.get("TERM") != "dumb"
