"""`fs/write`: a file has its old content or its new one, never a part."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import FailureError, InvalidParams
from discreet.files.service import FileSystem
from discreet.files.types import (
    MAX_WRITE_BYTES,
    FileExists,
    FileNotFound,
    FileTooLarge,
    FileWritten,
)
from support.fs import CTX, Cancelled, Request, refusal

ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="names of any bytes, and permission bits, are POSIX")


def wrong_param(act: Callable[[], object]) -> str:
    with pytest.raises(FailureError) as caught:
        act()
    assert isinstance(caught.value.failure, InvalidParams)
    return caught.value.failure.param


def test_a_new_file_is_written_and_described(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    written = fs.write(CTX, "d/new.txt", "grüße\n")
    assert (tmp_path / "d" / "new.txt").read_bytes() == "grüße\n".encode()
    assert written == FileWritten("d/new.txt", 8, fs.stat(CTX, "d/new.txt").modified, created=True)


def test_a_file_is_replaced_as_a_whole(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("something longer")
    assert fs.write(CTX, "f", "short").created is False
    assert (tmp_path / "f").read_text() == "short"
    assert os.listdir(tmp_path) == ["f"]


def test_base64_writes_bytes(fs: FileSystem, tmp_path: Path) -> None:
    data = bytes(range(256))
    fs.write(CTX, "f", base64.b64encode(data).decode(), encoding="base64")
    assert (tmp_path / "f").read_bytes() == data
    fs.write(CTX, "f", "", encoding="base64")
    assert (tmp_path / "f").read_bytes() == b""


@pytest.mark.parametrize("content", ["!", "YQ", "YQ==\n", "YQ==YQ==", "é", "YQ== "])
def test_what_is_no_base64_is_a_wrong_param_and_nothing_is_written(
    fs: FileSystem, tmp_path: Path, content: str
) -> None:
    assert wrong_param(lambda: fs.write(CTX, "f", content, encoding="base64")) == "content"
    assert os.listdir(tmp_path) == []


def test_a_lone_surrogate_is_no_content(fs: FileSystem, tmp_path: Path) -> None:
    assert wrong_param(lambda: fs.write(CTX, "f", "\ud800")) == "content"
    assert os.listdir(tmp_path) == []


def test_create_never_touches_a_file_that_is_there(fs: FileSystem, tmp_path: Path) -> None:
    assert fs.write(CTX, "f", "first", mode="create").created is True
    error = refusal(lambda: fs.write(CTX, "f", "second", mode="create"))
    assert isinstance(error, FileExists)
    assert (tmp_path / "f").read_text() == "first"
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_is_never_written_into_a_directory_that_is_not_there(fs: FileSystem) -> None:
    assert isinstance(refusal(lambda: fs.write(CTX, "missing/f", "x")), FileNotFound)


def test_content_beyond_the_limit_is_refused_before_anything_is_written(fs: FileSystem, tmp_path: Path) -> None:
    error = refusal(lambda: fs.write(CTX, "f", "é" * (MAX_WRITE_BYTES // 2) + "x"))
    assert isinstance(error, FileTooLarge)
    assert (error.size, error.limit) == (MAX_WRITE_BYTES + 1, MAX_WRITE_BYTES)
    assert os.listdir(tmp_path) == []
    assert fs.write(CTX, "f", "x" * MAX_WRITE_BYTES).size == MAX_WRITE_BYTES


def test_a_cancelled_write_changes_nothing(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with pytest.raises(Cancelled):
        fs.write(Request(looks=0), "f", "new")
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


@ON_POSIX
def test_a_reader_that_has_the_old_file_open_keeps_it(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old content")
    with open(tmp_path / "f") as reader:
        fs.write(CTX, "f", "new")
        assert reader.read() == "old content"


@ON_POSIX
def test_content_is_on_the_disk_before_it_takes_its_name(fs: FileSystem) -> None:
    calls: list[str] = []

    def note(frame: object, event: str, arg: object) -> None:
        if event == "c_call":
            calls.append(getattr(arg, "__name__", ""))

    sys.setprofile(note)
    try:
        fs.write(CTX, "f", "new")
    finally:
        sys.setprofile(None)
    assert [call for call in calls if call in ("write", "fsync", "rename")] == ["write", "fsync", "rename", "fsync"]


@ON_POSIX
def test_permission_bits_are_kept_and_those_that_lend_rights_are_dropped(fs: FileSystem, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    for before, after in ((0o640, 0o640), (0o755, 0o755), (0o600, 0o600), (0o4755, 0o755)):
        (tmp_path / "f").chmod(before)
        fs.write(CTX, "f", "new")
        assert (tmp_path / "f").stat().st_mode & 0o7777 == after


@ON_POSIX
def test_a_new_file_has_the_permissions_of_the_umask(fs: FileSystem, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        fs.write(CTX, "f", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


@ON_POSIX
def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_no_other(fs: FileSystem, tmp_path: Path) -> None:
    import resource

    (tmp_path / "f").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError):
            fs.write(CTX, "f", "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]
