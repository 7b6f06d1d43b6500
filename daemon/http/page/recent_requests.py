"""The last requests that came by HTTP: when each ended and how, which method, how long it took. Holds nothing that was sent."""

from __future__ import annotations

from collections import deque
from time import time
from typing import TYPE_CHECKING, Final, final

import msgspec

from ....errors.failures import Cancelled
from ...dispatch.request import OK, OTHER, code_of

if TYPE_CHECKING:
    from ...dispatch.request import Outcome
    from ...operations.access import Access

MAX_REQUESTS: Final = 100
"""How many are kept."""


class RecentRequest(msgspec.Struct, frozen=True):
    """It ended `at` so many seconds after 1970, and took `ms` milliseconds. `method` is the declared name of one that the
    caller may call, or `OTHER`: names that callers make up are not kept. `outcome` is `OK`, or the code of a failure."""

    at: float
    method: str
    outcome: str
    ms: float


@final
class RecentRequests:
    """Those of all callers. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._requests: deque[tuple[str | None, RecentRequest]] = deque(maxlen=MAX_REQUESTS)

    def add(self, access: Access, name: str | None, outcome: Outcome | None, seconds: float) -> None:
        """A request of this caller has ended. `name` is that of the operation that the caller may call; there is no outcome
        where the client went before."""
        subject = _subject_of(access)
        if subject is None and access.provider is not None:
            return  # nobody could see it
        ended = Cancelled() if outcome is None else outcome
        code = OK if isinstance(ended, bytes) else code_of(ended)
        self._requests.append((subject, RecentRequest(time(), name or OTHER, code, round(seconds * 1000, 3))))

    def of(self, access: Access) -> list[RecentRequest]:
        """Those of this caller, or of everybody where nobody tells callers apart: the newest first."""
        subject = _subject_of(access)
        return [request for sender, request in reversed(self._requests) if access.provider is None or sender == subject]


def _subject_of(access: Access) -> str | None:
    return None if access.caller is None else access.caller.subject
