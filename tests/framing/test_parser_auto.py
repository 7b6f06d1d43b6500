"""`auto` against the parsers that it chooses from, in any chunks: what it reads, and that it answers in one framing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.framing.content_length import ContentLengthParser
from discreet.framing.events import Event, Fault, Frame, FrameLimits
from discreet.framing.newline import MOST_HELD, AutoParser, NewlineParser
from discreet.framing.parser import Parser
from support.frames import EVIL, ONE, TWO, chunks, f

LIMITS = FrameLimits(max_body=12_000, max_header=12_000)

LINES = b"x\n" + EVIL + b"\n" + b"y" * 14
"""The body of a frame, with a line in it that must not run."""


numbers = st.sampled_from([0, 0, 1, 3, 250, 260, 999, 1000, 1001, 5000])


@st.composite
def declarations(draw: Any, length: int) -> bytes:
    """The header of a frame of this length, with many blanks and zeros in it, as peers may write it."""
    name = draw(st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH"]))
    blanks = [draw(st.sampled_from([b" ", b"\t"])) * draw(numbers) for _ in range(2)]
    return b"%b:%b%b%d%b\r\n\r\n" % (name, blanks[0], b"0" * draw(numbers), length, blanks[1])


openings = st.sampled_from([
    b"[info] hi", b"[info] hi\n", b"[1] hi\r\n", b"{bad}\n", b"{", b"[", b"[x\n\n starting", b"[" + b"x" * 5000, b"{x\ny\nz ",
])  # fmt: skip
whites = st.sampled_from([b"", b"\n", b" \r\n\t", b" " * 2000])
lines = st.sampled_from([
    ONE + b"\n", TWO + b"\r\n", f(ONE), f(LINES), b"{bad}\n", b"junk\n", b"\n", b"[", b"C", b"X: y\r\n\r\n", b"[1]\n", b"{]\n",
])  # fmt: skip
streams = st.lists(lines | st.binary(max_size=4), max_size=8).map(b"".join)


def bodies(events: list[Event]) -> list[bytes]:
    return [event.body for event in events if isinstance(event, Frame)]


def good(events: list[Event]) -> list[bytes]:
    """The bodies that are JSON: those that run."""
    found = []
    for body in bodies(events):
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        found.append(body)
    return found


@settings(max_examples=150)
@given(data=st.data(), white=whites, opening=openings, size=st.sampled_from([1, 7, 300, 1 << 20]))
def test_a_line_in_a_frames_body_never_runs_and_the_next_frame_does(
    drive: Any, data: Any, white: bytes, opening: bytes, size: int
) -> None:
    header = data.draw(declarations(len(LINES)))
    parser = AutoParser(LIMITS)
    events = drive(parser, [*chunks(white + opening + header + LINES, size), "silence", *chunks(f(ONE) + f(TWO), size)])
    assert good(events) == [ONE, TWO]


@settings(max_examples=120)
@given(stream=streams, size=st.sampled_from([1, 2, 7, 1 << 20]))
def test_a_stream_is_read_as_by_the_parser_that_its_beginning_chooses(drive: Any, stream: bytes, size: int) -> None:
    """A first line that is JSON chooses lines, a first byte that begins none chooses headers."""
    steps = [*chunks(stream, size), "silence", f(ONE) + ONE + b"\n", "silence", "end"]
    events = drive(AutoParser(LIMITS), steps)
    begin = stream.lstrip(b" \t\r\n") + f(ONE)
    lines: list[Event] = drive(NewlineParser(LIMITS), [begin, "end"])
    other: Parser | None = None
    if begin[0] not in b"{[":
        white = stream[: len(stream) - len(stream.lstrip(b" \t\r\n"))]
        assume(not {*white} & {*b" \t"})  # blanks before the first byte that counts are no header line to `auto`
        other = ContentLengthParser(LIMITS)
    elif lines and isinstance(lines[0], Frame) and good(lines[:1]):
        other = NewlineParser(LIMITS)
    if other is not None:
        expected = drive(other, steps)
        assert [event for event in events if isinstance(event, Frame)] == [e for e in expected if isinstance(e, Frame)]
        assert [shape(event) for event in events] == [shape(event) for event in expected]


def shape(event: Event) -> object:
    return (event.failure, event.offset) if isinstance(event, Fault) else event


@settings(max_examples=120)
@given(stream=streams, opening=openings | st.just(b""))
def test_chunks_never_matter_and_the_framing_of_answers_never_changes(
    drive: Any, stream: bytes, opening: bytes
) -> None:
    outcomes = []
    for size in (1, 2, 7, 1 << 20):
        parser = AutoParser(LIMITS)
        events: list[Event] = []
        framings = set()
        for step in [*chunks(opening + stream, size), "silence", f(ONE) + b"\n" + ONE + b"\n", "silence", "end"]:
            found = drive(parser, [step])
            events += found
            if found and any(isinstance(event, Fault) or good([event]) for event in found):
                framings.add(parser.framing)
        assert len(framings) <= 1
        outcomes.append((events, parser.framing))
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("count", [1, MOST_HELD - 1, MOST_HELD, 3 * MOST_HELD])
def test_faults_of_the_first_lines_are_told_when_the_framing_is_known_or_nothing_follows(
    drive: Any, count: int
) -> None:
    for after, told in ((ONE + b"\n", "newline"), ("silence", "newline"), ("end", "newline")):
        parser = AutoParser(LIMITS)
        events = drive(parser, [b"{bad}\n" * count, after])
        assert sum(isinstance(event, Fault) for event in [*events, *drive(parser, ["pause"])]) == count
        assert parser.framing == told


def test_frames_that_come_after_faults_were_told_are_read_and_answered_as_lines(drive: Any) -> None:
    parser = AutoParser(LIMITS)
    assert bodies(drive(parser, [b"[info] hi\n", "silence", f(LINES) + f(ONE)])) == [b"[info] hi", LINES, ONE]
    assert parser.framing == "newline"
    assert parser.leftover() is None
