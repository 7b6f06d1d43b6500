"""The tables `[import.NAME]` of a settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.daemon.settings import UsageError, load_settings
from discreet.daemon.settings.imports import ImportSettings

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
[import.files]
mcp = ["server-files", "--root", "."]
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
    )
    assert files == ImportSettings(name="files", mcp=("server-files", "--root", "."))
    assert shop == ImportSettings(name="shop", daemon="https://shop.example", expose=True)


WRONG = {
    "[import]\na = 1\n": "discreet.toml: import.a: expected a table",
    "[import.a]\n": "discreet.toml: import.a: expected one of openapi, mcp, daemon",
    '[import.a]\nopenapi = "x"\nmcp = "y"\n': "discreet.toml: import.a: expected one of openapi, mcp, daemon",
    '[import.a]\nopenapi = "x"\nbaseurl = "y"\n': "discreet.toml: import.a.baseurl: unknown key; nearest: base_url",
    "[import.a]\nopenapi = 3\n": "discreet.toml: import.a.openapi: expected a file or a URL",
    '[import.a]\nmcp = ["x", 1]\n': "discreet.toml: import.a.mcp: expected a URL, or a command line as an array of strings",
    '[import.a]\nopenapi = "x"\nexpose = "all"\n': "discreet.toml: import.a.expose: expected true, false, or an array of patterns of names",
    '[import.a]\nopenapi = "x"\ntimeout = 0\n': "discreet.toml: import.a.timeout: expected a number of seconds above 0",
    '[import.a]\nmcp = "https://x"\ntags = ["t"]\n': "discreet.toml: import.a.tags: is for openapi alone",
    '[import.a]\nopenapi = "x"\ncredential = "c"\ncredentials = { s = "c" }\n': (
        "discreet.toml: import.a: credential and credentials exclude each other"
    ),
    'import = ["x"]\n': "discreet.toml: import: expected an array of NAME=FILE or NAME=URL of an OpenAPI document",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_table_is_one_line_that_names_the_key(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == WRONG[text]


def test_flags_replace_what_the_file_says(tmp_path: Path) -> None:
    imports = read(tmp_path, '[import.a]\nopenapi = "x"\n', "--import", "b=c.json")
    assert imports == (ImportSettings(name="b", openapi=str(tmp_path / "c.json"), expose=True),)
