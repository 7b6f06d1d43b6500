"""`fs/search`: where literal text is found, and what bounds the work."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.errors import FailureError, InvalidParams
from discreet.files.root import Root
from discreet.files.search import SEARCH_LIMITS, SearchLimits, SearchQuery, search
from discreet.files.service import MAX_LISTINGS, MAX_SEARCHES, FileSystem, file_service
from discreet.files.types import (
    FileNotFound,
    FileTooLarge,
    NotADirectory,
    NotText,
    OutsideRoot,
    SearchPlace,
    SearchResult,
)
from support.fs import CTX, Cancelled, Request, refusal


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


def test_matches_come_sorted_by_path_and_place(fs: FileSystem, tmp_path: Path) -> None:
    for path in ("z", "b/y", "b/c/x", "a/w", "a.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x\nx")
    expected = [(path, line, 1) for path in ("a/w", "a.txt", "b/c/x", "b/y", "z") for line in (1, 2)]
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


def plant(tmp_path: Path) -> list[str]:
    """A small tree in which `x` stands in many places. Returns the paths of the files in the order of a search."""
    paths = ["a", "b.d/e", "b.d/f/g", "b.d/h", "b/i", "c"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("ä x x\nyx " * 3)
    return sorted(paths, key=lambda path: path.split("/"))


def resumed(root: Root, query: SearchQuery, limits: SearchLimits, path: str = ".") -> Iterator[SearchResult]:
    """The answers of one search after the other, each from where the one before ended."""
    place: SearchPlace | None = None
    while True:
        found = search(root, CTX, path, msgspec.structs.replace(query, resume=place), limits)
        yield found
        assert found.truncated == (found.next is not None)
        if found.next is None:
            return
        assert found.next != place
        place = found.next


@pytest.mark.parametrize("path", [".", "b.d", "b.d/f/g"])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(
    ("limit", "limits"),
    [
        (1, SearchLimits()),
        (2, SearchLimits()),
        (7, SearchLimits(names=1)),
        (1000, SearchLimits(seconds=0)),
        (1000, SearchLimits(result_chars=1)),
    ],
)
def test_a_search_that_is_resumed_finds_what_one_without_limits_finds(
    tmp_path: Path, path: str, words: bool, limit: int, limits: SearchLimits
) -> None:
    order = [name for name in plant(tmp_path) if path == "." or name.startswith(path)]
    with closing(Root(str(tmp_path))) as root:
        whole = search(root, CTX, path, SearchQuery("x", words=words, limit=1000))
        pages = list(resumed(root, SearchQuery("x", words=words, limit=limit), limits, path))
    assert list(dict.fromkeys(match.path for match in whole.matches)) == order
    assert not whole.truncated
    assert [match for page in pages for match in page.matches] == list(whole.matches)


def test_the_time_of_one_search_is_bounded_also_within_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("ab" * 500_000 + " ab ")
    query = SearchQuery("ab", words=True, limit=1000)
    with closing(Root(str(tmp_path))) as root:
        pages = list(resumed(root, query, SearchLimits(seconds=0)))
    assert len(pages) > 5
    assert [match.offset for page in pages for match in page.matches] == [1_000_001]


def test_a_directory_of_many_names_is_searched_with_few_of_them_in_memory(tmp_path: Path) -> None:
    names = [f"{number:04}" for number in range(1000)]
    for name in names:
        (tmp_path / name).write_text("x")
    with closing(Root(str(tmp_path))) as root:
        found = search(root, CTX, ".", SearchQuery("x", limit=1000), SearchLimits(names=1))
    assert [match.path for match in found.matches] == names


def test_a_place_to_go_on_at_must_be_below_the_path(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(FailureError) as caught:
        fs.search(CTX, "x", "d", resume=SearchPlace("e/f"))
    assert isinstance(caught.value.failure, InvalidParams)
    assert caught.value.failure.param == "resume.path"
    assert isinstance(refusal(lambda: fs.search(CTX, "x", "d", resume=SearchPlace("../e"))), OutsideRoot)


@pytest.mark.parametrize(
    "resume", [SearchPlace("b", 10**9), SearchPlace("b/gone", 3), SearchPlace("aa"), SearchPlace(".")]
)
def test_a_place_that_is_gone_is_no_error(fs: FileSystem, tmp_path: Path, resume: SearchPlace) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("x")
    assert fs.search(CTX, "x", resume=resume).matches[-1].path == "c"


def test_a_search_is_cancelled_within_a_file(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("ab" * (1 << 20))
    with pytest.raises(Cancelled):
        fs.search(Request(looks=1), "ab", "f", words=True, case="ignore")


def test_words_that_overlap_what_is_no_word_are_found(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("xa a a")
    assert [match.column for match in fs.search(CTX, "a a", words=True).matches] == [4]


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


# Under load: however many come, everything else is answered, and a cancelled one stops

Serving = Callable[..., AbstractAsyncContextManager[Any]]

SEARCHES = 64

SLOW = {"query": "ab", "words": True}
"""It stands everywhere and is a word nowhere: the most work that a text can make."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("ab" * (1 << 20))
    return tmp_path


@pytest.mark.anyio
async def test_many_searches_hold_up_nothing_else(serving: Serving, tree: Path) -> None:
    async with serving(file_service(str(tree), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/search", SLOW, id=number) for number in range(SEARCHES)))
        version = await wire.call("version", id="version")
        assert version["id"] == "version"  # before the first search has ended
        assert wire.daemon.host.scheduler.counts()["threads_busy"] <= MAX_SEARCHES
        assert (await wire.call("fs/stat", {"path": "0.txt"}, id="stat"))["id"] == "stat"
        for number in range(SEARCHES):
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        replies = await wire.receive_all(SEARCHES)
        assert {reply["id"] for reply in replies} == set(range(SEARCHES))
        assert all(reply["error"]["code"] == -32800 for reply in replies)


@pytest.mark.anyio
async def test_the_threads_of_cancelled_searches_are_free_again(serving: Serving, tree: Path) -> None:
    async with serving(file_service(str(tree), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/search", SLOW, id=number) for number in range(MAX_SEARCHES)))
        await wire.call("version", id="version")
        for number in range(MAX_SEARCHES):
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        await wire.receive_all(MAX_SEARCHES)
        reply = await wire.call("fs/search", {"query": "ab", "limit": 1}, id="next")  # it needs one of their places
        assert reply["result"]["next"] == {"path": "0.txt", "offset": 2}
        with anyio.fail_after(5):
            while wire.daemon.host.scheduler.counts()["threads_busy"]:
                await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_many_listings_hold_up_nothing_else(serving: Serving, tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / str(number)).touch()
    async with serving(file_service(str(tmp_path), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/list", {}, id=number) for number in range(SEARCHES)))
        await wire.send(wire.request("version", id="version"))
        replies = [await wire.receive()]
        assert wire.daemon.host.scheduler.counts()["threads_busy"] <= MAX_LISTINGS
        replies += await wire.receive_all(SEARCHES)
        assert "version" in [reply["id"] for reply in replies[: MAX_LISTINGS + 1]]
        assert [reply["id"] for reply in replies if "error" in reply] == []
