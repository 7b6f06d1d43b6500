"""Reads the header `Retry-After` (RFC 9110, section 10.2.3). Knows one clock, that of the system."""

from __future__ import annotations

from typing import Final

_LONGEST_SECONDS: Final = len("999999999")


def retry_after_seconds(text: str) -> float | None:
    """The header's seconds, or the seconds until its date; None for what is neither. Never below 0."""
    from email.utils import parsedate_to_datetime  # late: seldom needed
    from time import time

    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:_LONGEST_SECONDS])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, OverflowError):
        return None
