"""Documents are got from files and URLs, bounded, and what can't be got is one line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.openapi import loading
from discreet.imports.openapi.loading import Fetch, load_document
from discreet.imports.openapi.parsing import MAX_DEPTH, DocumentError, parse
from discreet.imports.openapi.parsing import Path as Place
from discreet.imports.openapi.reader import read_openapi

DOCUMENT = b"""{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
  "/near": {"$ref": "near.json"}, "/far": {"$ref": "http://localhost:1/far.json"}}}"""
NEAR = b'{"get": {"operationId": "near", "responses": {"204": {"description": ""}}}}'


@pytest.fixture
def served() -> Iterator[tuple[str, dict[str, Any]]]:
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answers.get(self.path.partition("?")[0], (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", answers
        server.shutdown()
        thread.join()


def test_a_document_is_got_by_http_with_what_stands_beside_it(served: tuple[str, dict[str, Any]]) -> None:
    url, answers = served
    answers["/old"] = 302, {"Location": "/api/openapi.json"}, b""
    answers["/api/openapi.json"] = 200, {}, DOCUMENT
    answers["/api/near.json"] = 200, {}, NEAR
    loaded = load_document(f"{url}/old")
    found = read_openapi(loaded.text, origin=loaded.origin, fetch=loaded.fetch)
    assert [(each.name, each.server) for each in found.operations] == [("near", f"{url}/")]
    assert [(note.pointer, note.kind) for note in found.notes][-1] == ("/paths/~1far/$ref", "left-out")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {}, b""), "status 404"),
        ((500, {}, b"x"), "status 500"),
        ((302, {"Location": "/it"}, b""), "redirects more than"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "no http"),
        ((200, {"Content-Encoding": "gzip"}, b"no gzip"), "compressed"),
        ((200, {}, b"x" * 2000), "larger than"),
    ],
)
def test_what_can_not_be_got_by_http_is_one_line(
    served: tuple[str, dict[str, Any]], answer: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MAX_BYTES", 1000)
    url, answers = served
    answers["/it"] = answer
    with pytest.raises(DocumentError, match=said) as caught:
        load_document(f"{url}/it?token=secret")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_a_reference_follows_no_redirect_to_another_origin(served: tuple[str, dict[str, Any]]) -> None:
    url, answers = served
    answers["/it"] = 302, {"Location": "http://localhost:1/"}, b""
    with pytest.raises(DocumentError, match="another origin"):
        Fetch(f"{url}/openapi.json")(f"{url}/it")


@pytest.mark.parametrize(
    "source",
    [
        "none.json",
        ".",
        "ftp://x/y",
        "http://127.0.0.1:1/x",
        "http://[/x",
        "http://",
        "https://127.0.0.1:99999/x",
        "a\0b",
    ],
)
def test_what_can_not_be_got_is_one_line(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError) as caught:
        load_document(source)
    assert "\n" not in str(caught.value)


def test_a_file_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_BYTES", 10)
    (tmp_path / "x").write_bytes(b"x" * 10)
    assert load_document(tmp_path / "x").text == b"x" * 10
    (tmp_path / "x").write_bytes(b"x" * 11)
    with pytest.raises(DocumentError, match="larger"):
        load_document(tmp_path / "x")


@pytest.mark.parametrize(
    ("origin", "uri"),
    [
        ("file:///a/b/openapi.yaml", "file:///a/c.yaml"),
        ("file:///a/b/openapi.yaml", "file:///a/b/../../etc/passwd"),
        ("file:///a/b/openapi.yaml", "file://host/a/b/c.yaml"),
        ("file:///a/b/openapi.yaml", "http://example.com/c.yaml"),
        ("file:///a/b/openapi.yaml", "urn:x:y"),
        ("https://example.com/openapi.yaml", "https://example.org/c.yaml"),
        ("https://example.com/openapi.yaml", "http://example.com/c.yaml"),
        ("https://example.com/openapi.yaml", "https://example.com:444/c.yaml"),
        ("https://example.com/openapi.yaml", "file:///etc/passwd"),
        ("https://example.com/openapi.yaml", "/etc/passwd"),
    ],
)
def test_a_reference_leads_nowhere_else_unless_asked(origin: str, uri: str) -> None:
    with pytest.raises(DocumentError):
        Fetch(origin)(uri)


def test_the_documents_together_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 60)
    fetch: Callable[[str], bytes] = Fetch((tmp_path / "openapi.json").as_uri(), left=100)
    assert len(fetch((tmp_path / "x").as_uri())) == 60
    with pytest.raises(DocumentError, match="larger"):
        fetch((tmp_path / "x").as_uri())


# -- YAML is read as YAML 1.2 has it, bounded, and JSON can not hold what it does not --

needs_yaml = pytest.mark.needs("yaml")


def parsed(text: str | bytes) -> Any:
    return parse(text if isinstance(text, bytes) else text.encode(), lambda path, reason: None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: no", {"on": "no"}),
        ("200: ok", {"200": "ok"}),
        ("true: null: x", None),
        ("a: 2001-12-14", {"a": "2001-12-14"}),
        ("a: 12:30:00", {"a": "12:30:00"}),
        ("a: 010", {"a": 10}),
        ("a: 0o10", {"a": 8}),
        ("a: 0xff", {"a": 255}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: -1.5e3", {"a": -1500.0}),
        ("a: 1e999", {"a": "1e999"}),
        ("a: .NaN", {"a": ".NaN"}),
        ("a: .", {"a": "."}),
        ("a: ~", {"a": None}),
        ("a: TRUE", {"a": True}),
        ("a: !!str 1", {"a": "1"}),
        ("a: !!int '1'", {"a": 1}),
        ("a: !!binary aGk=", {"a": "aGk="}),
        ("a: 99999999999999999999", {"a": 1e20}),
        (f"a: {'9' * 5000}", {"a": "9" * 5000}),
        ("- &x [1]\n- *x", [[1], [1]]),
        ("&k a: 1\nb: {*k : 2}", {"a": 1, "b": {"a": 2}}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}}),
        ("b: {<<: [{p: 1}, {p: 2, q: 3}]}", {"b": {"p": 1, "q": 3}}),
        ("'<<': 1", {"<<": 1}),
        ("# nothing", None),
        ("--- 1\n--- 2", None),
        ("a: [", None),
        ("a: &a [*a]", None),
        ("? [1]\n: 2", None),
        ("a: {<<: 1}\nb: {<<: [1]}", None),
        ("a: \x01", None),
        (b"a: \xff\xfe", None),
    ],
)
@needs_yaml
def test_a_text_is_its_value_or_a_fault(text: str | bytes, value: Any) -> None:
    if value is None:
        try:
            assert parsed(text) is None
        except DocumentError as exc:
            assert "\n" not in str(exc)
    else:
        assert parsed(text) == value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["a: ü", '{"a": "ü"}'])
@needs_yaml
def test_a_text_with_a_byte_order_mark_is_read(encoding: str, text: str) -> None:
    assert parsed(text.encode(encoding)) == {"a": "ü"}


@needs_yaml
def test_a_key_that_occurs_twice_is_told_with_its_place() -> None:
    told: list[tuple[Place, str]] = []
    value = parse(b"a:\n- {}\n- b: {c: 1, c: 2}\n", lambda path, reason: told.append((path, reason)))
    assert value == {"a": [{}, {"b": {"c": 2}}]}
    assert [path for path, _ in told] == [((((None, "a"), "1"), "b"), "c")]


@needs_yaml
def test_aliases_that_come_to_too_much_are_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(DocumentError, match="aliases"):
        parsed("\n".join(lines))


@needs_yaml
def test_merged_keys_that_come_to_too_much_are_refused() -> None:
    keys = ",".join(f"k{n}: 1" for n in range(2000))
    with pytest.raises(DocumentError, match="aliases"):
        parsed(f"a: &a {{{keys}}}\nb:\n" + "- {<<: *a}\n" * 2000)


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[", "- "])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 1500, 100_000])
@needs_yaml
def test_deep_nesting_is_one_line(opening: str, depth: int) -> None:
    closing = {"[": "]", "{": "}"}
    text = opening * depth + "1" + "".join(closing.get(char, "") for char in reversed(opening)) * depth
    with pytest.raises(DocumentError) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)


@needs_yaml
def test_what_is_nested_as_deeply_as_allowed_is_read() -> None:
    assert parsed("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@needs_yaml
@given(JSON)
def test_yaml_of_any_json_is_that_json(value: Any) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes strings: PyYAML goes by YAML 1.1, where `0E0` is none of the numbers."""

    Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
    assert parsed(yaml.dump({"x": value}, Dumper=Dumper)) == {"x": value}


@needs_yaml
@given(st.binary(max_size=60) | st.text("[]{}:,-&*!|>#%@`'\"? \n\tab1", max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_a_fault(text: bytes) -> None:
    try:
        parsed(text)
    except DocumentError as exc:
        assert "\n" not in str(exc)
