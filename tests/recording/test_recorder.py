"""The recorder takes every byte, and its failure never stops the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.recording.format import MessageEntry, OmittedEntry, Recording, create_file, read_recording
from discreet.recording.recorder import NOT_RECORDED, Recorder


def begun(path: str | Path, **options: int) -> Recorder:
    return Recorder(create_file(path), command=("serve",), framing="newline", **options)


def said(recording: Recording) -> list[bytes]:
    return [bytes(entry.message) for entry in recording.entries if isinstance(entry, MessageEntry)]


def test_everything_observed_is_written_when_the_session_ends(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "a.jsonl")
    for number in range(1000):
        recorder.observe("client", b"%d\n" % number)
    assert recorder.finish(-9) is None
    recording = read_recording(tmp_path / "a.jsonl")
    assert said(recording) == [b"%d" % number for number in range(1000)]
    assert recording.end is not None and recording.end.status == -9


def test_a_full_queue_ends_the_recording_which_says_how_much_is_missing(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "a.jsonl", max_queue=100)
    recorder.observe("client", b"1\n")
    recorder.observe("server", b"x" * 200)
    recorder.observe("client", b"2\n")
    assert recorder.finish(0) is not None
    recording = read_recording(tmp_path / "a.jsonl")
    lost = [(entry.sender, entry.reason, entry.size) for entry in recording.entries if isinstance(entry, OmittedEntry)]
    assert lost == [("server", NOT_RECORDED, 200), ("client", NOT_RECORDED, 2)]
    assert said(recording) == [b"1"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_the_recording_only() -> None:
    recorder = begun("/dev/full")
    for _ in range(1000):
        recorder.observe("client", b"1\n" * 1000)
    problem = recorder.finish(0)
    assert problem is not None and "space" in problem
