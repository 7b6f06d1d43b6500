"""Calls foreign code such as `__repr__`, `__str__`, `__iter__` and properties. Never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def call_or_none(call: Callable[[], ResultT]) -> ResultT | None:
    """The call's result, or None if it raises an `Exception`."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - foreign code may raise anything, and writing a log line must not fail
        return None
