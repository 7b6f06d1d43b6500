"""What a service manager hands over in the environment and as stdin. The daemon serves one connection, and has no listener."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Final

from ...framing.stdio_guard import StandardStreams, redirect_to_null

if TYPE_CHECKING:
    from ..logs.writer import LogWriter
    from .service_manager import ServiceManager


SHARED_STDERR: Final = (
    "stderr is the same as stdout, so log lines would stand among the messages: send it elsewhere"
    " (StandardError=journal, 2>FILE), or name a file for the log with --log-file"
)


class SharedStderr(Exception):
    """Log lines would go to the client; the message is one line."""


def activation_fault(stdin: int, environ: Mapping[str, str]) -> str | None:
    """Why nobody could be served, in one line; None where nothing is wrong. `stdin` is the real one.

    systemd passes sockets as descriptor 3 and on, and says so in LISTEN_PID (sd_listen_fds(3)), or as stdin and stdout.
    """
    try:
        status = os.fstat(stdin)
    except OSError:
        return None
    if stat.S_ISSOCK(status.st_mode) and _listens(stdin):
        return (
            "stdin is a listening socket, and one connection is served: have each one accepted (Accept=yes, --accept)"
        )
    if environ.get("LISTEN_PID") == str(os.getpid()) and _is_null_device(status):
        return "a socket was passed, but not as stdin and stdout: set StandardInput=socket, or --inetd"
    return None


def keep_logs_off_stdout(streams: StandardStreams, logs: LogWriter, environ: Mapping[str, str]) -> None:
    """Where stderr is what the client reads, let nothing be written there. Raises `SharedStderr` where the log has no file."""
    if not _shares_stdout(streams, environ):
        return
    if logs.fault is not None or logs.sink_name == "stderr":
        raise SharedStderr(
            SHARED_STDERR if logs.fault is None else f"--log-file: {logs.file}: {logs.fault}; {SHARED_STDERR}"
        )
    redirect_to_null(streams.stderr)


def _shares_stdout(streams: StandardStreams, environ: Mapping[str, str]) -> bool:
    """As under inetd, which makes one socket all three of them. A terminal shows both to a person. Without a client, whose
    stdin is the null device then, and in the journal, both may be one log."""
    try:
        out, err, reads = (os.fstat(fd) for fd in (streams.stdout, streams.stderr, streams.stdin))
    except OSError:
        return False
    same = os.path.samestat(out, err) and err.st_ino != 0  # Windows has no numbers for pipes
    if not same or stat.S_ISCHR(err.st_mode) or _is_null_device(reads):
        return False
    return environ.get("JOURNAL_STREAM") != f"{err.st_dev}:{err.st_ino}"


def service_manager(environ: MutableMapping[str, str]) -> ServiceManager | None:
    """The manager that wants to hear of readiness, if there is one. Its variables are removed."""
    if not environ.get("NOTIFY_SOCKET"):
        return None
    from .service_manager import ServiceManager  # late: for daemons that are units

    return ServiceManager(environ)


def _is_null_device(status: os.stat_result) -> bool:
    """What systemd makes stdin unless it is told otherwise. With another stdin the app may be whom the socket is for."""
    try:
        return os.path.samestat(status, os.stat(os.devnull))
    except OSError:
        return False


def _listens(fd: int) -> bool:
    import socket  # late: who has a pipe does without

    try:
        connection = socket.socket(fileno=os.dup(fd))
    except OSError:
        return False
    with connection:
        try:
            return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        except OSError:  # macOS knows the option, but not for every family
            return False
