"""The last requests that came by HTTP: when, which method, how each ended, how long it took. Holds nothing that was sent or answered."""

from __future__ import annotations

from collections import deque
from typing import Final, final

import msgspec

MAX_REQUESTS: Final = 100
"""How many are kept."""

OK: Final = "ok"
"""The outcome of a request that did not fail."""

OTHER: Final = "other"
"""Stands for every method that the caller may not call, or that is none: names that callers make up are not kept."""


class RecentRequest(msgspec.Struct, frozen=True):
    """It ended `at` so many seconds after 1970, and took `ms` milliseconds. `method` is a declared name, or `OTHER`; `outcome` is `OK`
    or the code of a failure."""

    at: float
    method: str
    outcome: str
    ms: float


@final
class RecentRequests:
    """Those of all callers. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._requests: deque[tuple[str, RecentRequest]] = deque(maxlen=MAX_REQUESTS)

    def add(self, subject: str, request: RecentRequest) -> None:
        """A request has ended that this subject sent."""
        self._requests.append((subject, request))

    def of(self, subject: str | None) -> list[RecentRequest]:
        """Those of this subject, of everybody for None: the newest first."""
        return [request for sender, request in reversed(self._requests) if subject is None or sender == subject]
