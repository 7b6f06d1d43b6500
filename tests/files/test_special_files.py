"""FIFOs, sockets and devices are never opened, and what the system forbids is said to be so."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from discreet.files.root import Root
from discreet.files.service import FileSystem
from discreet.files.types import (
    NotAFile,
    PermissionDenied,
)
from support.fs import CTX, finishes, refusal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs, devices and permission bits are POSIX")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "top.txt").write_text("inside top")
    (root / "a" / "one.txt").write_text("inside one")
    (root / "a" / "b" / "two.txt").write_text("inside two")
    return root


@contextmanager
def without_privilege() -> Iterator[None]:
    """Permission bits bind everyone but the superuser, who steps down for the while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# Special files


def test_a_fifo_is_no_file_and_nobody_waits_for_its_other_end(fs: FileSystem, fifo: Path) -> None:
    assert isinstance(finishes(lambda: fs.read(CTX, "fifo")), NotAFile)
    assert isinstance(finishes(lambda: fs.search(CTX, "x", "fifo")), NotAFile)
    assert isinstance(finishes(lambda: fs.write(CTX, "fifo", "x")), NotAFile)
    assert finishes(lambda: fs.search(CTX, "x")) is None
    assert fs.stat(CTX, "fifo").kind == "other"
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


def test_a_socket_is_no_file(fs: FileSystem, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)  # a socket's path may have about a hundred bytes only
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert isinstance(refusal(lambda: fs.read(CTX, "socket")), NotAFile)
        assert isinstance(refusal(lambda: fs.write(CTX, "socket", "x")), NotAFile)


@pytest.mark.parametrize("device", ["null", "zero", "tty"])
def test_a_device_is_no_file(device: str) -> None:
    with closing(Root("/dev")) as opened:
        assert isinstance(refusal(lambda: FileSystem(opened).read(CTX, device)), NotAFile)


def test_a_directory_is_no_file(fs: FileSystem) -> None:
    for path in ("a", ".", ""):
        assert isinstance(refusal(fs.read, CTX, path), NotAFile)
        assert isinstance(refusal(fs.write, CTX, path, "x"), NotAFile)


# Permissions


def test_what_the_system_forbids_is_permission_denied(fs: FileSystem, place: Path) -> None:
    (place / "a" / "one.txt").chmod(0)
    (place / "a" / "b").chmod(0)
    (place / "top.txt").chmod(0o444)
    with without_privilege():
        assert isinstance(refusal(lambda: fs.read(CTX, "a/one.txt")), PermissionDenied)
        assert isinstance(refusal(lambda: fs.read(CTX, "a/b/two.txt")), PermissionDenied)
        assert isinstance(refusal(lambda: fs.list(CTX, "a/b")), PermissionDenied)
        assert isinstance(refusal(lambda: fs.search(CTX, "inside", "a/b")), PermissionDenied)
        assert isinstance(refusal(lambda: fs.write(CTX, "top.txt", "x")), PermissionDenied)
        found = fs.search(CTX, "inside")
    (place / "a" / "b").chmod(0o755)
    assert [match.path for match in found.matches] == ["top.txt"]
    assert found.skipped == 2


def test_a_read_only_file_is_not_replaced_in_a_directory_that_may_be_written(fs: FileSystem, place: Path) -> None:
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    (place / "open" / "kept.txt").write_text("kept")
    (place / "open" / "kept.txt").chmod(0o444)
    with without_privilege():
        assert isinstance(refusal(lambda: fs.write(CTX, "open/kept.txt", "x")), PermissionDenied)
        assert fs.write(CTX, "open/new.txt", "x").created
    assert (place / "open" / "kept.txt").read_text() == "kept"


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="only O_PATH passes a directory that may not be read")
def test_a_directory_that_may_be_passed_but_not_listed_is_passed(fs: FileSystem, place: Path) -> None:
    (place / "a").chmod(0o311)
    with without_privilege():
        assert fs.read(CTX, "a/one.txt").content == "inside one"
        assert isinstance(refusal(lambda: fs.list(CTX, "a")), PermissionDenied)
        assert isinstance(refusal(lambda: fs.search(CTX, "inside", "a")), PermissionDenied)
    (place / "a").chmod(0o755)
