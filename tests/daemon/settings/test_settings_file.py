"""How a settings file is read, its tables `[import.NAME]` among it, and how one that is wrong is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.daemon.settings import Settings, UsageError
from discreet.imports.settings import ImportSettings
from support.command_lines import load_settings


def test_pyproject_is_read_where_there_is_no_file_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.discreet]\nordered = true\n[tool.discreet.serve]\nmax_concurrency = 5"
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


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("discreet.toml", "max-concurency = 1", ("discreet.toml: max-concurency", "max-concurrency")),
        ("discreet.toml", "[serve]\nscopes = []", ("discreet.toml: serve.scopes", "scope")),
        ("discreet.toml", "[serve.serve]\nordered = true", ("discreet.toml: serve.serve",)),
        ("discreet.toml", "serve = 1", ("discreet.toml: serve",)),
        ("discreet.toml", "[server]\nordered = true", ("discreet.toml: server: unknown key; nearest: serve",)),
        ("discreet.toml", 'credential = "a=b"', ("credential: expected an array of NAME=FILE",)),
        ("discreet.toml", 'apps = "no app"', ("apps: expected an array of pkg.module:name or ./file.py:name",)),
        ("discreet.toml", 'apps = "app:s"', ('./file.py:name: apps = ["app:s"]',)),
        ("discreet.toml", 'framing = "hunter2"', ("discreet.toml: framing: expected",)),
        ("discreet.toml", '"" = 1', ("discreet.toml: ",)),
        ("pyproject.toml", "[tool.discreet]\nordred = true", ("pyproject.toml: tool.discreet.ordred", "ordered")),
        ("pyproject.toml", "[tool]\ndiscreet = 3", ("pyproject.toml: tool.discreet",)),
        ("discreet.toml", "ordered = true\n[serve]\nordered = true", ("serve.ordered", "discreet.toml: ordered")),
        ("discreet.toml", "max-concurrency = 1\nmax_concurrency = 1", ("max_concurrency", "max-concurrency")),
    ],
)
def test_a_wrong_entry_is_refused_by_name_and_with_what_was_meant(
    file: str, text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings([f"--config={file}"], {}, str(tmp_path))
    assert all(word in str(caught.value) for word in words)
    assert "hunter2" not in str(caught.value)


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


NAMED = ["--config=discreet.toml"]


def read(folder: Path, text: str, *argv: str) -> tuple[ImportSettings, ...]:
    (folder / "discreet.toml").write_text(text)
    return load_settings([*NAMED, *argv], {}, str(folder)).imports


def test_a_table_says_where_operations_come_from_and_how_they_are_served(tmp_path: Path) -> None:
    text = """
[import.github]
openapi = "api/github.json"
base-url = "https://api.github.com"
credential = "github"
include = ["repos/*"]
expose = ["repos/get"]
rename = { "repos/get" = "repo" }
timeout = 5
error-bodies = true
[import.files]
mcp = ["server-files", "--root", "."]
env = { LEVEL = "3" }
max-age = 60
[import.shop]
daemon = "https://shop.example"
expose = true
"""
    github, files, shop = read(tmp_path, text)
    assert github == ImportSettings(
        name="github",
        openapi=str(tmp_path / "api/github.json"),
        base_url="https://api.github.com",
        credential="github",
        include=("repos/*",),
        expose=("repos/get",),
        rename={"repos/get": "repo"},
        timeout=5,
        error_bodies=True,
    )
    assert files == ImportSettings(
        name="files", mcp=("server-files", "--root", "."), env={"LEVEL": "3"}, max_age=60, cwd=str(tmp_path)
    )
    assert shop == ImportSettings(name="shop", daemon="https://shop.example", expose=True)


WRONG_IMPORTS = {
    "[import]\na = 1\n": "discreet.toml: import.a: expected a table",
    "[import.a]\n": "discreet.toml: import.a: expected one of openapi, mcp, daemon",
    '[import.a]\nopenapi = "x"\nmcp = "y"\n': "discreet.toml: import.a: expected one of openapi, mcp, daemon",
    '[import.a]\nopenapi = "x"\nbaseurl = "y"\n': "discreet.toml: import.a.baseurl: unknown key; nearest: base_url",
    "[import.a]\nopenapi = 3\n": "discreet.toml: import.a.openapi: expected a file or a URL",
    '[import.a]\nmcp = ["x", 1]\n': "discreet.toml: import.a.mcp: expected a URL, or a command line as an array of strings",
    '[import.a]\nopenapi = "x"\nexpose = "all"\n': "discreet.toml: import.a.expose: expected true, false, or an array of patterns of names",
    '[import.a]\nopenapi = "x"\ntimeout = 0\n': "discreet.toml: import.a.timeout: expected a number of seconds above 0",
    '[import.a]\nopenapi = "x"\nenv = { a = "b" }\n': "discreet.toml: import.a.env: is for a command alone",
    '[import.a]\nmcp = "https://x"\ncwd = "."\n': "discreet.toml: import.a.cwd: is for a command alone",
    '[import.a]\ndaemon = ["x"]\nmax-age = 1\n': "discreet.toml: import.a.max_age: is for openapi and mcp alone",
    '[import.a]\nmcp = ["x"]\nmax-age = -1\n': "discreet.toml: import.a.max_age: expected a number of seconds, 0 or more",
    '[import.a]\nmcp = ["x"]\nenv = { a = 1 }\n': "discreet.toml: import.a.env: expected a table of strings",
    '[imports.a]\nopenapi = "x"\n': "discreet.toml: imports: unknown key; nearest: import",
    '[import.a]\nopenapi = "x"\nerror-bodies = 1\n': "discreet.toml: import.a.error_bodies: expected true or false",
    '[import.a]\nmcp = "https://x"\nerror-bodies = true\n': "discreet.toml: import.a.error_bodies: is for openapi alone",
    '[import.a]\nmcp = "https://x"\ntags = ["t"]\n': "discreet.toml: import.a.tags: is for openapi alone",
    '[import.a]\nopenapi = "x"\ncredential = "c"\ncredentials = { s = "c" }\n': (
        "discreet.toml: import.a: credential and credentials exclude each other"
    ),
    'import = ["x"]\n': "discreet.toml: import: expected an array of NAME=FILE or NAME=URL of an OpenAPI document",
}


@pytest.mark.parametrize("text", WRONG_IMPORTS)
def test_a_wrong_table_is_one_line_that_names_the_key(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == WRONG_IMPORTS[text]


def test_a_command_runs_in_its_own_folder_below_that_of_the_file(tmp_path: Path) -> None:
    (found,) = read(tmp_path, '[import.a]\ndaemon = ["./tool"]\ncwd = "tools"\n')
    assert found.cwd == str(tmp_path / "tools")


def test_a_name_that_flags_give_twice_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="^--import: import e is given twice$"):
        load_settings(["--import", "e=a.json", "--import", "e=b.json"], {}, str(tmp_path))


def test_flags_replace_what_the_file_says(tmp_path: Path) -> None:
    imports = read(tmp_path, '[import.a]\nopenapi = "x"\n', "--import", "b=c.json")
    assert imports == (ImportSettings(name="b", openapi=str(tmp_path / "c.json"), expose=True),)
