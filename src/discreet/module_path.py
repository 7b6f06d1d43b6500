"""Keeps the working directory off the module path. Imports nothing that the interpreter has not loaded by then.

An editor starts servers in folders of strangers. A module that is imported there, early or late, must be an installed
one. Python itself puts the working directory on the path for `python -m`, for `python -c`, and for every empty or relative
entry of PYTHONPATH.
"""

import os
import sys


def remove_working_directory() -> None:
    """Take everything off `sys.path` that depends on the working directory. Absolute entries of PYTHONPATH stay.

    To be called before anything else is imported.
    """
    path = sys.path
    if not sys.flags.safe_path and path and _is_working_directory(path[0]):
        del path[0]
    relative = set() if sys.flags.ignore_environment else _relative_entries(os.environ.get("PYTHONPATH", ""))
    path[:] = [entry for entry in path if os.path.isabs(entry) and entry not in relative]


def for_children() -> str:
    """A PYTHONPATH with which a child in any folder finds the modules that this process finds, and no others."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.pathsep.join([*filter(os.path.isabs, sys.path), *([] if home in sys.path else [home])])


def _is_working_directory(entry: str) -> bool:
    try:
        return entry in ("", os.getcwd())
    except OSError:  # the directory is gone: nothing can be imported from it
        return entry == ""


def _relative_entries(paths: str) -> set[str]:
    """The relative entries of PYTHONPATH, as `site` has made them absolute, but for folders that it also names in full."""
    if not paths:
        return set()
    entries = paths.split(os.pathsep)
    try:
        relative = {os.path.abspath(entry) for entry in entries if not os.path.isabs(entry)}
    except OSError:
        return set()
    return relative - {os.path.normpath(entry) for entry in entries if os.path.isabs(entry)}
