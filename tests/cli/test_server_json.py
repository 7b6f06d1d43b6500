"""`discreet card --registry`: a document that the MCP registry takes, or a line that says what it would refuse."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from discreet.cli.server_json import MAX_DESCRIPTION, SCHEMA
from support.in_process import in_process

RULES = json.loads(Path(__file__).with_name("server_2025_12_11.schema.json").read_text(encoding="utf-8"))
APP = 'from discreet import Service\nshop = Service("shop", description={description!r}, version={version!r})\n'


def card(
    folder: Path, *words: str, description: str = "Sells stationery.", version: str = "1.0.0"
) -> tuple[int, str, str]:
    (folder / "shop.py").write_text(APP.format(description=description, version=version), encoding="utf-8")
    done = in_process("card", "./shop.py:shop", *words, folder=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "reached"),
    [
        (
            ["--package", "shop-mcp"],
            {
                "packages": [
                    {
                        "registryType": "pypi",
                        "identifier": "shop-mcp",
                        "version": "1.0.0",
                        "runtimeHint": "uvx",
                        "transport": {"type": "stdio"},
                    }
                ]
            },
        ),
        (
            ["--http-url", "https://shop.example/"],
            {"remotes": [{"type": "streamable-http", "url": "https://shop.example/mcp"}]},
        ),
    ],
)
def test_the_document_says_what_is_declared_and_how_the_server_is_reached(
    tmp_path: Path, words: list[str], reached: dict[str, object]
) -> None:
    status, printed, said = card(tmp_path, "--registry", "io.github.ada/shop", *words)
    assert (status, said) == (0, "")
    document = json.loads(printed)
    assert document == {
        "$schema": SCHEMA,
        "name": "io.github.ada/shop",
        "description": "Sells stationery.",
        "version": "1.0.0",
        **reached,
    }
    jsonschema.validate(document, RULES)


def test_a_package_may_have_a_version_of_its_own_and_a_server_both_ways(tmp_path: Path) -> None:
    words = ["--registry", "com.example/s", "--package", "s==2.1", "--http-url", "https://s.example", "--http-mcp"]
    status, printed, _ = card(tmp_path, *words, description="d" * MAX_DESCRIPTION)
    assert status == 0
    document = json.loads(printed)
    jsonschema.validate(document, RULES)
    assert (document["packages"][0]["version"], document["version"]) == ("2.1", "1.0.0")
    assert len(document["remotes"]) == 1


@pytest.mark.parametrize(
    ("words", "declared", "said"),
    [
        (["--registry", "shop", "--package", "s"], {}, "--registry: expected a name"),
        (["--registry", "a/b/c", "--package", "s"], {}, "--registry: expected a name"),
        (["--registry", f"a/{'b' * 200}", "--package", "s"], {}, "--registry: expected a name"),
        (["--registry", "a.b/c"], {}, "--package"),
        (["--registry", "a.b/c", "--package", "s>=1"], {}, "--package: expected"),
        (["--registry", "a.b/c", "--package", "s"], {"description": ""}, "description"),
        (["--registry", "a.b/c", "--package", "s"], {"description": "d" * 101}, "description"),
        (["--registry", "a.b/c", "--package", "s"], {"version": ""}, "version"),
        (["--package", "s"], {}, "--package is for --registry"),
    ],
)
def test_what_the_registry_refuses_is_a_line(
    tmp_path: Path, words: list[str], declared: dict[str, str], said: str
) -> None:
    status, printed, told = card(tmp_path, *words, **declared)
    assert (status, printed, told.count("\n")) == (2, "", 1)
    assert said in told
