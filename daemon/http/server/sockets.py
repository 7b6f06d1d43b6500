"""The sockets on which the gateway listens. Serves nothing."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress

from ...settings.addresses import Address

BACKLOG = 2048
"""Connections that may wait to be accepted. The system may allow fewer."""


def listen(address: Address) -> socket.socket:
    """A listening socket. Raises `OSError`: the address is in use, unknown, or not ours."""
    if address.path:
        return _listen_unix(address.path)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    if family == socket.AF_INET and not address.host[0].isdigit():
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    # asyncio sets TCP_NODELAY only where a socket says what it is; without it every answer waits some 40 ms for the client
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # on Windows it would let others take the port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _listening(listener, (address.host, address.port))


def _listen_unix(path: str) -> socket.socket:
    """Only the user may connect. A socket that nobody listens on any more is replaced, anything else is not."""
    _remove_stale(path)
    mask = os.umask(0o177)
    try:
        return _listening(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path)
    finally:
        os.umask(mask)


def _listening(listener: socket.socket, address: tuple[str, int] | str) -> socket.socket:
    """The same socket, or closed where it can't listen there."""
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _remove_stale(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except OSError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except OSError:
            pass
