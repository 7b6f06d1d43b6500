"""`discreet show`: renders a recorded session for people, as lines or as a page. Reads the file, and starts nothing."""

import argparse
import sys

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...recording.view.lines import SHOWN_CHARACTERS, Lines
from ..output import has_colour, require_stdout, write_stdout
from ..recorded_session import open_entries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and in which form it is shown."""
    parser.add_argument("file", metavar="FILE", help="a recording, as discreet record writes it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--full", action="store_true", help=f"show values of more than {SHOWN_CHARACTERS} characters whole"
    )
    form.add_argument(
        "--html", action="store_true", help="print one HTML page instead, for a browser; it loads nothing from anywhere"
    )


def run(args: argparse.Namespace) -> int:
    """Print the session. Raises `UsageError` for a file that is no recording."""
    require_stdout()
    entries = open_entries(args.file)
    if args.html:
        if sys.stdout.isatty():
            raise UsageError(
                "--html prints a page for a browser, not for a terminal: discreet show FILE --html > page.html"
            )
        from ...recording.view.page import page  # late: lines don't need it

        for part in page(entries, name=args.file):
            write_stdout(part)
        return EXIT_OK
    lines = Lines(full=args.full, colour=has_colour("stdout"))
    for entry in entries:
        write_stdout(lines.line(entry))
    write_stdout(lines.summary())
    return EXIT_OK
