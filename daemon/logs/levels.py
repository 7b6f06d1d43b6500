"""The four log levels, their order, and the names that users may write. Knows nothing else of logs."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warn", "error"]

AnyLevel: TypeAlias = Level | Literal["warning"]
"""A level as code may name it: `warning` means `warn`."""

RANK: Final[dict[str, int]] = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""The same numbers as in the standard library's `logging`, so that one threshold serves both."""

LEVELS: Final[dict[int, Level]] = {10: "debug", 20: "info", 30: "warn", 40: "error"}


def parse_level(text: str) -> Level | None:
    """The level that a user names, in any case; None for an unknown name."""
    return LEVELS.get(RANK.get(text.lower(), 0))


def level_of_number(number: int) -> Level:
    """The level of a number as `logging` counts: the nearest one at or below the number."""
    return LEVELS[min(max(number // 10 * 10, 10), 40)]
