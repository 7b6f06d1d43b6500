"""Commands and URLs as authors write them, and what a command gets of this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.imports.model import ImportFailed
from discreet.imports.targets import (
    MAX_DEPTH,
    VARIABLE,
    Command,
    TooDeep,
    Url,
    child_environment,
    next_depth,
    target_of,
)

pytest.importorskip("h11")


def test_a_command_is_words_or_a_line_of_them() -> None:
    words = target_of("a server", ["a", Path("b c")], cwd=Path("/tmp"), env={"X": "1"})
    assert words == Command(("a", "b c"), "/tmp", {"X": "1"})
    assert target_of("a server", "a 'b c'") == Command(("a", "b c"))


def test_a_url_is_known_by_its_scheme_and_shown_without_its_query() -> None:
    found = target_of("a server", "https://example.com/mcp?key=secret", headers={"x-a": "1"})
    assert found == Url("https://example.com/mcp?key=secret", {"x-a": "1"})
    assert found.shown == "https://example.com/mcp"


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("", {}),
        ([], {}),
        ([""], {}),
        (["a\0"], {}),
        ("'", {}),
        (["a", 5], {}),
        ("unix:/run/x.sock", {}),
        ("https://user:secret@example.com/", {}),
        ("https://", {}),
        ("http://127.0.0.1:1/?secret", {}),
        ("https://example.com/", {"cwd": "/"}),
        ("https://example.com/", {"env": {}}),
        (["a"], {"headers": {}}),
    ],
)
def test_what_is_neither_is_told(source: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ImportFailed) as caught:
        target_of("a server", source, **options)
    assert "secret" not in str(caught.value)


def test_each_process_is_one_deeper_until_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for depth in range(MAX_DEPTH):
        monkeypatch.setenv(VARIABLE, next_depth(str(depth)))
    with pytest.raises(TooDeep):
        child_environment(Command(("x",)))


@pytest.mark.parametrize("text", [None, "", "x", "-1", "1.5", "٣", "1000000000000"])
def test_what_is_no_depth_counts_as_none(text: str | None) -> None:
    assert next_depth(text) == "1"


def test_settings_of_this_daemon_are_not_those_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_HTTP", "127.0.0.1:0")
    monkeypatch.setenv("DISCREET_OF_ANOTHER_PROGRAM", "1")
    monkeypatch.setenv("OF_ANOTHER_PROGRAM", "1")
    found = child_environment(Command(("x",), None, {"DISCREET_LOG_LEVEL": "debug"}))
    assert found.keys() & {"DISCREET_HTTP", "DISCREET_OF_ANOTHER_PROGRAM"} == set()
    assert (found["OF_ANOTHER_PROGRAM"], found["DISCREET_LOG_LEVEL"], found[VARIABLE]) == ("1", "debug", "1")
