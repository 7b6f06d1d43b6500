"""The process that records takes what it is handed, and whatever becomes of it stops nobody."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.recording.format import Lost, Recording, RecordingWriter, Said, create_file, read_recording
from discreet.recording.recorder import Recorder
from discreet.recording.recorder_process import Begin, Kind, Note, encode, read, record
from discreet.recording.transcript import NOT_RECORDED


def begun(path: str | Path, **options: int) -> Recorder:
    return Recorder(create_file(path), command=["serve"], framing="newline", **options)


def said(recording: Recording) -> list[bytes]:
    return [bytes(line.message) for line in recording.lines if isinstance(line, Said)]


def test_all_that_was_heard_is_written_when_the_session_ends(tmp_path: Path) -> None:
    scribe = begun(tmp_path / "a.jsonl")
    for number in range(1000):
        scribe.hear("client", b"%d\n" % number)
    scribe.finish(-9)
    recording = read_recording(tmp_path / "a.jsonl")
    assert said(recording) == [b"%d" % number for number in range(1000)]
    assert recording.ended is not None and recording.ended.status == -9
    assert scribe.problem is None


def test_what_comes_faster_than_it_can_be_recorded_ends_the_recording_which_says_how_much_is_missing(
    tmp_path: Path,
) -> None:
    scribe = begun(tmp_path / "a.jsonl", backlog=100)
    scribe.hear("client", b"1\n")
    scribe.hear("server", b"x" * 200)
    scribe.hear("client", b"2\n")
    scribe.finish(0)
    recording = read_recording(tmp_path / "a.jsonl")
    lost = [(line.sender, line.size) for line in recording.lines if isinstance(line, Lost)]
    assert lost == [("server", 200), ("client", 2)]
    assert all(line.reason == NOT_RECORDED for line in recording.lines if isinstance(line, Lost))
    assert said(recording) == [b"1"]
    assert scribe.problem is not None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_the_recording_only() -> None:
    scribe = begun("/dev/full")
    for _ in range(1000):
        scribe.hear("client", b"1\n" * 1000)
    scribe.finish(0)
    assert scribe.problem is not None and "space" in scribe.problem


@pytest.mark.skipif(sys.platform == "win32", reason="names that are no UTF-8 are POSIX's")
def test_words_that_are_no_utf8_are_written_as_what_they_are(tmp_path: Path) -> None:
    scribe = Recorder(create_file(tmp_path / "a.jsonl"), command=[os.fsdecode(b"a\xff")], framing="newline")
    scribe.finish(0)
    assert scribe.problem is None
    assert read_recording(tmp_path / "a.jsonl").start.command == ("a\\udcff",)


def test_a_session_that_was_cut_off_is_recorded_up_to_there(tmp_path: Path) -> None:
    fd = create_file(tmp_path / "a.jsonl")
    begin = encode(Kind.BEGIN, 0.0, msgspec.msgpack.encode(Begin(("serve",), "newline", False)))
    record(
        io.BytesIO(begin + encode(Kind.CLIENT, 1.0, b"1\n") + encode(Kind.CLIENT, 2.0, b"2\n")[:-1]),
        RecordingWriter(fd),
    )
    os.close(fd)
    recording = read_recording(tmp_path / "a.jsonl")
    assert said(recording) == [b"1"]
    assert recording.ended is None


@given(
    st.sampled_from([Kind.BEGIN, Kind.CLIENT, Kind.SERVER, Kind.STDERR, Kind.END]),
    st.floats(0, 1e9),
    st.binary(max_size=50),
    st.booleans(),
)
def test_a_note_is_read_as_it_was_written(kind: Kind, ms: float, data: bytes, rested: bool) -> None:
    stream = io.BytesIO(encode(kind, ms, data, rested=rested) + encode(Kind.SKIPPED_CLIENT, 1.0, size=2**40))
    assert read(stream) == Note(kind, ms, len(data), rested, data)
    assert read(stream) == Note(Kind.SKIPPED_CLIENT, 1.0, 2**40, False)
    assert read(stream) is None
