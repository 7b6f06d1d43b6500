"""The limits of the scrubber. Values only."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_FIELD_CHARACTERS: Final = 8192
"""Characters that are kept of one field of a log event."""

MIN_SECRET_LENGTH: Final = 8
"""Characters of the shortest secret that is kept: a shorter one would match inside harmless words."""


class ScrubLimits(NamedTuple):
    """How much one call may read and do."""

    characters: int = 8 * 1024 * 1024
    """Characters that are read of one text; the rest is cut."""
    steps: int = 4096
    """Checks and replacements in one text, besides one for every sixteen characters of it."""
