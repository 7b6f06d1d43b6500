"""Timestamps as the protocol writes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.a2a.types import ceil_timestamp

EAST = timezone(timedelta(hours=2))
WEST = timezone(timedelta(hours=-2))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC), "2026-01-31T23:59:59.000Z"),
        (datetime(2026, 2, 1, 1, 59, 59, 999_000, EAST), "2026-01-31T23:59:59.999Z"),
        (datetime(2026, 1, 31, 23, 59, 59, 999_001, UTC), "2026-02-01T00:00:00.000Z"),
        (datetime(33, 1, 1, tzinfo=UTC), "0033-01-01T00:00:00.000Z"),
        (datetime(1, 1, 1, tzinfo=EAST), "0001-01-01T00:00:00.000Z"),
        (datetime(9999, 12, 31, 23, tzinfo=WEST), "9999-12-31T23:59:59.999Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_timestamp_is_in_utc_with_milliseconds(moment: datetime, text: str) -> None:
    assert ceil_timestamp(moment) == text


moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.sampled_from([UTC, EAST, WEST]))


@given(moments, moments)
def test_timestamps_sort_as_their_moments_do(one: datetime, other: datetime) -> None:
    timestamp = one.replace(microsecond=one.microsecond // 1000 * 1000)
    assert (ceil_timestamp(timestamp) >= ceil_timestamp(other)) == (timestamp >= other)
