"""`fs/search`: where literal text is found, and what bounds the work."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.daemon.services.fs.operations import FileSystem
from discreet.daemon.services.fs.root import Root
from discreet.daemon.services.fs.search import SEARCH_LIMITS, SearchLimits, SearchQuery, search
from discreet.daemon.services.fs.types import (
    FileNotFound,
    FileTooLarge,
    NotADirectory,
    NotText,
    SearchResult,
)
from support.fs import CTX, refusal


def places(found: SearchResult) -> list[tuple[str, int, int]]:
    return [(match.path, match.line, match.column) for match in found.matches]


def test_matches_name_file_line_column_byte_and_text(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f.txt").write_bytes("eins\r\nzwö drei, drei\r\n".encode())
    found = fs.search(CTX, "drei")
    assert (found.files, found.skipped, found.truncated) == (1, 0, False)
    first, second = found.matches
    assert (first.path, first.line, first.column, first.offset, first.text) == ("d/f.txt", 2, 5, 11, "zwö drei, drei")
    assert (second.line, second.column, second.offset) == (2, 11, 17)
    assert fs.read(CTX, first.path, offset=second.offset, limit=4).content == "drei"


def test_matches_come_by_directory_then_name_then_place(fs: FileSystem, tmp_path: Path) -> None:
    for path in ("z", "b/y", "b/c/x", "a/w", "a.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x\nx")
    expected = [(path, line, 1) for path in ("a.txt", "z", "a/w", "b/y", "b/c/x") for line in (1, 2)]
    assert places(fs.search(CTX, "x")) == expected


def test_paths_of_matches_are_relative_to_the_root_and_can_be_sent_back(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_text("here")
    for path in ("d", "d/e", "./d//", f"{tmp_path}/d", "d/e/f"):
        (match,) = fs.search(CTX, "here", path).matches
        assert match.path == "d/e/f"
        assert fs.read(CTX, match.path).content == "here"


def test_case_is_ignored_on_demand_and_every_place_stays_where_it_is(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("İ Straße ΟΔΟΣ οδος ÉÉ", encoding="utf-8")
    assert places(fs.search(CTX, "STRAßE")) == []
    assert places(fs.search(CTX, "STRAßE", case="ignore")) == [("f", 1, 3)]
    assert places(fs.search(CTX, "οδοσ", case="ignore")) == [("f", 1, 10), ("f", 1, 15)]
    assert places(fs.search(CTX, "é", case="ignore")) == [("f", 1, 20), ("f", 1, 21)]
    assert places(fs.search(CTX, "i", case="ignore")) == [("f", 1, 1)]


@pytest.mark.parametrize("codes", [range(0xD800), range(0xE000, 0x80000), range(0x80000, 0x110000)])
def test_ignoring_case_moves_nothing_whatever_characters_come_before(
    fs: FileSystem, tmp_path: Path, codes: range
) -> None:
    before = "".join(map(chr, codes)).encode()
    (tmp_path / "f").write_bytes(before + b"Found Here")
    (match,) = fs.search(CTX, "fOUND hERE", "f", case="ignore").matches
    assert match.offset == len(before)


def test_whole_words_are_found_on_demand(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("cat concat cat_ (cat) cats cat", encoding="utf-8")
    assert [column for _, _, column in places(fs.search(CTX, "cat", words=True))] == [1, 18, 28]


def test_a_glob_chooses_by_name_or_by_path(fs: FileSystem, tmp_path: Path) -> None:
    for path in ("a.py", "b.txt", "s/c.py", "s/t/d.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")

    def chosen(glob: str, path: str = ".") -> list[str]:
        return [match.path for match in fs.search(CTX, "x", path, glob=glob).matches]

    assert chosen("*.py") == ["a.py", "s/c.py", "s/t/d.py"]
    assert chosen("[ab].*") == ["a.py", "b.txt"]
    assert chosen("s/*.py") == ["s/c.py", "s/t/d.py"]
    assert chosen("t/*", "s") == ["s/t/d.py"]
    assert chosen("*.PY") == []


@given(glob=st.text(alphabet="*?[]!-^|&~.\\/ab", min_size=1))
@example(glob="*a" * 100 + "b")
def test_no_glob_fails(scratch: tuple[Path, FileSystem], glob: str) -> None:
    place, fs = scratch
    (place / ("a" * 250)).write_text("x")
    assert fs.search(CTX, "x", glob=glob).files <= 3


@given(
    text=st.text(alphabet="aAbäÄßİ\n_ 🙂", max_size=60),
    query=st.text(alphabet="aAbäÄßİ\n_ 🙂", min_size=1, max_size=3),
)
def test_matches_are_what_a_plain_search_of_the_bytes_finds(
    scratch: tuple[Path, FileSystem], text: str, query: str
) -> None:
    place, fs = scratch
    (place / "text").write_bytes(text.encode())
    found = fs.search(CTX, query, "text")
    assert [match.offset for match in found.matches] == [
        m.start() for m in re.finditer(re.escape(query.encode()), text.encode())
    ]
    for match in found.matches:
        before = text.encode()[: match.offset].decode()
        assert match.line == before.count("\n") + 1
        assert match.column == len(before.rpartition("\n")[2]) + 1
        assert match.text == text.split("\n")[match.line - 1]


def test_a_long_line_is_shown_around_the_match(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * 5000 + "needle" + "y" * 5000 + "\nneedle " + "z" * 500)
    first, second = fs.search(CTX, "needle").matches
    assert (first.column, len(first.text)) == (5001, 200)
    assert "needle" in first.text
    assert second.text == "needle " + "z" * 193


def test_a_file_of_one_line_with_matches_everywhere_is_searched_to_the_limit(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("ab" * (2 * 1024 * 1024))
    found = fs.search(CTX, "ab", limit=1000)
    assert (len(found.matches), found.truncated) == (1000, True)
    assert fs.search(CTX, "ab" * 500 + "c", words=True, case="ignore").matches == ()


def test_a_limit_cuts_the_matches_and_says_so(fs: FileSystem, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x x")
    assert [fs.search(CTX, "x", limit=limit).truncated for limit in (1, 2, 3, 4, 5)] == [True, True, True, False, False]
    assert places(fs.search(CTX, "x", limit=3)) == [("a", 1, 1), ("a", 1, 3), ("b", 1, 1)]


def test_binary_and_large_files_are_passed_over_and_counted(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "nul").write_bytes(b"needle\0")
    (tmp_path / "latin").write_bytes(b"needle\xe9")
    (tmp_path / "large").write_bytes(b"needle".ljust(SEARCH_LIMITS.file_bytes + 1))
    (tmp_path / "just").write_bytes(b"needle".ljust(SEARCH_LIMITS.file_bytes))
    found = fs.search(CTX, "needle")
    assert [match.path for match in found.matches] == ["just"]
    assert (found.files, found.skipped, found.truncated) == (1, 3, False)


def test_one_named_file_is_searched_or_the_reason_told(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"needle\xe9")
    (tmp_path / "large").write_bytes(b"x" * (SEARCH_LIMITS.file_bytes + 1))
    (tmp_path / "good").write_text("needle")
    assert places(fs.search(CTX, "needle", "good")) == [("good", 1, 1)]
    not_text = refusal(lambda: fs.search(CTX, "needle", "latin"))
    assert isinstance(not_text, NotText)
    assert not_text.offset == 6
    too_large = refusal(lambda: fs.search(CTX, "x", "./large"))
    assert isinstance(too_large, FileTooLarge)
    assert (too_large.path, too_large.size, too_large.limit) == (
        "./large",
        SEARCH_LIMITS.file_bytes + 1,
        SEARCH_LIMITS.file_bytes,
    )
    assert isinstance(refusal(lambda: fs.search(CTX, "x", "missing")), FileNotFound)
    assert isinstance(refusal(lambda: fs.search(CTX, "x", "good/below")), NotADirectory)


def test_stores_of_version_control_are_searched_only_when_named(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("needle")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "config").write_text("needle")
    assert [match.path for match in fs.search(CTX, "needle").matches] == [".github/config"]
    assert [match.path for match in fs.search(CTX, "needle", ".git").matches] == [".git/config"]


def test_the_names_and_bytes_of_one_search_are_bounded(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    query = SearchQuery(text="x", glob=None, ignore_case=False, words=False, limit=10)

    def looked_at(bounds: SearchLimits) -> tuple[int, bool]:
        with Root(str(tmp_path)) as root:
            found = search(root, CTX, ".", query, bounds)
        return found.files, found.truncated

    assert looked_at(SearchLimits(entries=5, total_bytes=4)) == (4, False)
    assert looked_at(SearchLimits(entries=4)) == (3, True)
    assert looked_at(SearchLimits(entries=2))[1] is True
    assert looked_at(SearchLimits(total_bytes=3)) == (3, True)


def test_the_size_of_an_answer_is_bounded(fs: FileSystem, tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(15):
        deep = deep / ("\x01" * 250)
    deep.mkdir(parents=True)
    (deep / "f").write_text("\x01" * 1000)
    found = fs.search(CTX, "\x01", limit=1000)
    assert found.truncated
    assert len(msgspec.json.encode(found)) < 10 * 1024 * 1024


def test_what_lies_deeper_than_any_path_that_can_be_sent_is_passed_over(fs: FileSystem, tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    found = fs.search(CTX, "x")
    assert (found.files, found.skipped) == (16, 1)
