"""The recording process takes every packet, and its failure never stops the session."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.recording.builder import NOT_RECORDED
from discreet.recording.format import (
    MessageEntry,
    OmittedEntry,
    Recording,
    RecordingWriter,
    create_file,
    read_recording,
)
from discreet.recording.recorder import (
    BytesPacket,
    EndPacket,
    Packet,
    Recorder,
    RecordingOptions,
    SkippedPacket,
    encode_packet,
    read_packet,
    record,
)


def begun(path: str | Path, **options: int) -> Recorder:
    return Recorder(create_file(path), RecordingOptions(("serve",), "newline"), **options)


def said(recording: Recording) -> list[bytes]:
    return [bytes(entry.message) for entry in recording.entries if isinstance(entry, MessageEntry)]


def test_everything_observed_is_written_when_the_session_ends(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "a.jsonl")
    for number in range(1000):
        recorder.observe("client", b"%d\n" % number)
    recorder.finish(-9)
    recording = read_recording(tmp_path / "a.jsonl")
    assert said(recording) == [b"%d" % number for number in range(1000)]
    assert recording.end is not None and recording.end.status == -9
    assert recorder.problem is None


def test_a_full_queue_ends_the_recording_which_says_how_much_is_missing(
    tmp_path: Path,
) -> None:
    recorder = begun(tmp_path / "a.jsonl", max_queue=100)
    recorder.observe("client", b"1\n")
    recorder.observe("server", b"x" * 200)
    recorder.observe("client", b"2\n")
    recorder.finish(0)
    recording = read_recording(tmp_path / "a.jsonl")
    lost = [(entry.sender, entry.size) for entry in recording.entries if isinstance(entry, OmittedEntry)]
    assert lost == [("server", 200), ("client", 2)]
    assert all(entry.reason == NOT_RECORDED for entry in recording.entries if isinstance(entry, OmittedEntry))
    assert said(recording) == [b"1"]
    assert recorder.problem is not None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_the_recording_only() -> None:
    recorder = begun("/dev/full")
    for _ in range(1000):
        recorder.observe("client", b"1\n" * 1000)
    recorder.finish(0)
    assert recorder.problem is not None and "space" in recorder.problem


def test_a_session_that_was_cut_off_is_recorded_up_to_there(tmp_path: Path) -> None:
    fd = create_file(tmp_path / "a.jsonl")
    begin = encode_packet(RecordingOptions(("serve",), "newline"))
    one, two = (encode_packet(BytesPacket("client", 1.0, data)) for data in (b"1\n", b"2\n"))
    record(io.BytesIO(begin + one + two[:-1]), RecordingWriter(fd))
    os.close(fd)
    recording = read_recording(tmp_path / "a.jsonl")
    assert said(recording) == [b"1"]
    assert recording.end is None


@given(
    st.builds(
        BytesPacket, st.sampled_from(["client", "stderr"]), st.floats(0, 1e9), st.binary(max_size=50), st.booleans()
    )
    | st.builds(SkippedPacket, st.just("client"), st.floats(0, 1e9), st.integers(0, 2**40))
)
def test_a_packet_is_read_as_it_was_written(packet: Packet) -> None:
    stream = io.BytesIO(encode_packet(packet) + encode_packet(EndPacket(1.0, None)))
    assert read_packet(stream) == packet
    assert read_packet(stream) == EndPacket(1.0, None)
    assert read_packet(stream) is None
