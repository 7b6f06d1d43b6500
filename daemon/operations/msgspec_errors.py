"""The exceptions by which msgspec refuses a JSON text."""

from __future__ import annotations

from typing import Final

import msgspec

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)
"""`RecursionError` is for values nested too deeply, `TypeError` for set items that can't be hashed. Their messages quote
keys and values of the caller: never read them, pass them on or chain them."""
