"""Whether httpx is installed, which is an extra. Imports nothing of it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

INSTALL: Final = "pip install 'discreet[http]'"


def has_httpx() -> bool:
    """Whether HTTP can be spoken."""
    return find_spec("httpx") is not None
