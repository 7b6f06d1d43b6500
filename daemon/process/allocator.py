"""Memory of the process, as the C library gives it out: what a limit on the address space (`ulimit -v`) leaves for requests and
threads, and large messages whose memory is given back. Sets no limit itself.

Without memory, libraries in C crash rather than raise. So a daemon under such a limit stays well away from it.

glibc raises the size from which it maps blocks on their own each time such a block is freed, up to 32 MiB. Then large messages
share heaps with small objects, one heap for each thread, and a heap is given back only from its end. Measured with
`bench/soak.py`: without `map_large_blocks` a daemon grows by a MiB a second, with it by none.
"""

from __future__ import annotations

import sys
from typing import Final

from ...errors.decoders import address_space_limit

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
