"""Hears of input in callbacks of the event loop: registered once instead of at each wait, and without a task to be woken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket


def watch_readable(what: int | socket.socket, on_readable: Callable[[], None]) -> Callable[[], object] | None:
    """Have the running event loop call `on_readable()` in each of its turns in which `what` is readable.

    Returns what ends that. None where the loop has no such way: trio, and asyncio's loop for Windows. What can be waited for
    by `anyio.wait_readable` can be watched; not both at once.
    """
    loop = asyncio_loop()
    if loop is None:
        return None
    try:
        loop.add_reader(what, _named(on_readable))
    except NotImplementedError:
        return None
    return partial(loop.remove_reader, what)


def _named(call: Callable[[], None]) -> Callable[[], None]:
    """The same, told to run on asyncio where anyio asks sniffio, which looks for a task. There is none in a callback."""
    sniffio = sys.modules.get("sniffio")
    if sniffio is None:
        return call
    state = sniffio.thread_local

    def named() -> None:
        before, state.name = state.name, "asyncio"
        try:
            call()
        finally:
            state.name = before

    return named


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; None where it is trio's, or none runs."""
    loaded, sniffio = sys.modules.get("asyncio"), sys.modules.get("sniffio")  # by now, if they are of use
    if sniffio is not None and sniffio.thread_local.name == "trio":  # as a guest of asyncio
        return None
    try:
        return None if loaded is None else loaded.get_running_loop()
    except RuntimeError:
        return None
