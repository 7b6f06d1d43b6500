"""Who sends requests by HTTP. Each has a queue of its own, so that all take turns, and a limit of requests in flight."""

from __future__ import annotations

from typing import Final, final

from ..daemon.dispatch.backlog import Backlog
from ..daemon.dispatch.request import Request


@final
class _NeverCongested:
    """HTTP clients hold up their own replies only."""

    congested: bool = False

    async def wait_for_room(self) -> None: ...


@final
class Sender:
    """Requests of one identity, or of one address where callers are anonymous."""

    __slots__ = ("backlog", "in_flight")

    def __init__(self) -> None:
        self.backlog: Final[Backlog[Request]] = Backlog(_NeverCongested())
        self.in_flight = 0


@final
class ClientQuota:
    """Those with requests in flight. `limit` is how many each may have."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._senders: dict[str, Sender] = {}

    def enter(self, key: str) -> Sender | None:
        """The sender of one more request, which is in flight until `leave`; None where it has too many."""
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = Sender()
        if sender.in_flight >= self._limit:
            return None
        sender.in_flight += 1
        return sender

    def leave(self, key: str, sender: Sender) -> None:
        sender.in_flight -= 1
        if not sender.in_flight:
            del self._senders[key]
