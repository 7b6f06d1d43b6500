"""What was read of a document is kept, and read again when the document is another one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h11")

from discreet import from_openapi
from discreet.imports.openapi import reader

SERVERS = [{"url": "https://pets.example.com"}]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with a cache of its own. Nothing in the cache is older than the files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The documents that were read, and not taken from the cache."""
    found: list[str] = []
    read = reader.read_openapi

    def counted(document: Any, **options: Any) -> Any:
        found.append(options.get("origin", ""))
        return read(document, **options)

    monkeypatch.setattr(reader, "read_openapi", counted)
    return found


def write(path: Path, *operations: str, schema: Any = None) -> None:
    content = {"application/json": {"schema": schema or {"type": "string"}}}
    responses = {"200": {"description": "", "content": content}}
    paths = {f"/{name}": {"get": {"operationId": name, "responses": responses}} for name in operations}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": SERVERS, "paths": paths}
    path.write_text(json.dumps(document))


def names(path: Path, **options: Any) -> list[str]:
    return [spec.name for spec in from_openapi(path, namespace="n", **options).operations]


def kept(home: Path) -> list[Path]:
    return sorted((home / "cache" / "discreet" / "imports").glob("*"))


def test_a_document_is_read_once_and_again_when_it_has_changed(home: Path, reads: list[str]) -> None:
    document = home / "api.json"
    write(document, "one")
    status = document.stat()
    assert names(document) == ["n/one"] == names(document)
    assert len(reads) == 1
    write(document, "two")  # of the same size, and of the same time
    os.utime(document, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert names(document) == ["n/two"] == names(document)
    assert len(reads) == 2
    assert len(kept(home)) == 1


def test_filters_names_and_versions_make_another_import(home: Path, reads: list[str]) -> None:
    document = home / "api.json"
    write(document, "one", "two")
    assert names(document, include=["one"]) == ["n/one"]
    assert names(document, exclude=["one"]) == ["n/two"]
    assert names(document, rename={"one": "first"}) == ["n/first", "n/two"]
    assert names(document, include=["one"]) == ["n/one"]
    assert len(reads) == 3


def test_a_document_that_another_one_refers_to_counts_too(home: Path, reads: list[str]) -> None:
    document, types = home / "api.json", home / "types.json"
    types.write_text('{"T": {"type": "integer"}}')
    write(document, "one", schema={"$ref": "types.json#/T"})
    for _ in range(2):
        service = from_openapi(document, namespace="n")
    assert len(reads) == 1
    types.write_text('{"T": {"type": "boolean"}}')
    changed = from_openapi(document, namespace="n")
    assert len(reads) == 2
    assert _result(service) == {"type": "integer"}
    assert _result(changed) == {"type": "boolean"}


def _result(service: Any) -> Any:
    schema = service.operations[0].returns.load()
    return schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, None])
def test_a_damaged_cache_is_read_past(damage: bytes | None, home: Path, reads: list[str]) -> None:
    document = home / "api.json"
    write(document, "one")
    names(document)
    (file,) = kept(home)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)  # its user's alone
    file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    assert names(document) == ["n/one"]
    assert len(reads) == 2


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(home: Path, reads: list[str]) -> None:
    document = home / "api.json"
    write(document, "one")
    (home / "cache").write_text("a file, and no folder")
    assert names(document) == ["n/one"] == names(document)
    assert len(reads) == 2
