"""The names of the methods of discovery. Imports nothing, because every daemon loads it."""

from __future__ import annotations

from typing import Final

DISCOVERY: Final = frozenset(
    {"services/list", "services/schema", "services/call", "services/subscribe", "services/metrics", "rpc.discover"}
)
