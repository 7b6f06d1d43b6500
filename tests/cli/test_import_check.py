"""`discreet import check` says what a document would offer, and what is not as it stands there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.main import main
from discreet.dialects.mcp.tools import tool_name
from support.openapi_documents import OK, document, with_operation


def check(tmp_path: Path, value: Any, *flags: str) -> int:
    path = tmp_path / "openapi.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return main(["import", "check", str(path), *flags])


PATHS = {"/a": {"get": {"responses": {**OK, "404": {"description": ""}}}, "put": {"operationId": "b", "responses": 1}}}


def test_it_lists_operations_and_what_became_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, document(PATHS)) == 0
    said = capsys.readouterr().out
    assert "1 operation (1 query), 1 declared error, 0 shared types" in said
    assert "get_a  GET /a  1 error" in said
    assert "/paths/~1a/put: " in said and "/paths/~1a/get: " in said


def test_it_prints_one_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, document(PATHS), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["operations"] == [
        {
            "name": "get_a",
            "kind": "query",
            "method": "GET",
            "path": "/a",
            "errors": ["HTTP_404"],
            "pointer": "/paths/~1a/get",
            "tool": None,
        }
    ]
    assert [(note["pointer"], note["kind"]) for note in report["notes"]] == [
        ("/paths/~1a/get", "renamed"),
        ("/paths/~1a/put", "left-out"),
    ]


@pytest.mark.parametrize("value", ["{", "[]", {"swagger": "2.0"}, {"openapi": "3.0.0", "paths": 1}])
def test_a_wrong_document_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: Any) -> None:
    assert check(tmp_path, value) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "openapi.json" in captured.err


@pytest.mark.parametrize(
    "words", [["import"], ["import", "check"], ["import", "list", "x"], ["import", "check", "none.json"]]
)
def test_a_wrong_command_line_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_names_of_the_document_move_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, with_operation({}, info={"title": "\x1b[2J", "version": "1"})) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_it_tells_what_long_names_become_as_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "list_" + "x" * 60
    paths = {
        "/a": {"get": {"operationId": name, "responses": OK}},
        "/b": {"get": {"operationId": "b", "responses": OK}},
    }
    assert check(tmp_path, document(paths)) == 0
    said = capsys.readouterr().out
    assert "--namespace" in said and said.endswith(f"  {name}\n")
    assert check(tmp_path, document(paths), "--namespace", "pets") == 0
    tool = tool_name(f"pets/{name}")
    assert capsys.readouterr().out.endswith(f"\nshortened as tools of MCP:\n  pets/{name}: {tool}\n")
    assert check(tmp_path, document(paths), "--namespace", "pets", "--json") == 0
    assert [each["tool"] for each in json.loads(capsys.readouterr().out)["operations"]] == [tool, "pets_b"]
    assert len(tool) == 64
