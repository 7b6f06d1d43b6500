"""What a service manager hands over in the environment and as stdin. The daemon serves one connection, and has no listener."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .service_manager import ServiceManager


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
