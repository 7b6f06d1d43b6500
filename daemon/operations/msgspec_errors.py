"""How msgspec says that a JSON text does not fit a type."""

from __future__ import annotations

from typing import Final

import msgspec

REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)
"""The last two for values nested too deeply, and for those of a set that can't be in one. Their messages hold keys and
values of the caller: they are never read, passed on or chained."""
