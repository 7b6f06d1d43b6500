"""Documents are got from files and URLs, bounded, and what can't be got is one line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from discreet.imports.openapi import loading
from discreet.imports.openapi.loading import Fetch, load_document
from discreet.imports.openapi.parsing import DocumentError
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
