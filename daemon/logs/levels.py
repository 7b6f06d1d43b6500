"""The four levels, their order, and what users may call them. Knows nothing else of logs."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warn", "error"]

AnyLevel: TypeAlias = Level | Literal["warning"]
"""A level as code may name it: `warning` is another word for `warn`."""

RANK: Final[dict[str, int]] = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""The same numbers as the standard library's `logging`, so that one threshold serves both."""

LEVELS: Final[dict[int, Level]] = {10: "debug", 20: "info", 30: "warn", 40: "error"}


def parse_level(text: str) -> Level | None:
    """The level that a user means by `text`, in any case; None when there is no such level."""
    return LEVELS.get(RANK.get(text.strip().lower(), 0))


def level_of_number(number: int) -> Level:
    """The level of a number as `logging` counts: each number belongs to the nearest level at or below it."""
    return LEVELS[min(max(number // 10 * 10, 10), 40)]
