"""Makes identifiers of tasks, messages, artifacts and push configs, and recognizes them."""

from __future__ import annotations

import os
import re
from typing import Final

_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def new_id() -> str:
    """A random UUID (RFC 9562, version 4). Does without `uuid`, whose import alone costs more than a task."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_new_id(text: str) -> bool:
    """Whether `new_id` could have made this text. If so, it holds no secret and may be repeated to the caller."""
    return _UUID4.fullmatch(text) is not None
