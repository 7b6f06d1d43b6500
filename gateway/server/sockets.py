"""The sockets on which the daemon listens for clients. Serves nothing."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress
from typing import Final, final

from ...daemon.apps import AppError
from ...daemon.logs import log
from ...daemon.settings import Settings
from ...daemon.settings.option import Address, read_address

BACKLOG: Final = 2048
"""Connections that may wait to be accepted. The system may allow fewer."""

PROBE_SECONDS: Final = 1.0
"""How long somebody who listens on a unix socket may take to be noticed."""


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


def allowed_address(settings: Settings, flag: str, given: str, *, callers_known: bool) -> Address:
    """The address that a setting names. Raises `AppError` where others could call without credentials, and for trio."""
    address = read_address(given)
    assert address is not None, "the setting is checked when it is read"
    if not (address.loopback or settings.http_open or callers_known):
        raise AppError(
            f"{flag} {given}: others could call it; add --token or --identity, or --http-open to let anybody"
        )
    if settings.backend == "trio":
        raise AppError(f"{flag} needs --backend asyncio or uvloop")
    return address


def accept_client(settings: Settings) -> int:
    """The descriptor of the client of `--tcp`, the first that connects; nothing listens any more then. Blocks until one has come.

    Raises `AppError`.
    """
    if settings.reload or settings.no_stdio:
        other = "--reload" if settings.reload else "--no-stdio"
        raise AppError(f"--tcp stands in the place of stdin and stdout, and {other} is about these; remove one of both")
    address = read_address(settings.tcp or "")
    assert address is not None, "the setting was checked"
    if not address.loopback:
        log.warning("tcp.open", hint="every client that reaches this address is served, without any credentials")
    try:
        return _accept_one(address)
    except OSError as exc:
        raise AppError(f"--tcp: {exc.strerror or 'there is no such host'}") from None


def _accept_one(address: Address) -> int:
    with listen(address) as listener:
        file = SocketFile(address.path) if address.path else None
        try:
            listener.setblocking(True)
            host, port = ("", 0) if address.path else listener.getsockname()[:2]
            where = address.path or (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
            log.always("tcp.listening", address=where)
            client, _ = listener.accept()
        finally:
            if file is not None:
                file.remove()
    if not address.path:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client.detach()


def _listen_unix(path: str) -> socket.socket:
    """Listen so that only the user may connect. Replaces a socket without a listener, and nothing else."""
    _remove_stale(path)
    mask = os.umask(0o177)
    try:
        return _listening(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path)
    finally:
        os.umask(mask)


def _listening(listener: socket.socket, address: tuple[str, int] | str) -> socket.socket:
    """Make the socket listen, or close it if it can't listen there."""
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _remove_stale(path: str) -> None:
    """Raises `OSError` for what is no socket, and for one that somebody listens on or may listen on."""
    found = _identity(path)
    if found is None:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):  # it has no listener; it was removed meanwhile
            if found == _identity(path):
                os.unlink(path)
            return
        except PermissionError:
            raise
        except OSError:  # its queue is full, or it is of another type
            pass
    raise OSError(errno.EADDRINUSE, "another process listens there")


def _identity(path: str) -> tuple[int, int, int] | None:
    """Return facts that tell a socket from the next one of the same path, which may get its inode number; None if there is none.

    Raises `OSError` for what is no socket.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.EEXIST, "what is there is no socket")
    return found.st_dev, found.st_ino, found.st_mtime_ns


@final
class SocketFile:
    """The path of a unix socket on which this process has just begun to listen."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity = _identity(path)

    def remove(self) -> None:
        """Remove it, unless it is gone or another's by now. Best while it still listens: it is not replaced then."""
        with suppress(OSError):
            if self._identity is not None and self._identity == _identity(self._path):
                os.unlink(self._path)
