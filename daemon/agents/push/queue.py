"""What waits for one push target: a bounded queue in the order of the events. Sends nothing, waits for nothing, logs nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

import msgspec

from ..stores.interface import PushTarget

if TYPE_CHECKING:
    import anyio

MOST: Final = 1024
"""Notifications that wait for one target."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of their bodies, which also bounds them, whichever comes first."""


class Notification(msgspec.Struct, frozen=True):
    """One body to be delivered. `last` is the task's terminal status."""

    body: bytes
    last: bool


@final
class DeliveryQueue:
    """The notifications for one target, and how it stands with it."""

    def __init__(self, target: PushTarget) -> None:
        self.target = target
        self.dropped = 0
        """How many have not found room since the queue was empty last."""
        self.failures = 0
        """How many in a row could not be delivered."""
        self.given_up = False
        self.closed = False
        """The last notification of the task has come."""
        self.work: anyio.CancelScope | None = None
        """Set while somebody delivers."""
        self.pause: anyio.CancelScope | None = None
        """Set while whoever delivers waits before the next attempt."""
        self._queue: deque[Notification] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, notification: Notification) -> None:
        """Add one. Where there is no room the oldest go, but never the last of a task: how it ended is what matters most."""
        self._queue.append(notification)
        self.closed = self.closed or notification.last
        self._bytes += len(notification.body)
        while (len(self._queue) > MOST or self._bytes > MOST_BYTES) and not self._queue[0].last:
            self.take()
            self.dropped += 1

    def take(self) -> Notification | None:
        """The oldest, which is no longer here then."""
        if not self._queue:
            return None
        notification = self._queue.popleft()
        self._bytes -= len(notification.body)
        return notification

    def clear(self) -> int:
        """Forget what waits; how many that were."""
        count = len(self._queue)
        self._queue.clear()
        self._bytes = 0
        return count

    def revive(self, target: PushTarget) -> None:
        """The target was set anew: what was true of it need not be true any more."""
        self.target = target
        self.failures = 0
        self.given_up = False
