"""The bytes of a session become entries: all messages, no secrets, and only the size of garbage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
from discreet.recording.recorder import TOO_DEEP, RecordingBuilder

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"\xc3\xa9","token":"' + GITHUB.encode() + b'"}}'
REPLY = b'{"jsonrpc":"2.0","id":1,"result":[1.0,1e400]}'


def framed(*bodies: bytes) -> bytes:
    return b"".join(encode_frame(body, "content-length") for body in bodies)


def recorded(
    *pieces: tuple[Sender, bytes], framing: FramingChoice = "content-length", command: Sequence[str] = ("serve",)
) -> list[Entry]:
    entries: list[Entry] = []
    builder = RecordingBuilder(entries.append, command=command, framing=framing, hide_paths=False)
    for number, (sender, data) in enumerate(pieces, 1):
        builder.feed(sender, float(number), data)
    builder.end(99.0, 0)
    return entries


def test_a_session_is_recorded_in_order_with_times_and_directions() -> None:
    entries = recorded(("client", framed(CALL)), ("server", framed(REPLY)), ("client", b""), ("server", b""))
    expected = CALL.replace(GITHUB.encode(), b"<redacted>")
    assert entries == [
        StartEntry(ms=0.0, version=1, framing="content-length", command=("serve",)),
        MessageEntry(ms=1.0, sender="client", message=msgspec.Raw(expected), scrubbed={"params.token": 1}),
        MessageEntry(ms=2.0, sender="server", message=msgspec.Raw(REPLY)),
        ClosedEntry(ms=3.0, sender="client"),
        ClosedEntry(ms=4.0, sender="server"),
        EndEntry(ms=99.0, status=0),
    ]


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_auto_detects_the_framing(framing: str) -> None:
    data = framed(CALL) if framing == "content-length" else CALL + b"\n"
    start, said, _ = recorded(("client", data), framing="auto")
    assert isinstance(start, StartEntry) and start.framing == framing
    assert isinstance(said, MessageEntry)


def test_auto_detects_the_framing_of_a_server_that_writes_first() -> None:
    start, *_ = recorded(("server", REPLY + b"\n"), framing="auto")
    assert isinstance(start, StartEntry) and start.framing == "newline"


@given(st.lists(st.integers(0, 400), max_size=6))
def test_every_chunking_gives_the_same_messages(cuts: list[int]) -> None:
    data = framed(CALL, REPLY, CALL)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(bounds)]
    entries = recorded(*(("client", piece) for piece in pieces if piece))
    assert [bytes(entry.message) for entry in entries if isinstance(entry, MessageEntry)] == [
        body.replace(GITHUB.encode(), b"<redacted>") for body in (CALL, REPLY, CALL)
    ]


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
        (b"Content-Length: x\r\n\r\n", "invalid-content-length"),
    ],
)
def test_only_the_size_of_garbage_is_recorded(data: bytes, reason: str) -> None:
    entries = recorded(("server", data), ("server", b""))
    lost = [entry for entry in entries if isinstance(entry, OmittedEntry)]
    assert [entry.reason for entry in lost] == [reason]
    assert 0 < lost[0].size <= len(data)
    assert GITHUB.encode() not in msgspec.json.encode(entries)


def test_messages_after_garbage_and_a_silence_are_recorded() -> None:
    entries: list[Entry] = []
    builder = RecordingBuilder(entries.append, command=("serve",), framing="content-length", hide_paths=False)
    builder.feed("server", 1.0, b"{ broken \x00\x01 junk")
    builder.feed("server", 2.0, framed(REPLY), rested=True)
    assert [type(entry) for entry in entries] == [StartEntry, OmittedEntry, MessageEntry]


@given(st.lists(st.tuples(st.sampled_from(["client", "server"]), st.binary(min_size=1, max_size=60)), max_size=8))
def test_any_bytes_give_entries(pieces: list[tuple[Sender, bytes]]) -> None:
    for framing in ("content-length", "newline", "auto"):
        entries = recorded(*pieces, framing=framing)
        assert isinstance(entries[0], StartEntry) and isinstance(entries[-1], EndEntry)


def test_the_command_and_stderr_are_scrubbed_as_logs_are() -> None:
    entries: list[Entry] = []
    command = ["/home/alice/bin/serve", "--password", "hunter2", f"--key={GITHUB}", "mysql", "-pKx9vQ2zLp"]
    builder = RecordingBuilder(entries.append, command=command, framing="newline", hide_paths=False)
    builder.feed("stderr", 1.0, b"token=hunter2 in /home/ali")
    builder.feed("stderr", 2.0, b"ce/notes.txt\nlast")
    builder.end(3.0, 1)
    start, note, last, _ = entries
    assert isinstance(start, StartEntry) and isinstance(note, StderrEntry)
    assert start.command == ("<path>/serve", "--password", "<redacted>", "--key=<redacted>", "mysql", "-p<redacted>")
    assert note.text == "token=<redacted> in <path>/notes.txt"
    assert last == StderrEntry(ms=3.0, text="last")
