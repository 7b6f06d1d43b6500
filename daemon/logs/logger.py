"""`log`, the one object that the daemon logs through. Decides by level and hands over; never renders, never waits.

It may be called from any thread and from signal handlers, before `start` (what happens then is kept, bounded) and after
`close` (what happens then is dropped). It never raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from .levels import LEVELS, RANK, AnyLevel, Level, parse_level
from .queue import Backlog

_DEBUG, _INFO, _WARN, _ERROR = LEVELS


@final
class Logger:
    """Events with fields. A field `exc` that holds an exception is rendered as its traceback, scrubbed.

    Fields are rendered later and by another thread: hand over plain values. Containers are copied, other objects must
    not change.
    """

    __slots__ = ("_followers", "_threshold", "backlog", "level")

    def __init__(self) -> None:
        self.backlog = Backlog()
        self.level: Level = "info"
        """The level in force. Until `start` decides, events from info on are kept."""
        self._threshold = _INFO
        self._followers: list[Callable[[int], None]] = []

    def debug(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _DEBUG:
            self.backlog.put(_DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _INFO:
            self.backlog.put(_INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _WARN:
            self.backlog.put(_WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _ERROR:
            self.backlog.put(_ERROR, event, fields)

    def record(self, level: AnyLevel, event: str, fields: dict[str, object], *, when: float | None = None) -> None:
        """Logs an event whose level is data. `fields` belongs to the log from here on; `when` is its epoch time."""
        rank = RANK[level]
        if self._threshold <= rank:
            self.backlog.put(rank, event, fields, when)

    def wants(self, level: AnyLevel) -> bool:
        """Whether an event of this level would be kept: ask before collecting fields that cost something."""
        return self._threshold <= RANK[level]

    def set_level(self, name: str) -> Level:
        """Changes the level at once, for every thread. Takes any case and `warning`; returns the level's own name.

        Raises `ValueError` for any other name and then changes nothing.
        """
        level = parse_level(name)
        if level is None:
            raise ValueError("the level must be one of debug, info, warn, error")
        self.level, self._threshold = level, RANK[level]
        for follower in self._followers:
            follower(self._threshold)
        return level

    def follow(self, follower: Callable[[int], None]) -> Callable[[], None]:
        """Calls `follower` with the threshold's number now and after every change, until the result is called."""
        self._followers.append(follower)
        follower(self._threshold)
        return lambda: self._followers.remove(follower)


log: Final = Logger()
