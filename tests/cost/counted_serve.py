"""Runs `discreet` with the arguments given, and writes what was called to the file that the variable `COUNTS` names.

Counts the calls of the main thread: those of discreet's own functions, those that they make of functions in C, and among these
the system calls that move bytes. Each `keep` adds a copy.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

counted: Counter[str] = Counter()
kept: list[dict[str, int]] = []
PACKAGE = f"{os.sep}discreet{os.sep}"
SYSTEM = frozenset({"read", "write", "writev", "poll"})


def count(frame: FrameType, event: str, argument: Any) -> None:
    if event == "call":
        counted["all"] += 1
        counted["own"] += PACKAGE in frame.f_code.co_filename
    elif event == "c_call":
        counted["c"] += PACKAGE in frame.f_code.co_filename
        counted["system"] += argument.__name__ in SYSTEM


def keep() -> None:
    kept.append(dict(counted))


def end(status: int) -> None:
    sys.setprofile(None)
    modules = [name for name in sys.modules if name.partition(".")[0] == "discreet"]
    installed = sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)
    found = {"kept": kept, "modules": len(modules), "installed": installed}
    Path(os.environ["COUNTS"]).write_text(json.dumps(found))
    leave(status)


if __name__ == "__main__":
    leave, os._exit = os._exit, end  # type: ignore[assignment]
    from discreet.__main__ import main

    sys.setprofile(count)
    end(main() or 0)
