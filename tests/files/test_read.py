"""`fs/read`: slices of files that, joined, are the file."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.files.service import FileSystem
from discreet.files.types import (
    MAX_OFFSET,
    MAX_READ_BYTES,
    FileContent,
    NotText,
)
from support.fs import CTX, refusal


def test_a_file_is_read_with_its_facts(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes("grüße\r\n".encode())
    os.utime(tmp_path / "file.txt", ns=(0, 1_700_000_000_123_999_999))
    assert fs.read(CTX, "file.txt") == FileContent(
        path="file.txt",
        encoding="utf-8",
        content="grüße\r\n",
        offset=0,
        next_offset=9,
        size=9,
        truncated=False,
        modified="2023-11-14T22:13:20.123Z",
    )


def test_offset_and_limit_choose_bytes(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    answer = fs.read(CTX, "file", offset=3, limit=4)
    assert (answer.content, answer.offset, answer.next_offset, answer.size, answer.truncated) == (
        "3456",
        3,
        7,
        10,
        True,
    )
    answer = fs.read(CTX, "file", offset=7, limit=3)
    assert (answer.content, answer.next_offset, answer.truncated) == ("789", 10, False)


@pytest.mark.parametrize("offset", [3, 4, 10**6, MAX_OFFSET])
def test_behind_the_end_there_is_nothing(fs: FileSystem, tmp_path: Path, offset: int) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    for encoding in ("utf-8", "base64"):
        answer = fs.read(CTX, "file", offset=offset, limit=MAX_READ_BYTES, encoding=encoding)
        assert (answer.content, answer.offset, answer.next_offset, answer.truncated) == ("", offset, offset, False)


def test_a_sparse_file_is_read_far_out(fs: FileSystem, tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        file.seek(2**32)
        file.write(b"end")
    answer = fs.read(CTX, "file", offset=2**32)
    assert (answer.content, answer.size, answer.truncated) == ("end", 2**32 + 3, False)


def test_a_large_file_is_cut_at_the_default_limit(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    answer = fs.read(CTX, "file")
    assert (len(answer.content), answer.next_offset, answer.truncated) == (65536, 65536, True)


def test_no_character_is_split(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("aé🙂z", encoding="utf-8")  # 1 + 2 + 4 + 1 bytes
    expected = {1: "a", 2: "a", 3: "aé", 4: "aé", 5: "aé", 6: "aé", 7: "aé🙂", 8: "aé🙂z"}
    for limit, content in expected.items():
        answer = fs.read(CTX, "file", limit=limit)
        assert (answer.content, answer.next_offset) == (content, len(content.encode()))
        assert answer.truncated is (content != "aé🙂z")


def test_a_slice_holds_at_least_one_character(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("🙂🙂", encoding="utf-8")
    answer = fs.read(CTX, "file", limit=1)
    assert (answer.content, answer.next_offset, answer.truncated) == ("🙂", 4, True)
    answer = fs.read(CTX, "file", offset=4, limit=1)
    assert (answer.content, answer.next_offset, answer.truncated) == ("🙂", 8, False)


@given(text=st.text(), limit=st.integers(1, 20))
@example(text="\ufeffbom", limit=1)
def test_slices_joined_are_the_file(scratch: tuple[Path, FileSystem], text: str, limit: int) -> None:
    place, fs = scratch
    data = text.encode()
    (place / "file").write_bytes(data)
    for encoding, join in (("utf-8", str.encode), ("base64", base64.b64decode)):
        offset, read, more = 0, b"", True
        while more:
            answer = fs.read(CTX, "file", offset=offset, limit=limit, encoding=encoding)  # type: ignore[arg-type]
            piece = join(answer.content)
            assert len(piece) == answer.next_offset - offset
            assert len(piece) <= limit or len(piece.decode()) == 1
            offset, read, more = answer.next_offset, read + piece, answer.truncated
        assert read == data


@pytest.mark.parametrize(
    ("data", "offset", "bad"),
    [
        (b"\xff", 0, 0),
        (b"abc\x80", 0, 3),
        (b"abc\xc3", 0, 3),
        (b"abc\xed\xa0\x80", 0, 3),
        (b"\xff\xfea\x00", 0, 0),
        ("aé".encode(), 2, 2),
        (b"good\xff", 2, 4),
        (b"\x80" * 100, 0, 0),
    ],
)
def test_bytes_that_are_no_utf_8_are_not_text_and_the_first_is_named(
    fs: FileSystem, tmp_path: Path, data: bytes, offset: int, bad: int
) -> None:
    (tmp_path / "file").write_bytes(data)
    error = refusal(lambda: fs.read(CTX, "file", offset=offset))
    assert isinstance(error, NotText)
    assert (error.path, error.offset) == ("file", bad)
    assert base64.b64decode(fs.read(CTX, "file", offset=offset, encoding="base64").content) == data[offset:]


@given(data=st.binary(max_size=40), limit=st.integers(1, 12))
def test_any_bytes_give_text_or_not_text_and_always_progress(
    scratch: tuple[Path, FileSystem], data: bytes, limit: int
) -> None:
    place, fs = scratch
    (place / "file").write_bytes(data)
    offset, text, more = 0, "", True
    while more:
        try:
            answer = fs.read(CTX, "file", offset=offset, limit=limit)
        except NotText:
            with pytest.raises(UnicodeDecodeError):
                data.decode()
            return
        assert answer.next_offset > offset or not answer.truncated
        offset, text, more = answer.next_offset, text + answer.content, answer.truncated
    assert text == data.decode()


def test_nul_and_byte_order_mark_are_kept(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfa\0b")
    assert fs.read(CTX, "file").content == "\ufeffa\0b"


def test_the_largest_slice_fits_a_frame_whatever_it_holds(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x01" * (MAX_READ_BYTES + 1))
    answer = fs.read(CTX, "file", limit=MAX_READ_BYTES)
    assert 6 * MAX_READ_BYTES < len(msgspec.json.encode(answer)) < 10 * 1024 * 1024
