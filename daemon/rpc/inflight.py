"""The requests that wait for their answer. The only place that knows, and the reason why none gets two.

A request is admitted once and settled once. The first to settle it (the handler's result, a cancel, a deadline, the end
of the drain window) gives the answer. Later ones are told that there is nothing left to answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar, final

import msgspec

BACKSLASH: Final = 0x5C


class Answerable(Protocol):
    """What the table holds: a request that knows its id's key and whether it was answered."""

    key: bytes
    answered: bool


def id_key(raw: bytes) -> bytes:
    """The key of an id's JSON text.

    Texts that spell one string differently share a key. Numbers are compared as they are written: `1` and `1.0` are
    two ids here, as the reply to each echoes its own spelling.
    """
    if BACKSLASH in raw:
        return msgspec.json.encode(msgspec.json.decode(raw))
    return raw


R = TypeVar("R", bound=Answerable)


@final
class Inflight(Generic[R]):
    """Requests by id, from the moment they are admitted until they are answered."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: Final[dict[bytes, R]] = {}
        """Those that wait now, by their keys. A request whose key is not among them is admitted by adding it."""

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[R]:
        """Those that wait now."""
        return iter([*self.waiting.values()])

    def settle(self, request: R, *, hold: bool = False) -> bool:
        """Take the right to answer; True exactly once per admitted request.

        With `hold` the answer leaves later, and the id stays in flight until `release`.
        """
        if request.answered:
            return False
        request.answered = True
        if not hold:
            del self.waiting[request.key]
        return True

    def release(self, request: R) -> None:
        """The answer has left: the id may be used again."""
        del self.waiting[request.key]

    def find(self, key: bytes) -> R | None:
        """The request that waits under this key."""
        return self.waiting.get(key)
