"""Nothing outside the root is reachable: no `..`, no symbolic link, no race; and nothing blocks or leaks on the way."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import FailureError, InvalidParams, OperationError
from discreet.files.root import Root
from discreet.files.service import FileSystem
from discreet.files.types import FileNotFound, NotADirectory, NotAFile, OutsideRoot, PermissionDenied
from support.fs import CTX, SECRET, finishes, lay_out, refusal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links, FIFOs and dir_fd are POSIX")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


# What is reached


@pytest.mark.parametrize(
    "path", ["a/one.txt", "./a/one.txt", "a//one.txt", "a/./one.txt", "a/one.txt/", ".//a/one.txt"]
)
def test_dots_and_empty_names_lead_to_the_same_file(fs: FileSystem, path: str) -> None:
    assert fs.read(CTX, path).content == "inside one"


@pytest.mark.parametrize("path", ["", ".", "./", ".//."])
def test_the_root_itself_has_names_too(fs: FileSystem, path: str) -> None:
    assert fs.stat(CTX, path).kind == "directory"
    assert "top.txt" in [entry.name for entry in fs.list(CTX, path).entries]


def test_an_absolute_path_that_begins_with_the_root_is_taken(fs: FileSystem, place: Path) -> None:
    assert fs.read(CTX, f"{place}/a/one.txt").content == "inside one"
    assert fs.read(CTX, f"/{place}//a/./one.txt").content == "inside one"
    assert fs.stat(CTX, str(place)).kind == "directory"


def test_a_root_opened_through_a_link_answers_to_both_spellings(place: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to("root")
    with closing(Root(str(tmp_path / "alias"))) as opened:
        fs = FileSystem(opened)
        assert fs.read(CTX, f"{tmp_path}/alias/top.txt").content == "inside top"
        assert fs.read(CTX, str(place / "top.txt")).content == "inside top"


def test_a_root_spelled_with_dots_behind_a_link_does_not_answer_to_what_the_spelling_seems_to_say(
    tmp_path: Path,
) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "file").write_text("real")
    (tmp_path / "link").symlink_to("real/inner")
    with closing(Root(f"{tmp_path}/link/..")) as opened:
        fs = FileSystem(opened)
        assert fs.read(CTX, f"{tmp_path}/real/file").content == "real"
        assert isinstance(refusal(lambda: fs.read(CTX, f"{tmp_path}/file")), OutsideRoot)


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_file_uri_below_the_root_is_taken(fs: FileSystem, place: Path, host: str) -> None:
    (place / "with space#?.txt").write_text("inside space")
    path = f"file://{host}{quote(f'{place}/with space#?.txt')}"
    answer = fs.read(CTX, path)
    assert answer.content == "inside space"
    assert answer.path == path


@pytest.mark.parametrize(
    "name", ["ünïcödé", "e\u0301", "日本語.txt", "🙂", "new\nline", "back\\slash", "a:b", " ", "-", "~", "..."]
)
def test_any_text_is_a_name(fs: FileSystem, place: Path, name: str) -> None:
    (place / name).write_text("inside")
    assert fs.read(CTX, name).content == "inside"
    assert name in [entry.name for entry in fs.list(CTX).entries]


def test_a_path_is_followed_through_hundreds_of_directories(fs: FileSystem, place: Path) -> None:
    here = os.open(place, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("deep-enough", dir_fd=here)
        below = os.open("deep-enough", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with open(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("inside")
    os.close(here)
    assert fs.read(CTX, "deep-enough/" * 500 + "file").content == "inside"


def test_a_root_renamed_while_open_stays_the_root(fs: FileSystem, place: Path, tmp_path: Path) -> None:
    place.rename(tmp_path / "elsewhere")
    (tmp_path / "root").symlink_to("outside")
    assert fs.read(CTX, "top.txt").content == "inside top"
    assert isinstance(refusal(lambda: fs.read(CTX, "secret.txt")), FileNotFound)


def test_all_of_the_machine_may_be_the_root(place: Path) -> None:
    with closing(Root("/")) as opened:
        assert FileSystem(opened).read(CTX, str(place.resolve() / "top.txt")).content == "inside top"
        assert FileSystem(opened).stat(CTX, "/").kind == "directory"


@pytest.mark.parametrize("missing", ["nothing", "top.txt"])
def test_what_is_no_directory_is_no_root(place: Path, missing: str) -> None:
    with pytest.raises(OSError):
        Root(str(place / missing))


# What is refused


@pytest.mark.parametrize(
    "path",
    [
        "..", "../outside/secret.txt", "a/..", "a/../top.txt", "a/../../outside/secret.txt", "missing/../top.txt",
        "to_directory/../top.txt", "./..", "a/b/../../..", "/", "/etc/passwd", "//etc/passwd", "file:///etc/passwd",
        "file://elsewhere/top.txt", "file:///%2e%2e/etc/passwd", "file:",
    ],
)  # fmt: skip
def test_paths_that_lead_up_or_elsewhere_are_refused(fs: FileSystem, path: str) -> None:
    error = refusal(lambda: fs.read(CTX, path))
    expected = FileNotFound if path == "file:" else OutsideRoot
    assert isinstance(error, expected)
    assert error.path == path


def test_a_neighbour_whose_name_begins_like_the_root_is_outside(fs: FileSystem, place: Path) -> None:
    place.with_name("root2").mkdir()
    for path in (f"{place}2", f"{place}/../root2", f"{place.parent}", f"file://{quote(str(place))}/%2e%2e/outside"):
        assert isinstance(refusal(fs.stat, CTX, path), OutsideRoot)


LINKED = ["to_file", "to_directory/secret.txt", "to_inside/one.txt", "to_itself", "to_nothing", "a/up/root/top.txt"]


@pytest.mark.parametrize("path", LINKED)
def test_no_symbolic_link_is_read_or_searched_wherever_it_points(fs: FileSystem, path: str) -> None:
    assert isinstance(refusal(lambda: fs.read(CTX, path)), OutsideRoot)
    assert isinstance(refusal(lambda: fs.search(CTX, "i", path)), OutsideRoot)


@pytest.mark.parametrize("path", ["to_directory", "to_inside", "to_inside/b", "a/up"])
def test_no_symbolic_link_is_listed(fs: FileSystem, path: str) -> None:
    assert isinstance(refusal(lambda: fs.list(CTX, path)), OutsideRoot)


@pytest.mark.parametrize("path", LINKED)
def test_no_symbolic_link_is_written_through(fs: FileSystem, place: Path, path: str) -> None:
    assert isinstance(refusal(lambda: fs.write(CTX, path, "changed")), OutsideRoot)
    assert (place.parent / "outside" / "secret.txt").read_text() == SECRET
    assert not (place / "missing").exists()


def test_a_symbolic_link_is_shown_and_not_followed(fs: FileSystem) -> None:
    assert fs.stat(CTX, "to_file").kind == "symlink"
    kinds = {entry.name: entry.kind for entry in fs.list(CTX).entries}
    expected = {"to_file": "symlink", "to_directory": "symlink", "a": "directory", "top.txt": "file"}
    assert expected.items() <= kinds.items()
    assert fs.search(CTX, SECRET).matches == ()


def test_a_file_in_the_middle_of_a_path_is_no_directory(fs: FileSystem) -> None:
    for act in (fs.read, fs.stat, fs.list):
        error = refusal(act, CTX, "top.txt/below")
        assert isinstance(error, NotADirectory)
        assert error.path == "top.txt/below"


@pytest.mark.parametrize(
    "path", ["missing", "a/missing", "missing/one.txt", "top\0.txt", "\0", "x" * 300, "x/" * 2000, "é" * 200]
)
def test_what_is_not_there_or_could_not_be_is_not_found(fs: FileSystem, path: str) -> None:
    for act in (fs.read, fs.stat, fs.list):
        assert isinstance(refusal(act, CTX, path), FileNotFound)


def test_a_uri_of_bytes_that_are_no_text_is_not_found(fs: FileSystem, place: Path) -> None:
    assert isinstance(refusal(lambda: fs.read(CTX, f"file://{quote(str(place))}/%FF")), FileNotFound)
    assert isinstance(refusal(lambda: fs.read(CTX, f"file://{quote(str(place))}/%00")), FileNotFound)


@pytest.mark.parametrize("path", ["\ud800", "a/\udcff"])
def test_a_lone_surrogate_is_a_wrong_param(fs: FileSystem, path: str) -> None:
    with pytest.raises(FailureError) as caught:
        fs.stat(CTX, path)
    assert isinstance(caught.value.failure, InvalidParams)
    assert caught.value.failure.param == "path"


PIECES = [
    "a", "b", "one.txt", "top.txt", "..", ".", "", "to_file", "to_directory", "to_inside", "up", "root", "outside",
]  # fmt: skip
paths = st.one_of(
    st.lists(st.sampled_from([*PIECES, "secret.txt", "\0", "~", "%2e%2e"])).map("/".join),
    st.lists(st.sampled_from([*PIECES, "/", "\\", "file://"])).map("".join),
    st.text(),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileSystem]:
    with closing(Root(str(lay_out(tmp_path_factory.mktemp("shared"))))) as opened:
        yield FileSystem(opened)


@given(path=paths)
def test_no_path_whatever_gives_more_than_what_is_inside(shared: FileSystem, path: str) -> None:
    try:
        assert shared.read(CTX, path).content.startswith("inside")
    except OperationError as error:
        assert error.path == path
    try:
        names = {entry.name for entry in shared.list(CTX, path).entries}
        assert names <= {*PIECES, "two.txt", "to_itself", "to_nothing"} - {"root", "outside"}
    except OperationError as error:
        assert error.path == path


# Special files and permissions


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
