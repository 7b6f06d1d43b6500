"""The pages on the parts name every module, and no module that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {page.stem: page for page in (ROOT / "docs" / "design").glob("*.md")}
FOLDERS = {name: ROOT / ("src/discreet" if name == "package" else name) for name in PAGES}


def modules(folder: Path) -> set[str]:
    """The modules of a part without those that are generated; links lead to other parts."""
    return {
        path.stem
        for path in folder.rglob("*.py")
        if not path.stem.startswith("__")
        and "generated" not in path.parts
        and not any(parent.is_symlink() for parent in path.parents)
    }


def test_every_part_has_a_page() -> None:
    table = re.findall(
        r"^\| \[`[^`]+`\]\(design/([a-z0-9]+)\.md\)", (ROOT / "docs/design.md").read_text(), re.MULTILINE
    )
    assert sorted(table) == sorted(PAGES)


@pytest.mark.parametrize("part", PAGES)
def test_a_page_names_every_module_of_its_part(part: str) -> None:
    words = {
        piece
        for quoted in re.findall(r"`([^`]+)`", PAGES[part].read_text(encoding="utf-8"))
        for piece in re.split(r"[/.]", quoted)
    }
    public = {"acp", "http", "lsp", "mcp", "otel"} if part == "package" else set()
    assert modules(FOLDERS[part]) - public - words == set()
