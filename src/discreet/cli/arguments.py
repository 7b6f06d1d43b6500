"""Arguments that several verbs share: numbers, and the flags and command lines of servers that they start. Starts nothing."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from ..daemon.settings import UsageError
from ..flags import add_file_flags, file_from_flags


def _program() -> tuple[str, ...]:
    """This program: the package, or the archive (a zipapp) that was started and alone knows where the package is."""
    archive = getattr(getattr(sys.modules["__main__"], "__loader__", None), "archive", None)
    return (os.path.abspath(archive),) if isinstance(archive, str) else ("-m", "discreet")


SERVE: Final = (sys.executable, "-P", *_program(), "serve")
"""This program's own daemon. `-P` keeps the working directory off its import path."""


def add_source_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags of `discreet serve` that say what is hosted, and where it comes from."""
    group.add_argument(
        "--app",
        metavar="APP",
        action="append",
        default=[],
        help="an app, as for discreet serve; may be repeated (default: as in the settings of discreet serve)",
    )
    add_file_and_folder_flags(group)


def add_file_and_folder_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say where apps and settings come from."""
    group.add_argument("--app-dir", metavar="DIR", help="a directory whose modules are importable, too")
    add_file_flags(group)


def source_flags(args: argparse.Namespace) -> list[str]:
    """Return the same flags again, for `discreet serve`, whose apps are arguments."""
    return [*args.app, *file_and_folder_flags(args)]


def file_and_folder_flags(args: argparse.Namespace) -> list[str]:
    """Return these flags again."""
    folder = [] if args.app_dir is None else [f"--app-dir={args.app_dir}"]
    return [*folder, *file_from_flags(args).argv()]


def refuse_serve_flags(argv: Sequence[str], *, instead: str = "put what your server needs into --server") -> None:
    """Raise `UsageError` if any of these is given, flags of `discreet serve`, where something else is called."""
    for word in argv:
        what = word.partition("=")[0] if word.startswith("--") else f"an app ({word})"
        raise UsageError(f"{what} is for discreet serve; {instead}")


def split_command(text: str) -> list[str]:
    """Split the value of `--server` into words, as a shell would. Raises `UsageError`."""
    try:
        command = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")
    return command


def positive_seconds(text: str) -> float:
    """A finite number above 0."""
    seconds = _positive(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return seconds


def timeout(text: str) -> float | None:
    """A finite number of seconds above 0, or None for the word `none`: no limit."""
    if text == "none":
        return None
    seconds = _positive(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, or none")
    return seconds


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def count(text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)
