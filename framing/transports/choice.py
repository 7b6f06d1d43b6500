"""Chooses how a descriptor is read and written: at once, by polling, or by a thread where nothing else will do.

Never a thread between a pollable descriptor and the loop. The descriptors stay the caller's.
"""

from __future__ import annotations

import os
import sys

from .descriptors import ENDED, READ_BYTES, Inlet, Outlet, always_ready, nothing, readable, require_output

FILE_WRITE_BYTES = 1024 * 1024
"""One write to a regular file, which is never cut short by itself: other tasks run between two of them."""


def open_inlet(fd: int) -> Inlet:
    """The way to read this descriptor, which stays the caller's. A closed or unreadable one is at its end."""
    if not readable(fd):
        return ENDED
    if always_ready(fd):
        return Inlet(get=lambda: os.read(fd, READ_BYTES), wait_on=None, close=nothing)
    if sys.platform != "win32":
        from .polled import polled_inlet

        if (inlet := polled_inlet(fd)) is not None:
            return inlet
    from .threaded import pumped_inlet  # late, as `polled`: a run needs one of the two

    return pumped_inlet(fd)


def open_outlet(fd: int) -> Outlet:
    """The way to write this descriptor, which stays the caller's. Raises `StdoutClosed`."""
    require_output(fd)
    if always_ready(fd):
        return Outlet(lambda data: os.write(fd, data[:FILE_WRITE_BYTES]), wait_on=None, finish=nothing, close=nothing)
    if sys.platform != "win32":
        from .polled import polled_outlet

        if (outlet := polled_outlet(fd)) is not None:
            return outlet
    from .threaded import pumped_outlet

    return pumped_outlet(fd)
