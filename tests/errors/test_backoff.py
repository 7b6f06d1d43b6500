"""The clock and the random numbers of the system, which back-off goes by outside tests."""

from __future__ import annotations

from itertools import pairwise

import anyio
import pytest

from discreet.errors.backoff import SYSTEM_TIMING


@pytest.mark.anyio
async def test_the_systems_timing_is_the_event_loops_clock_with_a_jitter_below_one() -> None:
    before = anyio.current_time()
    await SYSTEM_TIMING.sleep(0)
    assert before <= SYSTEM_TIMING.now() <= anyio.current_time()
    numbers = [SYSTEM_TIMING.jitter() for _ in range(100)]
    assert all(0 <= number < 1 for number in numbers)
    assert all(one != other for one, other in pairwise(numbers))
