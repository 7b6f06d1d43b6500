"""Holds identities, and values that are cached for each. Imports nothing of the daemon, as the client's model of A2A loads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """A caller. `subject` names it for handlers and logs, and holds no credential. `scopes` is None for every scope."""

    subject: str
    scopes: frozenset[str] | None = frozenset()


MAX_IDENTITIES: Final = 64
"""After that the oldest is dropped: an identity provider may know any number of callers."""

T = TypeVar("T")


@final
class IdentityCache(Generic[T]):
    """Values that are the same for every call of one identity, so that large listings are not built anew each time."""

    def __init__(self) -> None:
        self._values: dict[Identity | None, T] = {}
        self._change_count = 0

    def get(self, identity: Identity | None, make: Callable[[], T], change_count: int) -> T:
        """Return the value for this identity, and make it if there is none yet. A new `change_count` drops all values."""
        if change_count != self._change_count:
            self._values.clear()
            self._change_count = change_count
        if identity not in self._values:
            if len(self._values) >= MAX_IDENTITIES:
                del self._values[next(iter(self._values))]
            self._values[identity] = make()
        return self._values[identity]
