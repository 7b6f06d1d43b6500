"""JSON on its way to stdout: as it is for programs, in a form to look at on a terminal.

Never changes what a document says: numbers and strings stay as they were written.
"""

import sys
from typing import Final

import msgspec
from msgspec import Raw

from .output import out

INDENT: Final = 2


def show(text: Raw, *, line: bool) -> None:
    """Print one JSON document, on one line if `line` or nobody looks at it. Blocks while nobody reads.

    On a terminal it is coloured if rich is installed (the extra `cli`), which honours NO_COLOR, and nothing in it can
    move the cursor.
    """
    watched = sys.stdout is not None and sys.stdout.isatty()
    indent = INDENT if watched and not line else -1
    document = msgspec.json.format(bytes(text), indent=indent).decode(errors="replace")
    if not watched:
        out(document)
    elif not _coloured(visible(document)):
        out(visible(document))


def visible(document: str) -> str:
    """The same document with every character that does not print as a JSON escape; line ends stay."""
    if document.isascii():  # JSON escapes the control characters of ASCII itself
        return document
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in document)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _coloured(document: str) -> bool:
    """Print it with rich; False where there is none."""
    try:  # late: few need it, and it is not always there
        from rich.console import Console
        from rich.highlighter import JSONHighlighter
    except ImportError:
        return False
    Console(soft_wrap=True).print(JSONHighlighter()(document))
    return True
