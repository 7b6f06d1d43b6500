"""The last requests that came by HTTP: when each ended and how, which method, how long it took. Holds nothing that was sent."""

from __future__ import annotations

from collections import deque
from time import time
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...daemon.dispatch.metrics import OK, OTHER, code_of
from ...errors.failures import Cancelled

if TYPE_CHECKING:
    from ...daemon.operations.access import Access
    from ...daemon.operations.request import Outcome

MAX_REQUESTS: Final = 100
"""How many of each caller are kept. So one with many does not push out those of others."""

MAX_CALLERS: Final = 64
"""Of how many callers some are kept: of those who called last. With `MAX_REQUESTS` that makes 2 MiB at most."""


class RecentRequest(msgspec.Struct, frozen=True):
    """It ended `at` so many seconds after 1970, and took `ms` milliseconds. `method` is the declared name of one that the
    caller may call, or `OTHER`: names that callers make up are not kept. `outcome` is `OK`, the code of a failure, or `HTTP 406`
    where the answer has a status alone."""

    at: float
    method: str
    outcome: str
    ms: float


@final
class RecentRequests:
    """Keeps the last requests of each caller; without an identity provider all callers are one. For the loop's thread only."""

    def __init__(self) -> None:
        self._by_caller: dict[str | None, deque[RecentRequest]] = {}

    def add(self, access: Access, name: str | None, outcome: Outcome | int | None, seconds: float) -> None:
        """A request of this caller has ended, with an outcome or a status. `name` is that of the operation that the caller may
        call; there is no outcome where the client went before."""
        if access.unknown_caller is not None:
            return  # no caller could see it
        caller = _caller_of(access)
        requests = self._by_caller.pop(caller, None) or deque(maxlen=MAX_REQUESTS)
        requests.append(RecentRequest(time(), name or OTHER, _told(outcome), round(seconds * 1000, 3)))
        self._by_caller[caller] = requests  # behind the others
        if len(self._by_caller) > MAX_CALLERS:
            del self._by_caller[next(iter(self._by_caller))]

    def of(self, access: Access) -> list[RecentRequest]:
        """Return those of this caller, or of all without an identity provider: the newest first."""
        return list(reversed(self._by_caller.get(_caller_of(access), ())))


def _caller_of(access: Access) -> str | None:
    return None if access.provider is None or access.caller is None else access.caller.subject


def _told(outcome: Outcome | int | None) -> str:
    match outcome:
        case bytes():
            return OK
        case int():
            return f"HTTP {outcome}"
        case _:
            return code_of(outcome or Cancelled())
