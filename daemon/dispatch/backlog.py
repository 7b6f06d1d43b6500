"""The requests of one client that wait to be started, in the order in which they were read. Never drops one.

Full means that reading should stop, which is back-pressure by the pipe (section 4 of docs/protocol.md).
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar, final

MAX_REQUESTS: Final = 1024
MAX_BYTES: Final = 16 * 1024 * 1024
"""What may wait, whichever is reached first."""

STRETCH: Final = 4
"""How many times that, while a handler waits for an answer of the client, which stands behind other requests."""


class Sized(Protocol):
    """A request: `size` is how many bytes it holds while it waits."""

    @property
    def size(self) -> int: ...


R = TypeVar("R", bound=Sized)


class Congestible(Protocol):
    """The way to the client."""

    @property
    def congested(self) -> bool: ...


@final
class Backlog(Generic[R]):
    """Counts requests from `add` to `take`. Those that no other request holds back are `ready`, first in, first out.

    While `output` is congested nothing of it may start, because the client does not read.
    """

    __slots__ = ("_bytes", "_ready", "_waiting", "open", "output")

    def __init__(self, output: Congestible) -> None:
        self.output = output
        self.open = 0
        """Requests that were added and have not ended, running ones among them. The scheduler counts it down."""
        self._ready: deque[R] = deque()
        self._waiting = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def bytes(self) -> int:
        """The size of all that wait."""
        return self._bytes

    def full(self, *, times: int = 1) -> bool:
        """Whether the bound, or a multiple of it, is reached."""
        return self._waiting >= times * MAX_REQUESTS or self._bytes >= times * MAX_BYTES

    def add(self, request: R) -> None:
        """Count a request that waits, whether it is ready or held back by its serial key."""
        self.open += 1
        self._waiting += 1
        self._bytes += request.size

    def make_ready(self, request: R) -> None:
        """Nothing holds it back any more: it may start behind those that became ready before it."""
        self._ready.append(request)

    @property
    def ready(self) -> bool:
        """True while a request may start."""
        return bool(self._ready)

    @property
    def first(self) -> R:
        """The next request that may start. Only while `ready`."""
        return self._ready[0]

    def take(self) -> R:
        """Remove `first`: it does not wait any more."""
        request = self._ready.popleft()
        self._waiting -= 1
        self._bytes -= request.size
        return request
