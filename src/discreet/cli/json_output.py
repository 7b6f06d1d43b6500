"""JSON documents on stdout: compact when piped, indented and coloured on a terminal.

Never changes a document's content: numbers and strings stay as they were written.
"""

import sys
from typing import Final

import msgspec
from msgspec import Raw

from .output import write_stdout

_INDENT: Final = 2


def print_json(text: Raw, *, one_line: bool) -> None:
    """Print one JSON document. It is indented only on a terminal, and only without `one_line`. Blocks while stdout is full.

    On a terminal it is coloured if rich is installed (the extra `cli`), which honours NO_COLOR; characters that do not
    print are shown as JSON escapes, so nothing in a document can move the cursor.
    """
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    indent = _INDENT if on_terminal and not one_line else -1
    document = msgspec.json.format(bytes(text), indent=indent).decode(errors="replace")
    if not on_terminal:
        write_stdout(document)
    elif not _print_coloured(_escape_unprintable(document)):
        write_stdout(_escape_unprintable(document))


def _escape_unprintable(document: str) -> str:
    """Return the document with every character that does not print as a JSON escape; line ends stay."""
    if document.isascii():  # JSON escapes the control characters of ASCII itself
        return document
    return "".join(char if char.isprintable() or char == "\n" else _json_escape(char) for char in document)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _print_coloured(document: str) -> bool:
    """Print it with rich. Returns False if rich is not installed."""
    try:  # late: most runs don't need it
        from rich.console import Console
        from rich.highlighter import JSONHighlighter
    except ImportError:
        return False
    Console(soft_wrap=True).print(JSONHighlighter()(document))
    return True
