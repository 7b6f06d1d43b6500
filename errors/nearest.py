"""Finds the known name that an unknown one probably meant. Runs only after an error."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

CUTOFF: Final = 0.6
"""From this ratio on a name counts as misspelt. It is difflib's own default."""

MAX_COMPARED: Final = 2000
"""How many known names are compared. A comparison takes about 10 µs."""


def closest_match(word: str, known: Iterable[str], *, cutoff: float = CUTOFF) -> str:
    """Return the most similar known word; empty if none reaches the cutoff (a ratio from 0 to 1)."""
    from difflib import get_close_matches  # late: only errors need it

    candidates = [name for name in islice(known, MAX_COMPARED) if cutoff * len(name) <= 2 * len(word)]
    return next(iter(get_close_matches(word, candidates, n=1, cutoff=cutoff)), "")


def nearest_hint(word: str, known: Iterable[str], *, cutoff: float = CUTOFF) -> str:
    """Return `; nearest: NAME`, as the end of a message; empty where no known word is much like this one."""
    near = closest_match(word, known, cutoff=cutoff)
    return f"; nearest: {near}" if near else ""
