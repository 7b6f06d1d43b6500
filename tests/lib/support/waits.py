"""The one bound of every wait, and waits for what gives no sign. Never orders anything by time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Final

import anyio

DEADLINE_SECONDS: Final = 120.0
"""How long a test may wait before it fails. Generous for a loaded machine: no test that passes waits for it."""

POLL_SECONDS: Final = 0.005


def wait_until(condition: Callable[[], object]) -> None:
    """Polls until the condition holds: for processes and threads, which give no sign."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(POLL_SECONDS)


async def until(condition: Callable[[], object | Awaitable[object]]) -> None:
    """Lets the other tasks of this event loop run until the condition, which may be asynchronous, holds."""
    with anyio.fail_after(DEADLINE_SECONDS):
        while not await _held(condition()):
            await anyio.lowlevel.checkpoint()


async def _held(result: object | Awaitable[object]) -> object:
    return await result if isawaitable(result) else result
