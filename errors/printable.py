"""Text for a terminal. Escapes characters that move a cursor, colour, ring, or end a line; cuts what is too long, and says so."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line: control characters, DEL, line ends, direction marks and lone surrogates as Python escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def cut(text: str, characters: int) -> str:
    """The text; if it has more characters than that, its beginning and a note of its length."""
    return text if len(text) <= characters else f"{text[:characters]}… ({len(text)} characters)"


def printable_json(document: str) -> str:
    """Return the JSON document with every character that does not print as a JSON escape; line ends stay."""
    if document.isprintable():
        return document
    return "".join(char if char.isprintable() or char == "\n" else _json_escape(char) for char in document)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
