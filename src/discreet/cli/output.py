"""What the verbs say to people, on stdout. `serve` never comes here: its stdout belongs to the protocol."""

import os
import sys

from ..daemon.printable import printable
from ..daemon.settings import UsageError


def out(text: str) -> None:
    """Write lines and flush them. Characters that the terminal cannot show are escaped.

    No stdout means silence: whose results matter asks `require_stdout` first. Raises `BrokenPipeError` when nobody reads any
    more; the command line ends quietly on it.
    """
    stream = sys.stdout
    if stream is None:  # started with stdout closed
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def complain(message: str) -> None:
    """Write one line to stderr: control characters, line ends among them, are escaped.

    Raises nothing: where stderr takes no more, the exit status must say it all.
    """
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"discreet: {printable(message)}\n")
        sys.stderr.flush()
    except OSError:
        _divert(sys.stderr.fileno())


def require_stdout() -> None:
    """Raise `UsageError` where results could go nowhere: before anything is done for them."""
    if sys.stdout is None:
        raise UsageError("stdout is closed: there is nowhere to print the result")


def forget_stdout() -> None:
    """Nobody reads stdout, if there is one."""
    if sys.stdout is not None:
        _divert(sys.stdout.fileno())


def _divert(fd: int) -> None:
    """Point a descriptor that takes no more to the null device, or the interpreter would fail to flush it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)
