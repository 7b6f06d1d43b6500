"""What was recorded while a test ran."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from support.spans import Spans, recorded


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recorded() as found:
        yield found
