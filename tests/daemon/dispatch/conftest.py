"""An operation that waits at a gate."""

from __future__ import annotations

import pytest

from support.gates import Gate


@pytest.fixture
def gate() -> Gate:
    return Gate()
