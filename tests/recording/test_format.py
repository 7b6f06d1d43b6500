"""The file format of a recorded session, and paths into its messages."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from discreet.client import json_path
from discreet.recording.format import (
    VERSION,
    ClosedEntry,
    EndEntry,
    Entry,
    ForeignFile,
    MessageEntry,
    OmittedEntry,
    RecordingError,
    StartEntry,
    StderrEntry,
    create_file,
    read_entries,
    read_recording,
    write_entry,
)

START = StartEntry(ms=0.0, version=VERSION, framing="newline", command=("discreet", "serve"))
ENTRIES: tuple[Entry, ...] = (
    MessageEntry(ms=1.5, sender="client", message=Raw(b'{"id":1e400}'), scrubbed={"params.token": 1}),
    MessageEntry(ms=2.25, sender="server", message=Raw(b"[]")),
    OmittedEntry(ms=3.0, sender="client", reason="malformed-header", size=12),
    ClosedEntry(ms=4.0, sender="client"),
    StderrEntry(ms=5.0, text="a line"),
    EndEntry(ms=6.0, status=-15),
)


def written(path: Path, *lines: Entry) -> Path:
    fd = create_file(path)
    for line in lines:
        write_entry(fd, line)
    os.close(fd)
    return path


def test_a_written_recording_has_a_line_per_entry_and_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", START, *ENTRIES)
    recording = read_recording(path)
    assert (recording.start, recording.entries, recording.end) == (START, ENTRIES, ENTRIES[-1])
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1 + len(ENTRIES)
    assert lines[1] == (
        b'{"type":"message","ms":1.5,"from":"client","message":{"id":1e400},"scrubbed":{"params.token":1}}'
    )


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_a_new_file_is_its_owners_only(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", START)
    assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.parametrize(("before", "after"), [(0o666, 0o600), (0o600, 0o600)])
def test_an_existing_file_becomes_its_owners_only(tmp_path: Path, before: int, after: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x")
    path.chmod(before)
    os.close(create_file(path))
    assert stat.S_IMODE(path.stat().st_mode) == after
    assert path.read_bytes() == b"x"  # until something is written


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="gives a file away, as only root can")
def test_another_users_file_that_others_may_read_is_refused_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x")
    path.chmod(0o644)
    os.chown(path, 12345, 12345)
    with pytest.raises(ForeignFile):
        create_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_file_that_nobody_named_is_never_a_link(tmp_path: Path, target: str) -> None:
    (tmp_path / "there").write_bytes(b"x")
    (tmp_path / "a.jsonl").symlink_to(tmp_path / target)
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a.jsonl", new=True)
    assert (tmp_path / "there").read_bytes() == b"x"
    assert not (tmp_path / "nowhere").exists()


def test_a_recording_that_was_cut_off_is_valid_up_to_there(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", START, *ENTRIES)
    path.write_bytes(path.read_bytes()[:-5])
    recording = read_recording(path)
    assert recording.entries == ENTRIES[:-1]
    assert recording.end is None


def test_entries_are_read_one_by_one_up_to_the_fault_which_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", START, *ENTRIES[:2])
    path.write_bytes(path.read_bytes() + b"odd\n")
    entries = read_entries(path)
    assert [next(entries), next(entries), next(entries)] == [START, *ENTRIES[:2]]
    with pytest.raises(RecordingError, match=r"a\.jsonl:4: "):
        next(entries)


def test_unknown_members_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"start","ms":0,"version":1,"framing":"newline","command":[],"new":{"a":1}}\n')
    assert read_recording(path).start.framing == "newline"


steps = st.lists(st.text(max_size=8) | st.integers(0, 1000), max_size=6).map(tuple)


@given(steps)
def test_every_path_is_parsed_back_from_its_text(path: json_path.Path) -> None:
    assert json_path.parse_path(json_path.format_path(path)) == path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("result", "entries", 0, "name"), "result.entries[0].name"),
        (("params", "a.b", "*", "0", ""), 'params["a.b"]["*"].0[""]'),
        ((0, "x"), "[0].x"),
    ],
)
def test_paths_are_written_as_people_write_them(path: json_path.Path, text: str) -> None:
    assert json_path.format_path(path) == text


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("result.time", ("result", "time"), True),
        ("result.time", ("result", "time", "zone"), False),
        ("result.*.time", ("result", "a", "time"), True),
        ("result.*.time", ("result", 3, "time"), True),
        ("result[*].time", ("result", 3, "time"), True),
        ("result.*.time", ("result", "a", "b", "time"), False),
        ("**.time", ("result", "a", "b", "time"), True),
        ("**.time", ("time",), True),
        ("**", (), True),
        ("result.0", ("result", 0), True),
        ("result[0]", ("result", 1), False),
        ('result["*"]', ("result", "a"), False),
        ('result["*"]', ("result", "*"), True),
    ],
)
def test_patterns_match_paths(pattern: str, path: json_path.Path, expected: bool) -> None:
    assert json_path.matches(json_path.parse_pattern(pattern), path) is expected


@pytest.mark.parametrize(
    "text", ["result..time", ".result", "result[", "result[x]", "result[-1]", "a b", '["unclosed', "***"]
)
def test_a_text_that_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        json_path.parse_pattern(text)
