"""What a start that fails says: one line on stderr, and the status for wrong usage."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

from ..errors.printable import printable
from .apps import AppError
from .lifecycle import EXIT_USAGE

REFUSALS: Final = (OSError, RuntimeError, MemoryError, ImportError)
"""What is raised where the system has no descriptor, no thread or no memory left. An import needs all three."""

START_DESCRIPTORS: Final = 21
"""What a daemon opens beside the standard ones: with Trio 17. The rest is for modules, which two threads may load, and for a
handler."""


def require_descriptors() -> None:
    """Raise `AppError` where the event loop could not be made later: the first requests are answered before it is."""
    taken: list[int] = []
    try:
        while len(taken) < START_DESCRIPTORS:
            taken.append(os.dup(0))
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):  # else there is no stdin
            raise AppError(
                f"the system lets this process open too few files; {_needed_limit(START_DESCRIPTORS - len(taken))}"
            ) from None
    finally:
        for descriptor in taken:
            os.close(descriptor)


def _needed_limit(missing: int) -> str:
    if sys.platform == "win32":
        return f"{missing} more are needed"
    import resource  # not on Windows

    return f"the limit (ulimit -n) must be {resource.getrlimit(resource.RLIMIT_NOFILE)[0] + missing} or more"


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
