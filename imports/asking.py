"""Runs what asks a server before there is an event loop: in a thread of its own, within a time limit."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def ask_in_thread(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """The result of this in an event loop of its own, as one may run here. Raises what it raises, and `TimeoutError`."""
    outcome: list[T | BaseException] = []

    async def bounded() -> T:
        with anyio.fail_after(seconds):
            return await work()

    def run() -> None:
        try:
            outcome.append(anyio.run(bounded))
        except BaseException as exc:  # noqa: BLE001 - carried to the caller's thread
            outcome.append(exc)

    thread = threading.Thread(target=run, name="discreet-import", daemon=True)
    thread.start()
    thread.join()
    (found,) = outcome
    if isinstance(found, BaseException):
        raise found
    return found
