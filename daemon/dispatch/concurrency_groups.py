"""Groups of requests of which only so many run at a time (`serial`, `keyed`): one after the other, in order.

The notifications of a client are such a group too, and requests behind those of plain `def` handlers wait for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from .backlog import Backlog
    from .request import Request


@final
class _Group:
    """How many requests of a group run, and which ones wait for their turn."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Request] = deque()


@final
class ConcurrencyGroups:
    """Lets as many requests of one group run at a time as their operation's `concurrency_limit` says.

    A request that waits for its turn holds up no request of another group.
    """

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def enter(self, request: Request) -> bool:
        """Take a slot in the request's group; False when it has to wait, behind those that came before."""
        group = self._groups.setdefault(request.group, _Group())
        if group.running >= request.spec.concurrency_limit:
            group.waiting.append(request)
            return False
        group.running += 1
        return True

    def leave(self, request: Request) -> Request | None:
        """Give the request's slot up; returns the request that has it from now on, if one waited."""
        group = self._groups[request.group]
        if group.waiting:
            return group.waiting.popleft()
        group.running -= 1
        if not group.running:
            del self._groups[request.group]
        return None

    def withdraw(self, request: Request) -> None:
        """It waits for its turn no longer."""
        self._groups[request.group].waiting.remove(request)

    def waiting(self, group: Hashable) -> list[Request]:
        """The requests of a group that wait for their turn, in order."""
        found = self._groups.get(group)
        return [] if found is None else [*found.waiting]


def expect_notification(request: Request, backlog: Backlog[Request]) -> None:
    """A notification was read. Requests that come now wait for it, unless its handler is a coroutine: that may wait for the
    client, and so for the requests behind it.
    """
    backlog.notifications += 1
    if request.spec.mode != "async":
        backlog.last_notification = request


def wait_behind(request: Request, notification: Request) -> None:
    """The request was read behind this notification."""
    if notification.behind is None:
        notification.behind = []
    notification.behind.append(request)


def let_pass(request: Request, backlog: Backlog[Request]) -> list[Request]:
    """The requests that waited for this notification wait no longer: it has ended, or its time is over."""
    if backlog.last_notification is request:
        backlog.last_notification = None
    waiting, request.behind = request.behind or [], None
    return waiting
