"""What a start that fails says: one line on stderr, and the status for wrong usage."""

from __future__ import annotations

import os
from typing import Final

from ..errors.printable import printable
from .lifecycle import EXIT_USAGE

REFUSALS: Final = (OSError, RuntimeError, MemoryError, ImportError)
"""What is raised where the system has no descriptor, no thread or no memory left. An import needs all three."""


def complain(stderr: int, message: str, *, in_code: bool = False) -> int:
    """One line where a person reads it; returns the status for wrong usage. `in_code`: a program of its author's serves."""
    if in_code:
        from .settings.keywords import in_keywords  # late: most settings come from flags

        message = in_keywords(message)
    line = printable(" ".join(f"discreet: {message}".split()))
    try:
        os.write(stderr, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:  # nobody reads stderr: the status still tells
        pass
    return EXIT_USAGE


def refusal(exc: BaseException) -> str:
    """What the system did not provide, for one of the `REFUSALS`."""
    match exc:
        case OSError():
            missing = exc.strerror or "an error without a name"
            if exc.filename == os.devnull:
                missing += f" ({os.devnull})"
        case RuntimeError():
            missing = "a thread"
        case ImportError():
            missing = "room for the program's modules"
        case _:
            missing = "memory"
    return f"the system does not provide what the start needs: {missing}"
