"""Commands and URLs as authors write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.imports.from_mcp import mcp_target
from discreet.imports.mcp.model import Command, Url
from discreet.imports.model import ImportFailed


def test_a_command_is_words_or_a_line_of_them() -> None:
    assert mcp_target(["a", "b c"], cwd=Path("/tmp"), env={"X": "1"}) == Command(("a", "b c"), "/tmp", {"X": "1"})
    assert mcp_target("a 'b c'") == Command(("a", "b c"))


def test_a_url_is_known_by_its_scheme_and_shown_without_its_query() -> None:
    found = mcp_target("https://example.com/mcp?key=secret", headers={"x-a": "1"})
    assert found == Url("https://example.com/mcp?key=secret", {"x-a": "1"})
    assert found.shown == "https://example.com/mcp"


@pytest.mark.parametrize(
    ("server", "options"),
    [
        ("", {}),
        ([], {}),
        ([""], {}),
        (["a\0"], {}),
        ("'", {}),
        ([1], {}),
        ("https://user:secret@example.com/", {}),
        ("https://", {}),
        ("https://example.com/", {"cwd": "/"}),
        ("https://example.com/", {"env": {}}),
        (["a"], {"headers": {}}),
    ],
)
def test_what_is_neither_is_told(server: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ImportFailed) as caught:
        mcp_target(server, **options)
    assert "secret" not in str(caught.value)
