"""What docs/editors.md shows stands in the sessions, which are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"elisp": ".el", "lua": ".lua", "js": ".js", "python": ".py", "sh": ".sh"}
SNIPPETS = FENCED.findall((HERE.parents[1] / "docs" / "editors.md").read_text(encoding="utf-8"))


def unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


@pytest.mark.parametrize(("language", "snippet"), SNIPPETS)
def test_a_snippet_of_the_editors_page_stands_in_a_session(language: str, snippet: str) -> None:
    sessions = [path for path in HERE.iterdir() if path.suffix == LANGUAGES[language]]
    assert [path.name for path in sessions if unindented(snippet) in unindented(path.read_text(encoding="utf-8"))]


def test_the_editors_page_has_a_snippet_for_every_kind_of_client() -> None:
    assert {language for language, _ in SNIPPETS} == set(LANGUAGES)
