"""`log`, the object that the daemon logs through. Compares levels and queues events; never renders, never waits.

Any thread and any signal handler may call it: before `start_logging` events are kept, up to a bound, and after
`LogWriter.close` they are dropped. It never raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from .levels import LEVELS, RANK, AnyLevel, Level, parse_level
from .queue import LogQueue

_DEBUG, _INFO, _WARN, _ERROR = LEVELS


@final
class ConfiguredPath(str):
    """A path that the operator has chosen, and looks for in the log. As a field it keeps its directories, of which other paths
    are scrubbed; secrets in it are scrubbed nevertheless."""

    __slots__ = ()


@final
class Logger:
    """Events with fields. A field `exc` that holds an exception is rendered as its traceback, scrubbed.

    Another thread renders the fields later: pass plain values. Containers are copied; other objects must not change.
    """

    __slots__ = ("_level_listeners", "_threshold", "level", "queue")

    def __init__(self) -> None:
        self.queue = LogQueue()
        self.level: Level = "info"
        """The current level. Until `start_logging` sets it, events from info on are kept."""
        self._threshold = _INFO
        self._level_listeners: list[Callable[[int], None]] = []

    def debug(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _DEBUG:
            self.queue.put(_DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _INFO:
            self.queue.put(_INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _WARN:
            self.queue.put(_WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _ERROR:
            self.queue.put(_ERROR, event, fields)

    def always(self, event: str, /, **fields: object) -> None:
        """Log an event of the level info, whatever the level is: what an operator has asked for."""
        self.queue.put(_INFO, event, fields)

    def record(self, level: AnyLevel, event: str, fields: dict[str, object], *, when: float | None = None) -> None:
        """Log an event whose level is data. The log owns `fields` from now on; `when` is the event's epoch time."""
        rank = RANK[level]
        if self._threshold <= rank:
            self.queue.put(rank, event, fields, when)

    def is_enabled_for(self, level: AnyLevel) -> bool:
        """Whether events of this level are logged. Ask before collecting fields that are expensive."""
        return self._threshold <= RANK[level]

    def set_level(self, name: str) -> Level:
        """Change the level at once, for every thread. Accepts any case and `warning`; returns the level's own name.

        Raises `ValueError` for any other name and then changes nothing.
        """
        level = parse_level(name)
        if level is None:
            raise ValueError("the level must be one of debug, info, warn, error")
        self.level, self._threshold = level, RANK[level]
        for listener in self._level_listeners:
            listener(self._threshold)
        return level

    def on_level(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call `listener` with the level's number, now and after every change. The result removes the listener."""
        self._level_listeners.append(listener)
        listener(self._threshold)
        return lambda: self._level_listeners.remove(listener)


log: Final = Logger()
