"""Tells when another process may have written to the store's file, so that an idle daemon need not look all the time.

Linux's inotify hears each write to SQLite's log, before the commit can be seen. Other systems have nothing that costs as little:
there the file is looked at now and then.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from time import monotonic
from typing import Final, final

from ....lazy import anyio

AWAKE_SECONDS: Final = 0.5
"""How long after a write the commit is looked for. The disk takes its time in between."""

LOOK_SECONDS: Final = 0.02
"""Between two looks then."""

_IN_MODIFY: Final = 2
_EVENT_BYTES: Final = 4096


@final
class ChangeWatch:
    """Watches the log of the store at this path. Used on the event loop, by one task at a time."""

    def __init__(self, path: str) -> None:
        self._fd = _watch(f"{path}-wal")
        self._awake_until = 0.0

    async def wait(self, poll_seconds: float, idle_seconds: float) -> None:
        """Wait until something may have been written, and at most `idle_seconds`. Where that can't be heard, wait for
        `poll_seconds`."""
        if self._fd is None:
            return await anyio.sleep(poll_seconds)
        if monotonic() < self._awake_until:
            return await anyio.sleep(LOOK_SECONDS)
        with anyio.move_on_after(idle_seconds):
            await anyio.wait_readable(self._fd)
            with suppress(OSError):
                os.read(self._fd, _EVENT_BYTES)
            self._awake_until = monotonic() + AWAKE_SECONDS

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _watch(file: str) -> int | None:
    """A descriptor that can be read when the file was written to; None where the system has no such thing, or no more of it."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return None
    if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(file), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd if fd >= 0 else None
