"""What a test needs beside Python: without it the test is skipped, or fails where everything must be there."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import NoReturn

import pytest

_PRINT_VERSION = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"


def missing(what: str) -> NoReturn:
    """Skips the test. With `DISCREET_INTEROP_REQUIRED=1`, as in continuous integration, fails it."""
    if os.environ.get("DISCREET_INTEROP_REQUIRED") == "1":
        pytest.fail(f"{what}; DISCREET_INTEROP_REQUIRED is set")
    pytest.skip(what)


@cache
def interop_python(package: str, major: int = 0) -> str:
    """The Python that `DISCREET_INTEROP_PYTHON` names, or else ours, if it has this package, of this major version.

    The package is not imported: to load one of those that we look for takes up to a second.
    """
    python = os.environ.get("DISCREET_INTEROP_PYTHON", sys.executable)
    found = subprocess.run([python, "-P", "-c", _PRINT_VERSION, package], capture_output=True, text=True, check=False)
    if found.returncode or major not in (0, int(found.stdout.partition(".")[0])):
        missing(f"{package} is not installed where DISCREET_INTEROP_PYTHON says")
    return python
