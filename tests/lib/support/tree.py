"""The tree of the project, and its modules as they are installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
FACE: Final = ROOT / "src" / "discreet"
FOLDERS: Final = tuple("a2a agents client daemon dialects errors files framing gateway imports".split())
"""The parts, which stand at the top and are installed below `discreet`."""


def modules_below(folder: Path) -> Iterator[Path]:
    """Without what the links lead to."""
    for place, _, files in os.walk(folder):
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))


def sources() -> dict[str, Path]:
    """Every module of the tree, by its place below the installed package's parent."""
    found = {f"discreet/{path.relative_to(FACE).as_posix()}": path for path in modules_below(FACE)}
    for folder in FOLDERS:
        found |= {f"discreet/{path.relative_to(ROOT).as_posix()}": path for path in modules_below(ROOT / folder)}
    return found
