"""JSON on its way to stdout: as it is for programs, in a form to look at on a terminal.

Never changes what a document says: numbers and strings stay as they were written.
"""

import sys
from typing import Final

import msgspec
from msgspec import Raw

from ..errors.printable import printable_json
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
    elif not _coloured(printable_json(document)):
        out(printable_json(document))


def _coloured(document: str) -> bool:
    """Print it with rich; False where there is none."""
    try:  # late: few need it, and it is not always there
        from rich.console import Console
        from rich.highlighter import JSONHighlighter
    except ImportError:
        return False
    Console(soft_wrap=True).print(JSONHighlighter()(document))
    return True
