"""A service of subscriptions."""

from __future__ import annotations

import pytest

from support.ticks import Ticks


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()
