"""What was recorded while a test ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.spans import Spans


@pytest.fixture
def spans() -> Iterator[Spans]:
    from support.spans import recorded  # here: where it is not installed, each module is skipped

    with recorded() as found:
        yield found
