"""What a test needs beside Python: without it the test is skipped, or fails where everything must be there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skips the test. With `DISCREET_INTEROP_REQUIRED=1`, as in continuous integration, fails it."""
    if os.environ.get("DISCREET_INTEROP_REQUIRED") == "1":
        pytest.fail(f"{what}; DISCREET_INTEROP_REQUIRED is set")
    pytest.skip(what)
