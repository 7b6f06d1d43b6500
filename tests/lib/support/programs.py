"""Starts this package as a program, from any folder, and looks after processes by their ids."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import discreet

from .waits import DEADLINE_SECONDS

DISCREET: Final = (sys.executable, "-P", "-m", "discreet")
"""The command line, whatever is on the PATH."""

SOURCES: Final = Path(discreet.__file__).parents[1]
"""The folder that `discreet` is imported from: `src`, or `site-packages`."""


def environment(*first: Path, **more: str) -> dict[str, str]:
    """For a child in any folder: it imports this `discreet`, and what lies in the folders `first`, which come before it.

    Settings of pytest and of the daemon are left out. `more` comes last.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DISCREET_", "PYTEST_"))}
    inherited = [entry for entry in kept.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    own = [] if SOURCES.name == "site-packages" else [str(SOURCES)]  # the child's own interpreter finds that
    path = dict.fromkeys((*map(str, first), *own, *inherited))
    return kept | ({"PYTHONPATH": os.pathsep.join(path)} if path else {}) | more


def for_type_checkers() -> dict[str, str]:
    """For mypy and pyright, which take PYTHONPATH for foreign code: this `discreet` is found where mypy looks for ours."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept if SOURCES.name == "site-packages" else kept | {"MYPYPATH": str(SOURCES)}


def finished(
    command: Sequence[str], folder: Path | None = None, *, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """A program that was run to its end, with `more` in its environment."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**more),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=DEADLINE_SECONDS,
    )


def on_terminal(
    command: Sequence[str], stream: str, folder: Path | None = None, *, stdin: str = "", **more: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """As `finished`, with a terminal as `stdout` or `stderr`; and what was written to it."""
    ours, theirs = os.openpty()
    shown = b""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.PIPE,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs},
        encoding="utf-8",
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        with suppress(OSError):  # how Linux ends a terminal
            while chunk := os.read(ours, 65536):
                shown += chunk
        os.close(ours)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr), shown.decode()


def install_commands(folder: Path, **commands: str) -> Path:
    """Makes programs in `folder`, `discreet` and those that are named, each this Python with the arguments given.

    Returns the folder, which belongs first on the PATH.
    """
    folder.mkdir(exist_ok=True)
    for name, arguments in {"discreet": "-P -m discreet", **commands}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that its parent has not waited for. The id may be anybody's child."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # it ended meanwhile, or there is no /proc
        return Path("/proc/self").exists()
