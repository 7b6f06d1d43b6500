"""Has the C allocator give back the memory of large messages. Linux with glibc; elsewhere nothing changes.

glibc raises the size from which it maps blocks on their own each time such a block is freed, up to 32 MiB. Then large
messages share heaps with small objects, one heap for each thread, and a heap is given back only from its end. Measured with
`bench/soak.py`: without this a daemon grows by a MiB a second, with it by none.
"""

from __future__ import annotations

import sys
from typing import Final

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
