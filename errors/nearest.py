"""Which known name was probably meant by one that is unknown. Runs only where something is wrong already."""

from __future__ import annotations

from collections.abc import Iterable


def closest_match(word: str, known: Iterable[str], *, cutoff: float = 0.0) -> str:
    """The most similar known word; empty if none reaches the cutoff (a ratio from 0 to 1)."""
    from difflib import get_close_matches  # late: only errors need it

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), "")


def nearest_hint(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `; nearest: NAME`, as the end of a message; empty where no known word is much like this one."""
    near = closest_match(word, known, cutoff=cutoff)
    return f"; nearest: {near}" if near else ""
