"""The event loops that a daemon may run on, as `--backend` names them."""

from __future__ import annotations

import sys
from typing import Final

import pytest

BACKENDS: Final = ("asyncio", "trio") if sys.platform == "win32" else ("asyncio", "uvloop", "trio")

both_loops = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For a test that the loop may decide, where the other tests beside it run on one."""
