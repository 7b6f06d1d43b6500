"""The event loops that a daemon may run on, as `--backend` names them."""

from __future__ import annotations

import sys
from typing import Final

BACKENDS: Final = ("asyncio", "trio") if sys.platform == "win32" else ("asyncio", "uvloop", "trio")
