"""The command lines of servers that verbs start. Starts nothing."""

import shlex
import sys
from typing import Final

from ..daemon.settings import UsageError

SERVE: Final = (sys.executable, "-P", "-m", "discreet", "serve")
"""This program's own daemon. `-P` keeps the working directory off its import path."""


def split_command(text: str) -> list[str]:
    """Split the value of `--server` into words, as a shell would. Raises `UsageError`."""
    try:
        command = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")
    return command
