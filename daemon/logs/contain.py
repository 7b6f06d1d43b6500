"""The one place in the logs where any exception is caught: logging must not fail whoever logs, nor end the writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def contained(
    attempt: Callable[[], T], otherwise: Callable[[BaseException], T], caught: type[BaseException] = Exception
) -> T:
    """What `attempt` returns; when it raises `caught`, what `otherwise` makes of that.

    For calls that run foreign code, such as a `__str__` or a `__repr__`, which may raise anything.
    """
    try:
        return attempt()
    except caught as fault:
        return otherwise(fault)
