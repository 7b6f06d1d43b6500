"""What tests of the dialects share: the published schemas, where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.daemon_wire import logged as logged  # noqa: PLC0414 - a fixture
from support.daemon_wire import serving as serving  # noqa: PLC0414 - a fixture
from support.daemon_wire import wire_class as wire_class  # noqa: PLC0414 - a fixture


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: what is read and said is the same on each. Tests of cancellation are marked with `both_loops`."""
    return "asyncio"


@pytest.fixture(scope="session")
def schemas() -> Path:
    """The folder with the schemas that the generated modules are written from."""
    folder = os.environ.get("DISCREET_SCHEMAS")
    if not folder:
        pytest.skip("DISCREET_SCHEMAS names no folder with the published schemas")
    return Path(folder)
