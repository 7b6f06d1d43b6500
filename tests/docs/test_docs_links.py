"""Links lead somewhere, citations name what there is, and the project speaks only of itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tree import FOLDERS as PARTS
from support.tree import ROOT

DOCS = ROOT / "docs"
FOLDERS = ("bench", "docs", "examples", "src", "tests", ".ci", *PARTS)
MADE = {".git", "node_modules", "__pycache__", "results"}

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
CITED = re.compile(
    r"[Ss]ection\s+([0-9]+(?:\.[0-9]+)?)\s+of\s+docs/protocol\.md|docs/protocol\.md,\s+section\s+([0-9.]*[0-9])"
)
MACHINE = re.compile(r"(?<![\w./])/(?:work|root|tmp/[a-z]|home/[a-z]+/)(?![\w-])")


def texts(*endings: str) -> Iterator[Path]:
    for path in (*ROOT.glob("*"), *(found for folder in FOLDERS for found in (ROOT / folder).rglob("*"))):
        if path.is_file() and path.suffix in endings and not MADE.intersection(path.parts):
            yield path


PAGES = sorted(texts(".md"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    found: set[str] = set()
    for heading in HEADING.findall(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)):
        kept = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(kept.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert broken == []


def linked(page: Path) -> set[Path]:
    targets = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    return {
        (page.parent / target.partition("#")[0]).resolve() for target in targets if not re.match(r"[a-z]+:|#", target)
    }


def test_every_page_of_the_docs_is_linked_from_the_index() -> None:
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert pages - linked(DOCS / "index.md") == set()


def test_the_index_is_reached_from_the_readme() -> None:
    assert (DOCS / "index.md").resolve() in linked(ROOT / "README.md")


def test_the_web_site_has_the_groups_of_the_index() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    groups = {
        title: [page for entry in pages for page in entry.values()]
        for part in nav
        for title, pages in part.items()
        if isinstance(pages, list)
    }
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    shown = {title: LINK.findall(text) for title, text in re.findall(r"^## (.+)\n([^#]*)", index, re.MULTILINE)}
    assert groups == shown


def test_the_pages_that_matter_are_read() -> None:
    assert {"README.md", "docs/protocol.md", "docs/errors.md"} <= {named(page) for page in PAGES}


def test_every_section_of_the_protocol_that_is_cited_exists() -> None:
    protocol = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    sections = {heading.split()[0].rstrip(".") for heading in HEADING.findall(protocol)}
    cited: dict[str, str] = {}
    for path in texts(".py", ".md"):
        for first, second in CITED.findall(path.read_text(encoding="utf-8")):
            cited[first or second] = named(path)
    assert len(cited) >= 5
    assert {section: where for section, where in cited.items() if section not in sections} == {}


def test_no_page_or_module_names_places_of_one_machine() -> None:
    found = {
        f"{named(path)}: {match[0]}"
        for path in texts(".md", ".py", ".toml", ".sh", "")
        for match in MACHINE.finditer(path.read_text(encoding="utf-8", errors="replace"))
        if "tests" not in path.parts
    }
    assert found == set()


@pytest.mark.parametrize("page", ["http.md", "monitoring.md", "redaction.md", "scale.md", "tracing.md"])
def test_a_page_with_times_says_where_the_machine_is_named(page: str) -> None:
    """A time without its machine is read as a promise."""
    assert "machine (`bench/README.md` names it)" in (DOCS / page).read_text(encoding="utf-8")
    assert "## The machine" in (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
