"""Hears of input in callbacks of the event loop: without a task that would be woken, and registered once instead of at each wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket


def watch_readable(what: int | socket.socket, on_readable: Callable[[], None]) -> Callable[[], None] | None:
    """Have the running event loop call `on_readable()` in each of its turns in which `what` is readable.

    Returns what ends that. None where the loop has no such way: trio, and asyncio's loop for Windows. What can be waited for
    by `anyio.wait_readable` can be watched; not both at once.
    """
    asyncio = sys.modules.get("asyncio")  # loaded by now, if it runs
    try:
        loop = None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        return None
    try:
        loop.add_reader(what, on_readable)
    except (AttributeError, NotImplementedError):
        return None
    return partial(loop.remove_reader, what)
