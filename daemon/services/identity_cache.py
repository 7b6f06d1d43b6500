"""Keeps what is the same for every call of one identity, so that large listings are not built anew each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

from ..operations.access import Identity

MAX_IDENTITIES: Final = 64
"""After that the oldest is dropped: an identity provider may know any number of callers."""

T = TypeVar("T")


@final
class IdentityCache(Generic[T]):
    """Values by identity. What they are made of must not change while the daemon runs."""

    def __init__(self) -> None:
        self._values: dict[Identity | None, T] = {}

    def get(self, identity: Identity | None, make: Callable[[], T]) -> T:
        """The value for this identity, made where there is none yet."""
        if identity not in self._values:
            if len(self._values) >= MAX_IDENTITIES:
                del self._values[next(iter(self._values))]
            self._values[identity] = make()
        return self._values[identity]
