"""The bytes of a session become entries: all messages, no secrets, only the size of garbage. A failure never stops the session."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from discreet.framing.encoder import encode_frame
from discreet.framing.parser import FramingChoice
from discreet.recording.format import (
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Sender,
    StartEntry,
    StderrEntry,
    create_file,
    read_recording,
)
from discreet.recording.lines import Tail
from discreet.recording.recorder import NOT_RECORDED, TOO_DEEP, Recorder, RecordingBuilder
from support.stderr_pipe import fill

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"\xc3\xa9","token":"' + GITHUB.encode() + b'"}}'
SCRUBBED = CALL.replace(GITHUB.encode(), b"<redacted>")
REPLY = b'{"jsonrpc":"2.0","id":1,"result":[1.0,1e400]}'


def framed(*bodies: bytes) -> bytes:
    return b"".join(encode_frame(body, "content-length") for body in bodies)


def begun(
    framing: FramingChoice = "content-length", command: Sequence[str] = ("serve",)
) -> tuple[RecordingBuilder, list[Entry]]:
    entries: list[Entry] = []
    return RecordingBuilder(entries.append, command=command, framing=framing, hide_paths=False), entries


def recorded(*pieces: tuple[Sender, bytes], framing: FramingChoice = "content-length") -> list[Entry]:
    builder, entries = begun(framing)
    for number, (sender, data) in enumerate(pieces, 1):
        builder.feed(sender, float(number), data)
    builder.end(99.0, 0)
    return entries


def messages(entries: Sequence[Entry]) -> list[bytes]:
    return [bytes(entry.message) for entry in entries if isinstance(entry, MessageEntry)]


def test_a_session_is_recorded_in_order_with_times_and_directions() -> None:
    entries = recorded(("client", framed(CALL)), ("server", framed(REPLY)), ("client", b""), ("server", b""))
    assert entries == [
        StartEntry(ms=0.0, version=1, framing="content-length", command=("serve",)),
        MessageEntry(ms=1.0, sender="client", message=Raw(SCRUBBED), scrubbed={"params.token": 1}),
        MessageEntry(ms=2.0, sender="server", message=Raw(REPLY)),
        ClosedEntry(ms=3.0, sender="client"),
        ClosedEntry(ms=4.0, sender="server"),
        EndEntry(ms=99.0, status=0),
    ]


@pytest.mark.parametrize(
    ("sender", "data", "framing"),
    [("client", framed(CALL), "content-length"), ("client", CALL + b"\n", "newline"), ("server", REPLY + b"\n", "newline")],
)  # fmt: skip
def test_auto_detects_the_framing_of_whoever_writes_first(sender: Sender, data: bytes, framing: str) -> None:
    start, said, _ = recorded((sender, data), framing="auto")
    assert isinstance(start, StartEntry) and start.framing == framing
    assert isinstance(said, MessageEntry)


@given(st.lists(st.integers(0, 400), max_size=6))
def test_every_chunking_gives_the_same_messages(cuts: list[int]) -> None:
    data = framed(CALL, REPLY, CALL)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(bounds)]
    assert messages(recorded(*(("client", piece) for piece in pieces if piece))) == [SCRUBBED, REPLY, SCRUBBED]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Segmentation fault " + GITHUB.encode() + b"\n", "malformed-header"),
        (framed(b"no json " + GITHUB.encode()), "invalid-json"),
        (framed(b'"\xff"'), "invalid-utf8"),
        (framed(b'"\\ud800"'), "invalid-utf8"),
        (framed(b"[" * 100_000 + b"]" * 100_000), TOO_DEEP),
        (framed(b"[" * 600 + b"]" * 600), TOO_DEEP),
        (framed(CALL)[:-10], "length-mismatch"),
    ],
)
def test_only_the_size_of_garbage_is_recorded(data: bytes, reason: str) -> None:
    entries = recorded(("server", data), ("server", b""))
    lost = [entry for entry in entries if isinstance(entry, OmittedEntry)]
    assert [entry.reason for entry in lost] == [reason]
    assert 0 < lost[0].size <= len(data)
    assert GITHUB.encode() not in msgspec.json.encode(entries)


def test_messages_after_garbage_and_a_silence_are_recorded() -> None:
    builder, entries = begun()
    builder.feed("server", 1.0, b"{ broken \x00\x01 junk")
    builder.feed("server", 2.0, framed(REPLY), rested=True)
    assert [type(entry) for entry in entries] == [StartEntry, OmittedEntry, MessageEntry]


@given(st.lists(st.tuples(st.sampled_from(["client", "server"]), st.binary(min_size=1, max_size=60)), max_size=8))
def test_any_bytes_give_entries(pieces: list[tuple[Sender, bytes]]) -> None:
    for framing in ("content-length", "newline", "auto"):
        entries = recorded(*pieces, framing=framing)
        assert isinstance(entries[0], StartEntry) and isinstance(entries[-1], EndEntry)


def test_the_command_and_stderr_are_scrubbed_as_logs_are() -> None:
    builder, entries = begun(
        command=["/home/alice/bin/serve", "--password", "hunter2", f"--key={GITHUB}", "mysql", "-pKx9vQ2zLp"]
    )
    builder.feed("stderr", 1.0, b"token=hunter2 in /home/ali")
    builder.feed("stderr", 2.0, b"ce/notes.txt\nlast")
    builder.end(3.0, 1)
    start, note, last, _ = entries
    assert isinstance(start, StartEntry) and isinstance(note, StderrEntry)
    assert start.command == ("<path>/serve", "--password", "<redacted>", "--key=<redacted>", "mysql", "-p<redacted>")
    assert note.text == "token=<redacted> in <path>/notes.txt"
    assert last == StderrEntry(ms=3.0, text="last")


# A process can't be made to fall behind by a given number of bytes or lines: these two are tried on the classes.


def test_a_full_queue_ends_the_recording_which_says_how_much_is_missing(tmp_path: Path) -> None:
    recorder = Recorder(create_file(tmp_path / "a.jsonl"), command=("serve",), framing="newline", max_queue=100)
    recorder.observe("client", b"1\n")
    recorder.observe("server", b"x" * 200)
    recorder.observe("client", b"2\n")
    assert recorder.finish(0) is not None
    recording = read_recording(tmp_path / "a.jsonl")
    lost = [(entry.sender, entry.reason, entry.size) for entry in recording.entries if isinstance(entry, OmittedEntry)]
    assert lost == [("server", NOT_RECORDED, 200), ("client", NOT_RECORDED, 2)]
    assert messages(recording.entries) == [b"1"]


@pytest.mark.skipif(sys.platform == "win32", reason="fills a POSIX pipe")
def test_lines_that_were_not_read_in_time_are_counted_where_they_are_missing() -> None:
    message = MessageEntry(ms=1.0, sender="client", message=Raw(b'{"method":"a","params":[1]}'))
    reading, writing = os.pipe()
    fill(writing)
    tail = Tail(writing, colour=False)
    for _ in range(500):
        tail.show(message)
    os.read(reading, 65_536)
    tail.show(message)
    tail.close()
    os.close(writing)
    with open(reading, encoding="utf-8") as file:
        left_out, line, summary = file.read().rstrip("\n").rsplit("\n", 3)[-3:]
    assert re.fullmatch(r"… 500 lines left out: .*", left_out)
    assert line == "      1.0 ms  → a [1]"
    assert summary == "501 messages, 0 errors, 0 requests without an answer, the recording was cut off"
