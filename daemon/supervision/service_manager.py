"""Tells the service manager how the daemon is: readiness, the end, and the pings of a watchdog (sd_notify(3)).

Loaded only where NOTIFY_SOCKET is set. Never waits: what the socket does not take is dropped and logged.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic_ns
from typing import Final, final

from ...lazy import anyio
from ..logs import log

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
