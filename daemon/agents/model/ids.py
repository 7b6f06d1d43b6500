"""New identifiers, and the time of day as the protocol writes it."""

from __future__ import annotations

import os
import re
import time
from typing import Final

_OURS: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def new_id() -> str:
    """A random UUID (RFC 9562, version 4). Not by `uuid`, whose import alone costs more than a task."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_new_id(text: str) -> bool:
    """Whether `new_id` could have made this. What could is no caller's secret, and may be repeated to it."""
    return _OURS.fullmatch(text) is not None


_second = (0, "")


def now() -> str:
    """RFC 3339 in UTC with milliseconds: `2026-01-31T23:59:59.999Z`. Such texts compare as their times do."""
    global _second  # noqa: PLW0603 - the text of the current second is made once, for all that happens in it
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    if _second[0] != seconds:
        _second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    return f"{_second[1]}.{millis:03}Z"
