"""Counts the bytes that the daemon holds for its clients, by kind, against one limit. Frees nothing and stores nothing.

docs/protocol.md, section 4, says what counts where. Back-pressure comes first: from half of the limit on, streams wait
before their next event, and large requests wait for others to end. What does not fit all the same is refused with OVERLOADED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final, get_args

import msgspec
from msgspec import Raw

Kind: TypeAlias = Literal[
    "requests", "replies", "events", "tasks", "handlers", "documents", "sessions", "notifications"
]
"""`handlers` is what running handlers say that they keep: the listings of `fs/watch`. `documents` are those that editors have
open; `sessions` what clients of MCP have said of themselves, what they subscribed to, and what is sent again to those that
were cut off; `notifications` are push notifications that wait for their receivers."""

_LASTING: Final[frozenset[Kind]] = frozenset({"tasks", "handlers", "documents", "sessions", "notifications"})
"""Kinds that waiting frees nothing of, so that they make no producer wait."""

SMALL: Final = 64 * 1024
"""Bodies up to this size count as they are: their decoded form is small enough not to be weighed."""

CONTAINER_BYTES: Final = 72
"""What a decoded array or object takes at least, with the reference to it (CPython, 64 bit: 56 to 64, and 8)."""

VALUE_BYTES: Final = 56
"""What any other decoded value takes, with the reference to it: small strings and floats; measured, not exact."""


@final
class MemoryBudget:
    """One per process. `limit` is in bytes. Used on the loop's thread only.

    `on_room` are called whenever the transient kinds (requests, replies, events) fall below half of the limit.
    """

    __slots__ = ("_held", "_lasting", "_transient", "limit", "on_room")

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self.on_room: Final[list[Callable[[], None]]] = []
        self._held: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
        self._transient = self._lasting = 0

    @property
    def used(self) -> int:
        """Bytes of all kinds."""
        return self._transient + self._lasting

    def by_kind(self) -> dict[Kind, int]:
        return dict(self._held)

    def held(self, kind: Kind) -> int:
        """Bytes of one kind."""
        return self._held[kind]

    @property
    def congested(self) -> bool:
        """True while requests, replies and events take half of the limit or more, so that producers should wait."""
        return 2 * self._transient >= self.limit

    def fits(self, size: int) -> bool:
        """Whether so many bytes more stay within the limit."""
        return self.used + size <= self.limit

    def add(self, kind: Kind, size: int) -> None:
        """Count so many bytes more; fewer where `size` is negative."""
        self._held[kind] += size
        if kind in _LASTING:
            self._lasting += size
        else:
            before = self._transient
            self._transient = after = before + size
            if 2 * after < self.limit <= 2 * before:
                for tell in self.on_room:
                    tell()


RESERVE_BYTES: Final = 1024 * 1024
"""Enough to build and log some error replies."""


@final
class Reserve:
    """Memory that is kept for the answers to what failed for want of memory. Any thread may use it."""

    def __init__(self) -> None:
        self._kept: bytearray | None = bytearray(RESERVE_BYTES)
        self.used = False
        """Whether it was given up, and should be kept again."""

    def free(self) -> None:
        """There is no memory left: give up what is kept. Call it before a `MemoryError` is answered or logged."""
        self._kept = None
        self.used = True

    def keep(self) -> None:
        """Keep it again if there is memory. Called whenever a request has ended."""
        if self._kept is None:
            try:
                self._kept = bytearray(RESERVE_BYTES)
                self.used = False
            except MemoryError:
                pass  # the next request tries again


reserve: Final = Reserve()


def decoded_size(text: Raw | None, size: int) -> int:
    """About how many bytes a JSON text takes once it is decoded; `size` is that of the body which holds it.

    Arrays, objects and values are counted by their punctuation, which is exact but for what stands inside strings.
    """
    if text is None or size <= SMALL:
        return size
    data = bytes(text)
    return size + (_count(data, b"[") + _count(data, b"{")) * CONTAINER_BYTES + _count(data, b",") * VALUE_BYTES


def _count(data: bytes, byte: bytes) -> int:
    return data.count(byte) if byte in data else 0  # to find that there is none takes a tenth of the time


def values_size(values: object, otherwise: int) -> int:
    """About how many bytes decoded values take; `otherwise` where they can't be written as JSON again."""
    try:
        text = msgspec.json.encode(values)
    except Exception:  # noqa: BLE001 - a type with an encoder hook of the app; the size is an estimate anyway
        return otherwise
    return decoded_size(Raw(text), len(text))
