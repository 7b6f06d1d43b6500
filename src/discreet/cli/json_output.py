"""JSON documents on stdout: compact when piped, indented and coloured on a terminal. On stderr: a line each.

Never changes a document's content: numbers and strings stay as they were written.
"""

import sys
from typing import Any, Final

import msgspec
from msgspec import Raw

from ..errors.printable import cut, printable_json
from .output import MAX_LINE_CHARACTERS, write_stderr_line, write_stdout

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
    elif not _print_coloured(printable_json(document)):
        write_stdout(printable_json(document))


def note_json(value: Any) -> None:  # Any: JSON
    """Write one JSON document as a line on stderr; a long one is cut. Never raises."""
    write_stderr_line(printable_json(cut(msgspec.json.encode(value).decode(), MAX_LINE_CHARACTERS)))


def _print_coloured(document: str) -> bool:
    """Print it with rich. Returns False if rich is not installed."""
    try:  # late: most runs don't need it
        from rich.console import Console
        from rich.highlighter import JSONHighlighter
    except ImportError:
        return False
    Console(soft_wrap=True).print(JSONHighlighter()(document))
    return True
