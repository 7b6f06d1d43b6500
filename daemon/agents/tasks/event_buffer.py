"""The events of one task that its watchers have yet to see: bounded, and what is over the bound is the oldest."""

from __future__ import annotations

from typing import Final, final

import msgspec

from ..model.types import ArtifactChanged, Event, Part
from ..stores.interface import Logged

MOST_EVENTS: Final = 65_536
"""Events of one task that are kept for watchers who are behind."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much those may hold, about."""

MOST_BYTES_IN_ALL: Final = 512 * 1024 * 1024
"""The same for all tasks together: then who adds to it lets go of its own oldest."""

AHEAD_BYTES: Final = 4 * 1024 * 1024
"""From here on an executor waits a moment for watchers to come closer; each time in vain, it may go twice as far."""

_EVENT_BYTES: Final = 256


@final
class Budget:
    """What the tasks of one daemon keep for watchers, in bytes."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0


@final
class EventBuffer:
    """Events without gaps; `base` is the generation before the first of them. `bytes` is about what they hold."""

    __slots__ = ("_ahead", "_base", "_budget", "_events", "_sizes", "bytes")

    def __init__(self, base: int, budget: Budget) -> None:
        self._base = base
        self._budget = budget
        self._ahead = AHEAD_BYTES
        self._events: list[Logged] = []
        self._sizes: list[int] = []
        self.bytes = 0

    def add(self, logged: Logged, size: int) -> None:
        """Keep the next one, and let go of some if it is too much."""
        self._events.append(logged)
        self._sizes.append(size)
        self.bytes += size
        self._budget.used += size
        too_much = self.bytes > MOST_BYTES or self._budget.used > MOST_BYTES_IN_ALL
        if too_much or len(self._events) > MOST_EVENTS:
            self._trim(1 + len(self._events) // 8)

    def between(self, after: int, upto: int, most: int) -> list[Logged] | None:
        """The next events behind generation `after`, none behind `upto`; None where they are not kept any more."""
        start = after - self._base
        if start < 0:
            return None
        return self._events[start : max(start, min(start + most, upto - self._base))]

    def forget(self, generation: int) -> bool:
        """What is not behind this generation has been seen. It goes when that is worth it; True when `ahead` has ended."""
        seen = generation - self._base
        if seen < min(256, 1 + len(self._events) // 2):
            return False
        was_ahead = self.ahead
        self._trim(seen)
        if self.bytes < AHEAD_BYTES // 2:
            self._ahead = AHEAD_BYTES
        return was_ahead and not self.ahead

    def clear(self, base: int) -> None:
        """Keep nothing, and begin behind this generation."""
        self._trim(len(self._events))
        self._base = base
        self._ahead = AHEAD_BYTES

    @property
    def ahead(self) -> bool:
        """Whether it is so much that whoever publishes had better wait for the watchers a moment."""
        return self.bytes > self._ahead

    def let_ahead(self) -> None:
        """The watchers did not come closer: who publishes may go further."""
        self._ahead *= 2

    def _trim(self, count: int) -> None:
        freed = sum(self._sizes[:count])
        self.bytes -= freed
        self._budget.used -= freed
        del self._events[:count], self._sizes[:count]
        self._base += count


def size_of(event: Event) -> int:
    """About how many bytes an event holds; only artifacts can be large and many. Raises `TypeError` for what is no JSON."""
    if not isinstance(event, ArtifactChanged):
        return _EVENT_BYTES
    return _EVENT_BYTES + sum(map(_part_size, event.artifact.parts))


def _part_size(part: Part) -> int:
    text, raw = part.text, part.raw
    if text is not None:
        return len(text)
    if raw is not None:
        return len(raw)
    return len(msgspec.json.encode(part.data)) if part.url is None else len(part.url)
