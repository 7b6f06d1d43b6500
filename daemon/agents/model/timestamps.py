"""Moments of callers, as the protocol writes them: RFC 3339, in UTC, with milliseconds. Such texts compare as their times do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_FIRST: Final = "0001-01-01T00:00:00.000Z"
_LAST: Final = "9999-12-31T23:59:59.999Z"
_BELOW_MILLI: Final = timedelta(microseconds=999)


def at_or_after(moment: datetime) -> str:
    """The first millisecond that is not before a moment with an offset: `2026-01-31T23:59:59.999Z`.

    A timestamp, which has no finer parts, is not below it if and only if it is not before the moment. What lies outside of
    the years 1 to 9999 once it is in UTC becomes the first or the last of them.
    """
    try:
        utc = moment.astimezone(UTC) + _BELOW_MILLI
    except OverflowError:
        return _FIRST if moment.year == 1 else _LAST
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
