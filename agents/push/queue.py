"""The notifications that wait for one push target: a bounded queue in the order of the events.

Sends nothing, waits for nothing, logs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...lazy import anyio
from ..stores.interface import PushTarget

if TYPE_CHECKING:
    from ...daemon.tracing.tracing import Origin

MAX_NOTIFICATIONS: Final = 1024
"""Notifications that wait for one target."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Total size of their bodies. The first of the two limits that is reached applies."""


class Notification(msgspec.Struct, frozen=True):
    """A body to be delivered. `final` marks the task's terminal status. `origin` is the span for which it is."""

    body: bytes
    final: bool
    origin: Origin = None


@final
class DeliveryQueue:
    """The notifications for one target, and the state of their delivery.

    `count(size)` is told of every byte that is held more, or less: those that wait, and the one that was taken last, until it is
    released.
    """

    def __init__(self, target: PushTarget, count: Callable[[int], None] = lambda _: None) -> None:
        self.target = target
        self._count = count
        self.dropped = 0
        """Notifications that overflowed since this was last logged."""
        self.failures = 0
        """Consecutive notifications that could not be delivered."""
        self.given_up = False
        """Too many failures: nothing is delivered until the target changes."""
        self.closed = False
        """The task's final notification has been queued."""
        self.delivery_scope: anyio.CancelScope | None = None
        """Set while a task delivers from this queue."""
        self.backoff_scope: anyio.CancelScope | None = None
        """Set while that task waits before its next attempt."""
        self._queue: deque[Notification] = deque()
        self.bytes = 0
        """Of the bodies that wait."""
        self._taken = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, notification: Notification) -> None:
        """Add a notification. If the queue overflows, the oldest ones are dropped, but never the final one."""
        self._queue.append(notification)
        self.closed = self.closed or notification.final
        self.bytes += len(notification.body)
        self._count(len(notification.body))
        while (len(self._queue) > MAX_NOTIFICATIONS or self.bytes > MAX_BYTES) and not self._queue[0].final:
            self.drop()

    def drop(self) -> None:
        """Drop the oldest notification, of which there must be one."""
        self._count(-len(self._pop().body))
        self.dropped += 1

    def take(self) -> Notification | None:
        """Remove and return the oldest notification; None if there is none. It replaces the one that was taken before."""
        self.release()
        if not self._queue:
            return None
        notification = self._pop()
        self._taken = len(notification.body)
        return notification

    def release(self) -> None:
        """What was taken is not held any more."""
        self._count(-self._taken)
        self._taken = 0

    def clear(self) -> int:
        """Drop every notification that waits. Returns how many there were."""
        count = len(self._queue)
        self._queue.clear()
        self._count(-self.bytes)
        self.bytes = 0
        return count

    def _pop(self) -> Notification:
        notification = self._queue.popleft()
        self.bytes -= len(notification.body)
        return notification

    def replace_target(self, target: PushTarget) -> None:
        """Deliver to this target from now on. Failures of the previous one do not count any more."""
        self.target = target
        self.failures = 0
        self.given_up = False
