"""How a settings file is read, and how one that can't be read is refused."""

from pathlib import Path

import pytest

from discreet.daemon.settings import Settings, UsageError
from support.command_lines import load_settings


def test_pyproject_is_read_where_there_is_no_file_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.discreet]\nordered = true\n[tool.discreet.serve]\nmax-concurrency = 5"
    )
    settings = load_settings([], {}, str(tmp_path))
    assert (settings.ordered, settings.max_concurrency) == (True, 5)
    (tmp_path / "discreet.toml").write_text("")
    assert load_settings([], {}, str(tmp_path)) == Settings(root=str(tmp_path))


def test_a_pyproject_that_does_not_name_us_is_not_even_parsed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert load_settings([], {}, str(tmp_path)) == Settings(root=str(tmp_path))


@pytest.mark.parametrize(
    "text", ["name = 'discreet'", "tool = 'discreet'", "[tool.discreetly]\nx = 1", "[tool.discreet]"]
)
def test_a_pyproject_without_our_table_sets_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert load_settings([], {}, str(tmp_path)) == Settings(root=str(tmp_path))


def test_underscores_in_keys_are_hyphens(tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text("max_concurrency = 9")
    assert load_settings([], {}, str(tmp_path)).max_concurrency == 9


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("discreet.toml", "max-concurency = 1", ("discreet.toml: max-concurency", "max-concurrency")),
        ("discreet.toml", "[serve]\nscopes = []", ("discreet.toml: serve.scopes", "scope")),
        ("discreet.toml", "[serve.serve]\nordered = true", ("discreet.toml: serve.serve",)),
        ("discreet.toml", "serve = 1", ("discreet.toml: serve",)),
        ("discreet.toml", "[server]\nordered = true", ("discreet.toml: server",)),
        ("discreet.toml", '"" = 1', ("discreet.toml: ",)),
        ("pyproject.toml", "[tool.discreet]\nordred = true", ("pyproject.toml: tool.discreet.ordred", "ordered")),
        ("pyproject.toml", "[tool]\ndiscreet = 3", ("pyproject.toml: tool.discreet",)),
        ("discreet.toml", "ordered = true\n[serve]\nordered = true", ("serve.ordered", "discreet.toml: ordered")),
        ("discreet.toml", "max-concurrency = 1\nmax_concurrency = 1", ("max_concurrency", "max-concurrency")),
    ],
)
def test_unknown_keys_and_keys_set_twice_are_refused_by_name(
    file: str, text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings([], {}, str(tmp_path))
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"ordered = true\nroot = hunter2\n", "line 2"),
        (b"root = 'hunter2", "end"),
        (b"root = '\xffhunter2'", "byte 8"),
        (b"apps = " + b"[" * 100_000, ""),
        (b"#" * 2_000_000, "1048576"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_named_with_the_place_and_without_content(
    content: bytes, place: str, tmp_path: Path
) -> None:
    (tmp_path / "discreet.toml").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_settings([], {}, str(tmp_path))
    assert str(caught.value).startswith("discreet.toml: ")
    assert place in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").mkdir()
    with pytest.raises(UsageError, match="^discreet.toml: "):
        load_settings([], {}, str(tmp_path))
