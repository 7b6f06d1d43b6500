"""How often Python looks for garbage in a process that serves. Set before most of the daemon is imported."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLD: Final = 10_000
"""Container objects made before the youngest are looked through. Python's 700 makes decoding a large request cost twice
as much (measured: 8 MB of nested objects, 291 ms against 166 ms), and a start a tenth more; apps may set their own."""


def collect_seldom() -> None:
    """From now on. A second call does nothing."""
    gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
