"""The tables `[import.NAME]` of a settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.daemon.settings import UsageError
from discreet.imports.settings import ImportSettings
from support.command_lines import load_settings

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


WRONG = {
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


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_table_is_one_line_that_names_the_key(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == WRONG[text]


def test_a_command_runs_in_its_own_folder_below_that_of_the_file(tmp_path: Path) -> None:
    (found,) = read(tmp_path, '[import.a]\ndaemon = ["./tool"]\ncwd = "tools"\n')
    assert found.cwd == str(tmp_path / "tools")


def test_a_name_that_flags_give_twice_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="^--import: import e is given twice$"):
        load_settings(["--import", "e=a.json", "--import", "e=b.json"], {}, str(tmp_path))


def test_flags_replace_what_the_file_says(tmp_path: Path) -> None:
    imports = read(tmp_path, '[import.a]\nopenapi = "x"\n', "--import", "b=c.json")
    assert imports == (ImportSettings(name="b", openapi=str(tmp_path / "c.json"), expose=True),)
