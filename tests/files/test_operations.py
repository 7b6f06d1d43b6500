"""What the file service declares, and what its listings and facts say."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import OperationError
from discreet.files import types
from discreet.files.root import Root
from discreet.files.search import LINE_CHARS, SEARCH_LIMITS
from discreet.files.service import FileSystem, timestamp
from discreet.files.types import (
    MAX_READ_BYTES,
    MAX_WRITE_BYTES,
    Entry,
    FileNotFound,
    FileStat,
    Listing,
    NotADirectory,
)
from support.fs import CTX, Cancelled, Request, refusal

DOCUMENT = Path(__file__).parents[2] / "docs" / "fs.md"
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="names of any bytes, and permission bits, are POSIX")


# The interface


DECLARED = {
    "read": types.READ_ERRORS, "list": types.PATH_ERRORS, "stat": types.PATH_ERRORS, "search": types.SEARCH_ERRORS,
    "write": types.WRITE_ERRORS,
}  # fmt: skip


def test_every_operation_has_the_documented_params_and_defaults() -> None:
    def params(operation: Callable[..., object]) -> dict[str, object]:
        return {
            name: param.default for name, param in inspect.signature(operation).parameters.items() if name != "self"
        }

    required = inspect.Parameter.empty
    ctx = {"ctx": required}
    assert params(FileSystem.read) == ctx | {"path": required, "offset": 0, "limit": 65536, "encoding": "utf-8"}
    assert params(FileSystem.list) == ctx | {"path": ".", "limit": 1000, "after": None}
    assert params(FileSystem.stat) == ctx | {"path": required}
    search = {"query": required, "path": ".", "glob": None, "case": "sensitive", "words": False, "limit": 100}
    assert params(FileSystem.search) == ctx | search | {"resume": None}
    assert params(FileSystem.write) == ctx | {
        "path": required,
        "content": required,
        "encoding": "utf-8",
        "mode": "overwrite",
    }


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (types.ReadLimit, (1, 1024 * 1024), (0, -1, 1024 * 1024 + 1)),
        (types.Offset, (0, 2**53 - 1), (-1, 2**53)),
        (types.ListLimit, (1, 5000), (0, 5001)),
        (types.SearchLimit, (1, 1000), (0, 1001)),
        (types.SearchText, ("x", "x" * 1024), ("", "x" * 1025)),
        (types.Glob, ("*", "x" * 256), ("", "x" * 257)),
        (types.PathText, ("", "x" * 4096), ("x" * 4097,)),
        (types.WriteMode, ("overwrite", "create"), ("append",)),
        (types.Encoding, ("utf-8", "base64"), ("latin-1",)),
    ],
)
def test_params_have_their_declared_bounds(hint: Any, good: tuple[object, ...], bad: tuple[object, ...]) -> None:
    assert [msgspec.convert(value, hint) for value in good] == list(good)
    for value in bad:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, hint)


@given(path=st.lists(st.sampled_from(["d", "f", "bin", "..", "no", "x" * 300, "\0"]), max_size=3).map("/".join))
def test_operations_raise_only_what_they_declare(scratch: tuple[Path, FileSystem], path: str) -> None:
    place, fs = scratch
    (place / "d").mkdir(exist_ok=True)
    (place / "f").write_text("text")
    (place / "bin").write_bytes(b"\xff")
    acts: dict[str, Callable[[], object]] = {
        "read": lambda: fs.read(CTX, path),
        "list": lambda: fs.list(CTX, path),
        "stat": lambda: fs.stat(CTX, path),
        "search": lambda: fs.search(CTX, "x", path),
        "write": lambda: fs.write(CTX, path, "x", mode="create"),
    }
    for name, act in acts.items():
        try:
            act()
        except OperationError as error:
            assert isinstance(error, DECLARED[name])
            assert error.path == path
    (place / "no").unlink(missing_ok=True)


# fs/list


def test_a_directory_is_listed_by_name_with_kind_size_and_time(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("four")
    (tmp_path / "B").write_text("")
    for name in ("a.txt", "b", "B"):
        os.utime(tmp_path / name, ns=(0, 1_000_000))
    at = "1970-01-01T00:00:00.001Z"
    entries = (Entry("B", "file", 0, at), Entry("a.txt", "file", 4, at), Entry("b", "directory", 0, at))
    assert fs.list(CTX) == Listing(path=".", entries=entries, next=None, skipped=0)


def test_an_empty_directory_lists_nothing(fs: FileSystem) -> None:
    assert fs.list(CTX) == Listing(path=".", entries=(), next=None, skipped=0)


def test_what_is_no_directory_is_not_listed(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(refusal(lambda: fs.list(CTX, "file")), NotADirectory)
    assert isinstance(refusal(lambda: fs.list(CTX, "missing")), FileNotFound)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9, 5000])
def test_pages_joined_are_the_directory(fs: FileSystem, tmp_path: Path, limit: int) -> None:
    names = sorted(["a", "A", "_", "é", "zz", "🙂", "\uffee", "10"])
    for name in names:
        (tmp_path / name).write_text("")
    seen: list[str] = []
    after = None
    while True:
        page = fs.list(CTX, limit=limit, after=after)
        assert len(page.entries) <= limit
        seen += [entry.name for entry in page.entries]
        if page.next is None:
            break
        assert page.next == seen[-1]
        after = page.next
    assert seen == names


def test_after_need_not_be_a_name_in_the_directory(fs: FileSystem, tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / name).write_text("")
    assert [entry.name for entry in fs.list(CTX, after="b").entries] == ["c"]
    assert fs.list(CTX, after="c").entries == ()
    assert [entry.name for entry in fs.list(CTX, after="").entries] == ["a", "c"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_text_are_counted_and_not_listed(fs: FileSystem, tmp_path: Path) -> None:
    for raw in (b"\xff", b"caf\xe9", b"plain"):
        with open(os.path.join(os.fsencode(tmp_path), raw), "wb") as file:
            file.write(b"plain")
    page = fs.list(CTX)
    assert [entry.name for entry in page.entries] == ["plain"]
    assert page.skipped == 2
    found = fs.search(CTX, "plain")
    assert [match.path for match in found.matches] == ["plain"]
    assert found.skipped == 2


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileSystem]:
    """A directory of 20,000 names."""
    place = tmp_path_factory.mktemp("crowd")
    for number in range(20_000):
        os.mkdir(place / f"{number:05}-{'x' * 100}")
    with closing(Root(str(place))) as root:
        yield FileSystem(root)


def test_a_huge_directory_is_paged_in_bounded_memory(crowd: FileSystem) -> None:
    crowd.list(CTX, limit=1)
    tracemalloc.start()
    try:
        page = crowd.list(CTX, limit=50, after="1")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [entry.name[:5] for entry in page.entries] == [f"{number:05}" for number in range(10_000, 10_050)]
    assert peak < 200_000  # the names alone would take 3 MB


def test_listing_a_huge_directory_is_cancelled_on_the_way(crowd: FileSystem) -> None:
    with pytest.raises(Cancelled):
        crowd.list(Request(looks=3))
    with pytest.raises(Cancelled):
        crowd.search(Request(looks=3), "x")


def test_the_largest_page_fits_a_frame_whatever_the_names() -> None:
    entry = Entry("\x01" * 255, "directory", 2**53, "2023-11-14T22:13:20.123Z")
    page = Listing("." * 4096, (entry,) * types.MAX_LIST_ENTRIES, entry.name, 0)
    assert len(msgspec.json.encode(page)) < 10 * 1024 * 1024


# fs/stat


def test_stat_tells_kind_size_and_time(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    os.utime(tmp_path / "file", ns=(0, 0))
    assert fs.stat(CTX, "./file") == FileStat("./file", "file", 4, "1970-01-01T00:00:00.000Z")
    assert fs.stat(CTX, ".").kind == "directory"
    assert fs.stat(CTX, ".").size == 0


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (999_999, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
        (253_402_300_799_999_999_999, "9999-12-31T23:59:59.999Z"),
        (-62_135_596_800_000_000_000, "0001-01-01T00:00:00.000Z"),
        (2**63 * 1_000_000_000, "9999-12-31T23:59:59.000Z"),
        (-(2**63) * 1_000_000_000, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_rfc_3339_in_milliseconds(nanoseconds: int, expected: str) -> None:
    assert timestamp(nanoseconds) == expected


# The document


def test_the_document_names_every_error_and_every_limit() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for errors in DECLARED.values():
        for error in errors:
            assert f"| `{error.definition.code}` | {error.definition.http_status} |" in text
    for limit in (
        types.DEFAULT_READ_BYTES,
        types.MAX_PATH_CHARS,
        types.DEFAULT_LIST_ENTRIES,
        types.MAX_LIST_ENTRIES,
        types.DEFAULT_SEARCH_MATCHES,
        types.MAX_SEARCH_MATCHES,
        LINE_CHARS,
    ):
        assert re.search(rf"\b{limit:,}\b", text), limit
    for mebibytes in (MAX_READ_BYTES, MAX_WRITE_BYTES, SEARCH_LIMITS.file_bytes):
        assert f"{mebibytes // 2**20} MiB" in text


def examples() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)]
    return list(zip(blocks[::2], blocks[1::2], strict=True))


@ON_POSIX
def test_the_examples_of_the_document_are_what_happens(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "notes.txt").write_text("Grüße\nsecond line\n", encoding="utf-8")
    (tmp_path / "src" / "app.py").write_text("import sys\n\n\ndef main() -> None:\n    sys.exit(0)\n")
    (tmp_path / "latest").symlink_to("notes.txt")
    for name in ("src/app.py", "notes.txt", "src", "latest"):
        os.utime(tmp_path / name, ns=(0, 1_767_225_600_250_000_000), follow_symlinks=False)
    seen = set()
    for request, reply in examples():
        verb = request["method"].removeprefix("fs/")
        seen.add(verb)
        try:
            result = getattr(fs, verb)(CTX, **request["params"])
        except OperationError as error:
            assert reply["error"]["data"]["code"] == error.definition.code
            assert reply["error"]["message"] == error.definition.message
            assert reply["error"]["data"]["details"] == msgspec.to_builtins(error.details)
        else:
            actual = json.loads(msgspec.json.encode(result))
            if verb == "write":
                actual["modified"] = reply["result"]["modified"]  # the time of writing
            assert actual == reply["result"]
        assert request["id"] == reply["id"]
    assert seen == set(DECLARED)
