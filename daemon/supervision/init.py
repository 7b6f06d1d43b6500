"""Does what the first process of a container must do: it collects orphans that have ended, and passes signals on. Linux only.

The daemon goes on in a child. Rejected: to collect in the daemon itself, where nothing tells an orphan from a child whose
status a handler still waits for.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import _count
from contextlib import suppress
from typing import Final

from ..logs import log

_FORWARDED: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")

SI_KERNEL: Final = 0x80
"""`si_code` of what the terminal sends. It sends that to the daemon too."""

KILLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""


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
