"""Reads a schema. Knows no protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # Any: a schema is JSON


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
