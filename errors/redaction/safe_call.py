"""Calls code that is not ours: `__repr__`, `__str__`, `__iter__`, properties. A log line must not fail for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def guarded(call: Callable[[], ResultT]) -> ResultT | None:
    """What the call returns, None where it fails in any way."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - foreign code may raise anything, and there is nobody to tell
        return None
