"""Counts the bytes that the daemon holds for its clients, by kind, against one limit. Frees nothing and stores nothing.

docs/protocol.md, section 4, says what counts where. Back-pressure comes first: from half of the limit on, streams wait
before their next event, and large requests wait for others to end. What does not fit all the same is refused with OVERLOADED.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final, get_args

import msgspec
from msgspec import Raw

from ..errors.decoders import address_space_limit

# Memory of the process, as the C library gives it out: what a limit on the address space (`ulimit -v`) leaves for requests and
# threads, and large messages whose memory is given back. Sets no limit itself.
#
# Without memory, libraries in C crash rather than raise. So a daemon under such a limit stays well away from it.
#
# glibc raises the size from which it maps blocks on their own each time such a block is freed, up to 32 MiB. Then large messages
# share heaps with small objects, one heap for each thread, and a heap is given back only from its end. Measured with
# `bench/soak.py`: without `map_large_blocks` a daemon grows by a MiB a second, with it by none.


# How often Python looks for garbage in a process that serves. Apps may set thresholds of their own, at their import too.


STARTING: Final = 100_000
"""Container objects made before the youngest are looked through, while the program and the apps are imported. What is made then
stays, and to look through it takes a tenth of the time to the first answer. Apps that make more are still collected."""

SERVING: Final = 10_000
"""The same from then on. Python's 700 makes decoding a large request cost twice as much (measured: 8 MB of nested objects,
291 ms against 166 ms)."""


def begin_start() -> None:
    """Before most of the daemon is imported. A second call does nothing."""
    gc.set_threshold(STARTING, *gc.get_threshold()[1:])


def end_start() -> None:
    """What is loaded by now stays: no collection needs to look through it again."""
    gc.freeze()
    threshold, *older = gc.get_threshold()
    if threshold == STARTING:
        gc.set_threshold(SERVING, *older)


SHARE: Final = 4
"""A quarter of what is free at the start is for requests and replies, another one for the stacks of threads. The rest is
for what is decoded, for handlers, and for what the allocator keeps."""

STACK_BYTES: Final = 8 * 1024 * 1024
"""A thread's stack where nothing else is set (glibc)."""

FEWEST_THREADS: Final = 2

_M_ARENA_MAX: Final = -8
"""Of `mallopt`, in glibc's malloc.h."""


def free_address_space() -> int | None:
    """Bytes that this process may still map; None where nothing limits it, or where that can't be known."""
    limit = address_space_limit()
    if limit is None or sys.platform == "win32":
        return None
    import resource  # not on Windows

    try:
        with open("/proc/self/statm", "rb") as numbers:
            used = int(numbers.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return None
    return max(limit - used, 0)


def fitting_memory(wanted: int) -> int:
    """A budget of memory, less than `wanted` if it would not fit."""
    free = free_address_space()
    return wanted if free is None else min(wanted, free // SHARE)


def fitting_threads(wanted: int) -> int:
    """A number of threads, less than `wanted` if their stacks would not fit, and at least two."""
    free = free_address_space()
    return wanted if free is None else min(wanted, max(free // SHARE // STACK_BYTES, FEWEST_THREADS))


def save_address_space() -> None:
    """Under a limit, let all threads allocate from one heap: glibc would map 64 MiB for each of the first ones."""
    if sys.platform != "linux" or free_address_space() is None:
        return
    import ctypes  # late: few are limited

    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
        ctypes.CDLL("libgcc_s.so.1")  # the first thread that ends loads it, and aborts the process if it can't
    except (OSError, AttributeError):  # another C library
        pass


MAP_FROM_BYTES: Final = 256 * 1024
"""Blocks of this size and more are mapped on their own, and unmapped when they are freed."""

_M_MMAP_THRESHOLD: Final = -3  # malloc.h
_done = False


def map_large_blocks() -> None:
    """Fix that size, once in a process. Cheap enough to be called for each large message."""
    global _done  # noqa: PLW0603 - the allocator exists once in a process, too
    if _done:
        return
    _done = True
    if sys.platform != "linux":
        return
    import ctypes  # late: only large messages need it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAP_FROM_BYTES)


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
        return self._transient + self._lasting + size <= self.limit

    def fits_share(self, kind: Kind, size: int, share: float) -> bool:
        """Whether so many bytes more of one kind fit, too, and leave it within its share of the limit."""
        return self.fits(size) and self._held[kind] + size <= share * self.limit

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
    data = memoryview(text)
    values = containers = 0
    for start in range(0, len(data), SMALL):  # a copy of the whole costs more than the count
        part = bytes(data[start : start + SMALL])
        containers += _count(part, b"[") + _count(part, b"{")
        values += _count(part, b",")
    return size + containers * CONTAINER_BYTES + values * VALUE_BYTES


def _count(data: bytes, byte: bytes) -> int:
    return data.count(byte) if byte in data else 0  # to find that there is none takes a tenth of the time


def values_size(values: tuple[object, ...], otherwise: int) -> int:
    """About how many bytes decoded values take; `otherwise` where they can't be written as JSON again."""
    texts = [value for value in values if type(value) is str]  # the largest are: no copy is made of them
    try:
        rest = msgspec.json.encode([value for value in values if type(value) is not str])
    except Exception:  # noqa: BLE001 - a type with an encoder hook of the app; the size is an estimate anyway
        return otherwise
    return sum(map(sys.getsizeof, texts)) + decoded_size(Raw(rest), len(rest))
