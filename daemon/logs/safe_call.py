"""The only place in the logs that catches any exception: logging must never fail the caller, nor end the writer thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def safe_call(
    func: Callable[[], T], on_error: Callable[[BaseException], T], catch: type[BaseException] = Exception
) -> T:
    """The result of `func`; if it raises `catch`, the result of `on_error` for the exception.

    For calls that run foreign code, such as a `__str__` or a `__repr__`, which may raise anything.
    """
    try:
        return func()
    except catch as exc:
        return on_error(exc)
