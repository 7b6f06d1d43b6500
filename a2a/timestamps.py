"""Writes timestamps as the protocol does: RFC 3339 in UTC with milliseconds, `2026-01-31T23:59:59.999Z`.

Such texts sort as their times do.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

_MIN: Final = "0001-01-01T00:00:00.000Z"
_MAX: Final = "9999-12-31T23:59:59.999Z"
_BELOW_MILLISECOND: Final = timedelta(microseconds=999)

_current_second = (0, "")


def now() -> str:
    """The timestamp of the current moment."""
    global _current_second  # noqa: PLW0603 - the text of a second is formatted once, however many events it has
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    if _current_second[0] != seconds:
        _current_second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    return f"{_current_second[1]}.{millis:03}Z"


def ceil_timestamp(moment: datetime) -> str:
    """The timestamp of the first millisecond that is not before a moment, which must have an offset.

    So a timestamp is at or after the moment if and only if it sorts at or after this one. Moments outside of the years 1 to
    9999 in UTC give the first or the last timestamp of those years.
    """
    try:
        utc = moment.astimezone(UTC) + _BELOW_MILLISECOND
    except OverflowError:
        return _MIN if moment.year == 1 else _MAX
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
