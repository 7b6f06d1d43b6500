"""Makes any text safe for one line of a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything escaped that could move a cursor, change a colour or end a line."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
