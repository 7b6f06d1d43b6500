"""Every event that the agent's code logs has its row in the page on logging, at its level, and no row is of another."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOGGED = re.compile(r"\blog\.(debug|info|warning|error)\(\s*\"([\w.]+)\"")
ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \|", re.MULTILINE)


def test_every_event_of_the_agents_has_its_row() -> None:
    logged = {
        (event, "warn" if level == "warning" else level)
        for path in (ROOT / "agents").rglob("*.py")
        for level, event in LOGGED.findall(path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
    table = page.partition("What the agent says")[2].partition("What the log says")[0]
    assert len(logged) >= 11
    assert set(ROW.findall(table)) == logged
