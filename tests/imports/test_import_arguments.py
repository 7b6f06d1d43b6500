"""What can be wrong with the arguments of an import, and what is told of a document that is not imported as a whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h11")
pytest.importorskip("jsonschema_rs")

from discreet import DeclarationError, from_daemon, from_mcp, from_openapi
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.configured import service_of
from discreet.imports.model import ImportFailed
from discreet.imports.settings import ImportSettings
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
from support.far_app import far
from support.logged_events import logged_events
from support.openapi_documents import OK, document

SERVERS = [{"url": "https://pets.example.com"}]
GOOD = {"operationId": "good", "responses": OK}
BAD = {"operationId": "bad", "responses": 1}


def write(path: Path, **paths: Any) -> Path:
    path.write_text(json.dumps(document({f"/{name}": {"get": each} for name, each in paths.items()}, servers=SERVERS)))
    return path


WRONG: dict[str, list[Any]] = {
    "namespace": [None, "", "a b"],
    "expose": ["list_*", None, [1], [""]],
    "include": ["list_*", None, 3],
    "exclude": [b"list_*", [None]],
    "scopes": ["read", [3]],
    "rename": [["a"], {"a": 1}],
    "timeout": [0, -1, True, "5", float("nan"), float("inf")],
    "validate": ["yes", True, None, []],
    "allow_private": ["no", 1],
}


@pytest.mark.parametrize("argument", WRONG)
def test_a_wrong_argument_is_one_line_that_begins_with_its_name(argument: str) -> None:
    for value in WRONG[argument]:
        given: dict[str, Any] = {"namespace": "n", argument: value}
        for made in (
            lambda given=given: from_openapi(document({"/a": {"get": GOOD}}, servers=SERVERS), **given),
            lambda given=given: from_mcp(["/none/such"], **given),
            lambda given=given: from_daemon(["/none/such"], **given),
        ):
            with pytest.raises(DeclarationError) as caught:
                made()
            assert str(caught.value).startswith(argument), value
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("made", "sources", "said"),
    [
        (from_openapi, [None, 3, ["a.json"]], r"^document must be a path, a URL, bytes or a dict, not "),
        (from_daemon, [None, 3, [], [1]], "list of words"),
        (from_mcp, [None, 3, [], [1]], "an MCP server is a command"),
    ],
)
def test_a_source_of_another_type_is_one_line(made: Any, sources: list[Any], said: str) -> None:
    for source in sources:
        with pytest.raises(DeclarationError, match=said):
            made(source, namespace="n")


def test_other_schemes_of_urls_are_refused_in_one_line() -> None:
    for made in (from_openapi, from_mcp, from_daemon):
        with pytest.raises(DeclarationError, match=r"^ftp://a\.example/b: .*URL"):
            made("ftp://a.example/b", namespace="n")


def test_private_addresses_are_refused_unless_they_are_allowed() -> None:
    for made in (from_mcp, from_daemon):
        for allowed, said in ((False, "http://127.0.0.1:9/: .*--import-private"), (True, "no connection")):
            with pytest.raises(DeclarationError, match=said):
                made("http://127.0.0.1:9/?k=1", namespace="n", allow_private=allowed)
    with pytest.raises(DeclarationError, match="--import-private"):
        from_daemon("http://127.0.0.1:9/", namespace="n")


def test_settings_say_what_can_be_written_in_a_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document({"/a": {"get": GOOD}})))
    with pytest.raises(DeclarationError, match=r"names no server; give \[import.e\] base-url in a settings file$"):
        service_of(ImportSettings(name="e", openapi=str(path)), {})


def test_a_version_that_is_not_read_is_named_though_there_is_no_operation() -> None:
    with pytest.raises(DeclarationError, match="the version 3.9.0 is not read"):
        from_openapi(document({}, version="3.9.0"), namespace="n")


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = document_text(openapi_document(far.operations, About(title="Far", version="1", url="https://a.example")))
    monkeypatch.setitem(sys.modules, "h11", None)
    for made in (
        lambda: from_openapi(own, namespace="n", base_url="https://a.example"),
        lambda: from_daemon("https://a.example", namespace="n"),
        lambda: from_mcp("https://a.example", namespace="n"),
    ):
        with pytest.raises(DeclarationError, match=r"needs h11: pip install 'discreet\[http\]'$"):
            made()
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(DeclarationError, match=r"needs jsonschema-rs: pip install 'discreet\[mcp\]'$"):
        from_mcp(["/none/such"], namespace="n")


def test_an_import_is_shown_by_its_name_and_source() -> None:
    assert ImportSettings(name="a", openapi="https://a.example/b.json?key=1").shown == "a=https://a.example/b.json"
    assert ImportSettings(name="a", openapi="/my files/b.json").shown == "a=/my files/b.json"
    assert ImportSettings(name="a", mcp=("tool", "--key", "x")).shown == "a=tool"
    assert ImportSettings(name="a", mcp="tool --key x").shown == "a=tool"


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "nope.yaml"
    with pytest.raises(DeclarationError, match=f"^{path}: No such file or directory$"):
        from_openapi(path, namespace="n")


def test_patterns_of_what_is_exposed_fit_new_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", a=GOOD)
    (spec,) = from_openapi(path, namespace="n", rename={"good": "better"}, expose=["bett*"]).operations
    assert spec.visibility == "external"
    with pytest.raises(DeclarationError, match="^expose: no operation is called good; it is called better here$"):
        from_openapi(path, namespace="n", rename={"good": "better"}, expose=["good"])


def test_what_is_left_out_is_told_at_each_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tmp_path / "a.json", a=GOOD, b=BAD)
    for _ in ("read", "from the cache"):
        with logged_events("warn") as logged:
            from_openapi(path, namespace="n")
            told = logged()
        hint = f"discreet import check {path}"
        assert told == [("import.left_out", {"import_": "n", "left_out": 1, "imported": 1, "hint": hint})]


def test_a_document_without_an_operation_that_can_be_imported_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", b=BAD)
    with pytest.raises(DeclarationError) as caught:
        from_openapi(path, namespace="n")
    assert str(caught.value) == f"{path}: no operation of it can be imported: discreet import check {path} says why"
    with pytest.raises(DeclarationError, match="no operation of it can be imported$"):
        from_openapi(write(tmp_path / "b.json"), namespace="n")


# -- targets: what a command gets of this process, and where a URL leads. No author sees more of them --


def test_a_target_is_words_or_a_line_of_them_or_a_url_that_is_shown_without_its_query() -> None:
    words = target_of("a server", ["a", Path("b c")], cwd=Path("/tmp"), env={"X": "1"})
    assert words == Command(("a", "b c"), "/tmp", {"X": "1"})
    assert target_of("a server", "a 'b c'") == Command(("a", "b c"))
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
