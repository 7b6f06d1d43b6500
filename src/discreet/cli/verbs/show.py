"""`discreet show`: renders a recorded session for people, as lines or as a page. Reads the file, and starts nothing."""

import argparse
import sys
from collections.abc import Iterator

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...recording.format import RecordingError, read_entries
from ...recording.lines import Lines
from ..output import has_colour, require_stdout, write_stdout


def run(args: argparse.Namespace) -> int:
    """Print the session. Raises `UsageError` for a file that is no recording."""
    require_stdout()
    if args.html and sys.stdout.isatty():
        raise UsageError(
            "--html prints a page for a browser, not for a terminal: discreet show FILE --html > page.html"
        )
    try:
        for part in _page(args.file) if args.html else _lines(args.file, full=args.full):
            write_stdout(part)
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc
    return EXIT_OK


def _page(path: str) -> Iterator[str]:
    from ...recording.page import page  # late: lines don't need it

    return page(read_entries(path), name=path)


def _lines(path: str, *, full: bool) -> Iterator[str]:
    lines = Lines(full=full, colour=has_colour("stdout"))
    yield from map(lines.line, read_entries(path))
    yield lines.summary()
