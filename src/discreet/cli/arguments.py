"""Arguments that several verbs share: numbers, and the flags and command lines of servers that they start. Starts nothing."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from ..daemon.settings import UsageError


def _program() -> tuple[str, ...]:
    """This program: the package, or the archive (a zipapp) that was started and alone knows where the package is."""
    archive = getattr(getattr(sys.modules["__main__"], "__loader__", None), "archive", None)
    return (os.path.abspath(archive),) if isinstance(archive, str) else ("-m", "discreet")


SERVE: Final = (sys.executable, "-P", *_program(), "serve")
"""This program's own daemon. `-P` keeps the working directory off its import path."""


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
    """Read a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return number


def timeout(text: str) -> float | None:
    """Read a finite number of seconds above 0, or None for the word `none`: no limit."""
    try:
        return None if text == "none" else positive_seconds(text)
    except argparse.ArgumentTypeError as exc:
        raise argparse.ArgumentTypeError(f"{exc}, or none") from None


def count(text: str) -> int:
    """Read a whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)


def process_id(text: str) -> int:
    """Read the number of a process."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text}: must be the number of a process")
    return int(text)


def field_pattern(text: str) -> str:
    """Read a pattern of paths in a message."""
    from ..client.json_path import parse_pattern  # late: few verbs need it

    if not text:
        raise argparse.ArgumentTypeError("it names nothing; ** is everything")
    try:
        parse_pattern(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    return text
