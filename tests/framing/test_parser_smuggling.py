"""Header junk before frames whose payloads hold frames: no inner frame ever comes out, and the next good frames do."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.framing.content_length import ContentLengthParser, RefusedBlock
from discreet.framing.events import FrameLimits
from discreet.framing.parser import parser_for
from support.frames import EVIL, EVIL_FRAME, ONE, TWO, WHOLE, A, B, chunks, f

LIMITS = FrameLimits(max_body=400, max_header=128)


JUNK = [
    b"starting up", b"[info] hi", b"{", b"[", b'["', b"}", b"junk: yes", b"no colon", b"X: y", b": ", b"GET / HTTP/1.1",
    b"Content-Le", b"Content-Length", b"Content-Length:", b"Content-Length: 1", b"content-length: 8", b"X-Content-Length: 9",
    b"Content-Length: 500", b"Content-Length: x", b"Content-Length: " + b"9" * 30, b"Content-Type: text/plain",
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\n\n", b" ", b"\t", b"\x00", b"\x7f", b"\xff\xfe", b"x" * 130, b"X: y\r\n" * 30,
    A, f(b""), f(b"{]"), f(b'{"a":"x'),
]  # fmt: skip
junks = st.lists(st.sampled_from(JUNK) | st.binary(max_size=6), min_size=1, max_size=8).map(b"".join).filter(bool)
payloads = st.lists(
    st.sampled_from([EVIL_FRAME, EVIL_FRAME, EVIL, b"{}", b"\r\n", b"\n", b"x", b'{"a":"', b'"}', b"\x00", A[:-8]]),
    max_size=5,
).map(b"".join)
line_ends = st.sampled_from([b"\r\n", b"\r\n", b"\n", b"\r"])
names = st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"cONTENT-lENGTH"])


@st.composite
def outer_frames(draw: Any) -> bytes:
    """A frame whose payload holds a frame, with a header as careless peers write it."""
    payload = draw(payloads) + EVIL_FRAME + draw(payloads)
    length = b": %d" % len(payload)
    header = draw(names) + length
    match draw(st.sampled_from(["once", "once", "once", "twice", "two lengths", "with others"])):
        case "twice":
            header += draw(line_ends) + draw(names) + length
        case "two lengths":
            header = b"\n" + header + draw(line_ends)  # begun on a line of its own, or junk could hide the first
            header += b"Content-Length: %d" % draw(st.integers(0, 2 * len(payload)))
        case "with others":
            header = b"X: y" + draw(line_ends) + header + draw(line_ends) + b"Content-Type: a/b"
    end = draw(st.sampled_from([b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\r\n\n", b"\n\r\n"]))
    return header + end + payload


def cut(stream: bytes, split: int) -> Iterator[bytes]:
    """Everything at once, byte by byte, or at random."""
    return chunks(stream, (WHOLE, 1)[split] if split < 2 else Random(split))


@settings(max_examples=300)
@given(junk=junks, rest=st.booleans(), frame=outer_frames(), split=st.integers(0, 9))
def test_a_frame_inside_a_payload_never_runs_and_the_next_good_frame_does(
    drive: Any, outline: Any, junk: bytes, rest: bool, frame: bytes, split: int
) -> None:
    parser = ContentLengthParser(LIMITS)
    events = drive(parser, cut(junk, split))
    assume(parser.state not in ("in-body", "skipping-body"))  # a whole block with a length: it owns what follows
    assume(not (rest and parser.state == "in-block"))
    if rest:
        events += drive(parser, ["silence"])
    events += drive(parser, cut(frame, split))
    while parser.clock == "frame":
        events += drive(parser, ["time-out"])
    events += drive(parser, ["silence"])
    assert outline(drive(parser, cut(A + B, split))) == [ONE, TWO]
    assert EVIL not in outline(events)


@pytest.mark.parametrize("split", range(4))
@pytest.mark.parametrize(
    "junk",
    [
        b"[info] hi\r\n",
        b"starting up\n",
        b"starting up",
        b"Content-Length: 20\r\nContent-Length: 21\r\n",
        b"Content-Length: 20\r\n",
        b"a b\nContent-Length: 7",
        b"\x00",
        b"X: y\r\n" * 30,
    ],
)
def test_junk_before_a_frame_costs_at_most_that_frame(drive: Any, outline: Any, junk: bytes, split: int) -> None:
    parser = parser_for("content-length", LIMITS)
    events = outline(drive(parser, cut(junk + f(EVIL_FRAME), split)))
    events += outline(drive(parser, ["silence", A, "end"]))
    assert EVIL not in events
    assert [event for event in events if isinstance(event, bytes)] == [ONE]


@settings(max_examples=100)
@given(block=junks, split=st.integers(1, 9))
def test_what_a_refused_block_declares_does_not_depend_on_its_cut(block: bytes, split: int) -> None:
    block += b"\n\n"
    whole, parts = RefusedBlock(), RefusedBlock()
    end = whole.read(block, 0)
    ends = [parts.read(chunk, 0) for chunk in cut(block[:end], split)]
    assert ends[:-1] == [None] * (len(ends) - 1)
    assert ends[-1] is not None
    assert (parts.length, parts.conflicting) == (whole.length, whole.conflicting)
