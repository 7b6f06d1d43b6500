"""The states of a daemon and what leads from one to the next, as a table. An event that is not in it changes nothing.

        starting ──ready──▶ serving ──any reason to end──▶ draining ──drained──▶ stopped
                               └──reload──▶ swapping ──swap──▶ swapped

The first reason to end stands; the window's end stops at once. Nothing leads back. A reload ends
the program but not the daemon: it lets what runs finish too, and gives way to any reason to end that comes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final

State: TypeAlias = Literal["starting", "serving", "swapping", "swapped", "draining", "stopped"]

Event: TypeAlias = Literal[
    "ready",
    "end-of-input",
    "signal",
    "shutdown",
    "exit",
    "parent-gone",
    "reader-gone",
    "failed",
    "drained",
    "window-closed",
    "reload",
    "swap",
]

_ENDINGS: Final[tuple[Event, ...]] = ("end-of-input", "signal", "shutdown", "exit", "parent-gone")

_CUTS: Final[tuple[Event, ...]] = ("reader-gone", "failed")

TABLE: Final[dict[tuple[State, Event], State]] = {
    ("starting", "ready"): "serving",
    **{(state, ending): "draining" for state in ("starting", "serving", "swapping") for ending in _ENDINGS},
    ("draining", "drained"): "stopped",
    ("draining", "window-closed"): "stopped",
    **{(state, cut): "stopped" for state in ("starting", "serving", "swapping", "draining") for cut in _CUTS},
    ("serving", "reload"): "swapping",
    ("swapping", "swap"): "swapped",
}

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2

_NO_ENDS: Final[frozenset[Event]] = frozenset({"ready", "reload", "swap"})

_UNFORCED: Final[frozenset[Event]] = frozenset({"drained", "window-closed"})
"""Ways to stop that leave the exit status as it is."""


@final
class Lifecycle:
    """Applies the table. `reason` is the event that began the end, `status` the exit status it leads to.

    `on_change` is called after every change with the new state; it must not block.
    """

    __slots__ = ("_on_change", "reason", "state", "status")

    def __init__(self, on_change: Callable[[State], None] = lambda _: None) -> None:
        self.state: State = "starting"
        self.reason: Event | None = None
        self.status = EXIT_OK
        self._on_change = on_change

    @property
    def draining(self) -> bool:
        """True once the end has begun: no request that is read from now on is run."""
        return self.state in ("draining", "stopped")

    def apply(self, event: Event) -> bool:
        """Take an event; True when the state changed."""
        following = TABLE.get((self.state, event))
        if following is None:
            return False
        asked_to_end = self.state == "draining"
        self.state = following
        if self.reason is None and event not in _NO_ENDS:
            self.reason = event
        if following == "stopped" and event not in _UNFORCED:
            self.status = EXIT_OK if event == "reader-gone" and asked_to_end else EXIT_FAILED
        self._on_change(following)
        return True
