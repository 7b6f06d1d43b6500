"""Requests that must not overlap (`serial`, `keyed`): one after the other for each key, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from .request import Request


@final
class _Key:
    """How many requests hold a key, and which ones wait for it."""

    __slots__ = ("holders", "waiting")

    def __init__(self) -> None:
        self.holders = 0
        self.waiting: deque[Request] = deque()


@final
class SerialKeys:
    """Keys, each held by as many requests at a time as the operation's `width` (one for `serial` and `keyed`).

    A request that waits for its key holds up no request of another key.
    """

    def __init__(self) -> None:
        self._keys: dict[Hashable, _Key] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def acquire(self, request: Request) -> bool:
        """Take the request's key; False when it has to wait for it, behind those that came before."""
        key = self._keys.setdefault(request.serial_key, _Key())
        if key.holders >= request.spec.width:
            key.waiting.append(request)
            return False
        key.holders += 1
        return True

    def release(self, request: Request) -> Request | None:
        """Give the request's key back; the request that holds it from now on, if one waited."""
        key = self._keys[request.serial_key]
        if key.waiting:
            return key.waiting.popleft()
        key.holders -= 1
        if not key.holders:
            del self._keys[request.serial_key]
        return None

    def waiting_for(self, serial_key: Hashable) -> list[Request]:
        """The requests that wait for a key, in order."""
        key = self._keys.get(serial_key)
        return [] if key is None else [*key.waiting]
