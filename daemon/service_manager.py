"""Works with the program that starts and watches the daemon, such as systemd or a container runtime.

It takes over sockets and stdin, reports readiness and pings (sd_notify(3)), writes the report on a signal, and does the work
of a container's first process. Telling never waits: a message that the socket does not take is dropped and logged.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
from _thread import _count
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final, final

from ..framing.stdio_guard import StandardStreams, redirect_to_null
from ..framing.transports.interface import is_null_device
from ..lazy import anyio
from .logs import log
from .logs.sink import safe_call

if TYPE_CHECKING:
    import socket

    from .daemon import Daemon
    from .logs.writer import LogWriter


# What a service manager hands over in the environment and as stdin. The daemon serves one connection, and has no listener.


SHARED_STDERR: Final = (
    "stderr is the same as stdout, so log lines would stand among the messages: send it elsewhere"
    " (StandardError=journal, 2>FILE), or name a file for the log with --log-file"
)


class SharedStderr(Exception):
    """Log lines would go to the client; the message is one line."""


def activation_fault(stdin: int, environ: Mapping[str, str]) -> str | None:
    """Return the reason why no client could be served, in one line; None without one. `stdin` is the real one.

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
    if environ.get("LISTEN_PID") == str(os.getpid()) and is_null_device(status):
        # what systemd makes stdin unless it is told otherwise; with another stdin the app may be whom the socket is for
        return "a socket was passed, but not as stdin and stdout: set StandardInput=socket, or --inetd"
    return None


def keep_logs_off_stdout(streams: StandardStreams, logs: LogWriter, environ: Mapping[str, str]) -> None:
    """Close stderr to the log if the client reads it as it does stdout. Raises `SharedStderr` if the log has no file then."""
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
    if not same or stat.S_ISCHR(err.st_mode) or is_null_device(reads):
        return False
    return environ.get("JOURNAL_STREAM") != f"{err.st_dev}:{err.st_ino}"


def service_manager(environ: MutableMapping[str, str]) -> ServiceManager | None:
    """The manager that wants to hear of readiness, if there is one. Its variables are removed."""
    if not environ.get("NOTIFY_SOCKET"):
        return None
    return ServiceManager(environ)


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


# Does what the first process of a container must do: it collects orphans that have ended, and passes signals on. Linux only.
#
# The daemon goes on in a child. Rejected: to collect in the daemon itself, where nothing tells an orphan from a child whose
# status a handler still waits for.


_FORWARDED: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")

SI_KERNEL: Final = 0x80
"""`si_code` of what the terminal sends. It sends that to the daemon too."""

KILLED: Final = 128
"""The number that a shell adds to that of the signal that ended a program."""


def continue_in_child() -> None:
    """Return in a child. This process stays until the child ends, and then ends with its status.

    With other threads there is no fork; then this is logged, and nothing is collected. Raises `OSError` where the system has
    no process left.
    """
    if sys.platform != "linux":
        return
    if _count():
        log.warning("init.threads", threads=_count())
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    forwarded = {getattr(signal, name) for name in _FORWARDED}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
    daemon = os.fork()
    if daemon == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    for fd in (0, 1):  # so that only the daemon has the client's pipes
        with suppress(OSError):
            os.close(fd)
    os._exit(_status_of(daemon, {*forwarded, signal.SIGCHLD}))


def _status_of(daemon: int, waited: set[int]) -> int:
    """Pass signals on and collect whatever has ended, until the daemon has; its exit status."""
    assert sys.platform == "linux"
    while True:
        received = signal.sigwaitinfo(waited)
        if received.si_signo == signal.SIGCHLD:
            status = _collect(daemon)
            if status is not None:
                return status if status >= 0 else KILLED - status
        elif received.si_code != SI_KERNEL:
            os.kill(daemon, received.si_signo)


def _collect(daemon: int) -> int | None:
    """Collect every child that has ended; the daemon's status, negative for a signal, if it is among them."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == daemon:
                found = os.waitstatus_to_exitcode(ended[1])
    return found


# What a running daemon tells of itself when its operator asks (SIGUSR2): counters, no contents. Waits for nothing.


def log_report(daemon: Daemon) -> None:
    """Log `daemon.report`, whatever the level. To be called in the main thread, also from a signal handler."""
    queue = log.queue
    fields: dict[str, object] = safe_call(lambda: _counters(daemon), lambda fault: {"failed": type(fault).__name__})
    log.always("daemon.report", **fields, log_queued=len(queue), log_dropped=queue.dropped)


def _counters(daemon: Daemon) -> dict[str, object]:
    scheduler, memory = daemon.host.scheduler, daemon.host.memory
    counts = scheduler.counts()
    oldest = next((request for request in scheduler.requests() if request.spec.mode != "stream"), None)
    return {
        "state": daemon.lifecycle.state,
        "requests": counts["requests"],
        "running": counts["running"],
        "streams": counts["streams"],
        "threads": _count() + 1,  # `threading` would take a lock, which the code under a signal handler may hold
        "threads_busy": counts["threads_busy"],
        "unanswered": daemon.connection.unanswered,
        "oldest_method": None if oldest is None else oldest.name,
        "oldest_seconds": None if oldest is None else round(monotonic() - oldest.since, 3),
        "memory_used": memory.used,
        "memory_limit": memory.limit,
        "memory": {kind: size for kind, size in memory.by_kind().items() if size},
    }


PINGS: Final = 2
"""How many pings are sent within the time after which the manager takes the daemon for dead: sd_watchdog_enabled(3)."""

MICROSECONDS: Final = 1_000_000

USEC_DIGITS: Final = 20
"""Of the largest number of 64 bits."""


@final
class ServiceManager:
    """The manager that these variables name. They are removed, so that no child takes them for its own.

    Call `ready` and `ending` on the loop or before there is one.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._address = environ.pop("NOTIFY_SOCKET")
        self._interval = _ping_interval(environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", ""))
        self._failed = False
        self._ready = False
        self._socket = self._open()

    def ready(self) -> None:
        """The daemon serves. Told once."""
        if not self._ready:
            self._ready = True
            self._send("READY=1\nSTATUS=serving")

    def reloading(self) -> None:
        """This program takes no more requests, and the next one will say that it is ready."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns() // 1000}\nSTATUS=reloading")

    def ending(self, state: str, reason: str | None) -> None:
        """The daemon has begun to end, for this reason."""
        self._send(f"STOPPING=1\nSTATUS={state}: {reason}")

    async def watch(self, entered: Callable[[], Awaitable[bool]]) -> None:
        """Say that the daemon is ready once `entered()` says so, and ping as long as this runs.

        It runs on the loop, so that a handler which keeps the loop stops the pings too.
        """
        if not await entered():
            return
        self.ready()
        while self._interval is not None:
            self._send("WATCHDOG=1")
            await anyio.sleep(self._interval)

    def close(self) -> None:
        """Nothing more is told."""
        if self._socket is not None:
            self._socket.close()

    def _send(self, message: str) -> None:
        if self._socket is None:
            return
        name = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            self._socket.sendto(message.encode(), os.fsencode(name))
        except OSError as exc:
            self._fail(errno.errorcode.get(exc.errno or 0, "ENAMETOOLONG"))

    def _open(self) -> socket.socket | None:
        """A socket, kept open: a ping must go out where no descriptor is left too."""
        import socket  # late: most daemons have no manager

        if self._address[:1] not in ("/", "@") or not hasattr(
            socket, "AF_UNIX"
        ):  # vsock, for a manager outside a machine
            self._fail("EAFNOSUPPORT")
            return None
        try:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError as exc:
            self._fail(errno.errorcode.get(exc.errno or 0, "EMFILE"))
            return None
        found.setblocking(False)
        return found

    def _fail(self, name: str) -> None:
        """Log the first failure. The next message is tried again: the manager may have been busy, or starts anew."""
        if not self._failed:
            self._failed = True
            log.warning("manager.unreachable", error=name)


LEAST_PING_SECONDS: Final = 0.01
"""Pings at shorter intervals would take a processor, and no manager means so short a limit."""


def _ping_interval(limit: str, pid: str) -> float | None:
    """Seconds between two pings; None where there is no watchdog, or where it is meant for another process."""
    if not limit or pid not in ("", str(os.getpid())):
        return None
    if not (limit.isascii() and limit.isdecimal() and len(limit) <= USEC_DIGITS and int(limit)):
        log.warning("manager.watchdog_unusable", reason="WATCHDOG_USEC is no number of microseconds")
        return None
    return max(LEAST_PING_SECONDS, int(limit) / MICROSECONDS / PINGS)
