"""Properties for any bytes: only events, no frame from inside a payload, no loss after silence, bounded work."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.framing.content_length import ContentLengthParser, RefusedBlock
from discreet.framing.encoder import encode_frame
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Fault, Frame, FrameLimits
from discreet.framing.newline import NewlineParser
from discreet.framing.parser import Parser, parser_for
from support.frames import EVIL, EVIL_FRAME, ONE, TWO, WHOLE, A, B, chunks, f

LIMITS = FrameLimits(max_body=120, max_header=80)


FRAGMENTS = [
    b"Content-Length", b"content-length: 8\r\n", b"Content-Length: 500\r\n\r\n", b"Content-Length: 8\r\n\r\n", b"X: y\r\n",
    b"Content-Type: text/plain\r\n", b": ", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"\x00", b"\xff", b"junk",
    b"{", b"}", b"[", b"]", b'"', b"\\", b'\\"', b'{"a":"', b'"}', b"true", b"1", b",",
    A, A[:-1], A[:7], EVIL_FRAME, f(b""), f(b"{]"), f(b'{"a":"x'), f(b"y" * 130), b"x" * 90,
]  # fmt: skip
junk = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=12), max_size=12).map(b"".join)
steps = st.lists(junk.filter(bool) | st.sampled_from(["silence", "time-out"]), max_size=8)
framings = st.sampled_from(["content-length", "newline", "auto"])


@settings(max_examples=150)
@given(framing=framings, before=steps, after=st.sampled_from([[], ["end"], ["end", "silence", "time-out", "end"]]))
def test_any_bytes_give_frames_faults_or_a_need_for_more(drive: Any, framing: Any, before: Any, after: Any) -> None:
    parser = parser_for(framing, LIMITS)
    for step in before + after:
        events = drive(parser, [step])
        assert all(isinstance(event, Frame | Fault) for event in events)
        assert parser.pending <= LIMITS.max_body + LIMITS.max_header
    assert parser.next_event() is (END_OF_INPUT if after else NEED_DATA)


@settings(max_examples=60)
@given(framing=framings, before=steps)
def test_chunks_never_matter(every_chunking: Any, framing: Any, before: Any) -> None:
    assert every_chunking(lambda: parser_for(framing, LIMITS), before) is not None


@settings(max_examples=150)
@given(before=steps)
def test_every_frame_after_a_rest_comes_out_once_whatever_came_before(drive: Any, outline: Any, before: Any) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, before)
    while parser.clock == "frame":
        drive(parser, ["time-out"])
    drive(parser, ["silence"])
    assert outline(drive(parser, [A + B])) == [ONE, TWO]


@settings(max_examples=100)
@given(before=st.lists(st.sampled_from([A, B]), max_size=4), junk=junk.filter(bool))
def test_every_frame_before_junk_comes_out(drive: Any, outline: Any, before: Any, junk: bytes) -> None:
    bodies = [ONE if frame is A else TWO for frame in before]
    events = outline(drive(ContentLengthParser(LIMITS), [b"".join(before) + junk]))
    assert events[: len(bodies)] == bodies


@settings(max_examples=100)
@given(steps=steps)
def test_faults_are_spans_of_the_stream_that_do_not_overlap(drive: Any, steps: Any) -> None:
    events = drive(ContentLengthParser(LIMITS), [*steps, "end"])
    received = sum(len(step) for step in steps if isinstance(step, bytes))
    end = 0
    for fault in (event for event in events if isinstance(event, Fault)):
        assert end <= fault.offset
        end = fault.offset + fault.size
    assert end <= received


words = st.sampled_from(
    [EVIL_FRAME.decode(), EVIL.decode(), '"', "\\", "\r\n\r\n", "é", "€", "}", "]", "{", "\u2028", "a"]
)
strings = st.lists(words, max_size=4).map("".join)
values = st.recursive(
    strings | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def texts(draw: Any) -> bytes:
    """JSON objects and arrays that carry a frame in their strings, in many layouts."""
    value = draw(st.lists(values, max_size=3) | st.dictionaries(strings, values, max_size=3))
    indent = draw(st.none() | st.integers(0, 2))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()


@settings(max_examples=100)
@given(text=texts(), gap=st.sampled_from([b"", b"\n", b"\r\n"]))
def test_an_unframed_text_is_one_loss_and_the_next_frame_comes(
    drive: Any, outline: Any, text: bytes, gap: bytes
) -> None:
    assert outline(drive(ContentLengthParser(LIMITS), [text + gap + B])) == ["missing-content-length", TWO]


@settings(max_examples=100)
@given(data=st.data(), text=texts(), gap=st.sampled_from([b"", b"\n", b"\r\n"]))
def test_a_length_that_is_too_short_is_one_loss_and_the_next_frame_comes(
    drive: Any, outline: Any, data: Any, text: bytes, gap: bytes
) -> None:
    size = data.draw(st.integers(0, len(text) - 1))
    stream = b"Content-Length: %d\r\n\r\n" % size + text + gap + B
    assert outline(drive(ContentLengthParser(FrameLimits()), [stream])) == [text[:size], "invalid-json", TWO]


@settings(max_examples=100)
@given(data=st.data(), text=texts())
def test_the_late_tail_of_a_body_that_timed_out_is_skipped(drive: Any, outline: Any, data: Any, text: bytes) -> None:
    size = data.draw(st.integers(0, len(text) - 1))
    silence = data.draw(st.sampled_from([["time-out"], ["time-out", "silence"], ["time-out", "silence", "silence"]]))
    begun = b"Content-Length: %d\r\n\r\n" % len(text) + text[:size]
    assert outline(drive(ContentLengthParser(FrameLimits()), [begun, *silence, text[size:] + B])) == [
        "length-mismatch",
        TWO,
    ]


@settings(max_examples=100)
@given(data=st.data(), text=texts(), junk=st.sampled_from([b"junk\r\n", b"X : y\n", b"\x00", b"Content-Length: x\r\n"]))
def test_a_rest_inside_a_refused_block_does_not_set_its_json_payload_free(
    drive: Any, outline: Any, data: Any, text: bytes, junk: bytes
) -> None:
    block = junk + b"Content-Length: %d\r\n\r\n" % len(text)
    at = data.draw(st.integers(1, len(block) - 1))
    parser = ContentLengthParser(FrameLimits())
    events = drive(parser, [block[:at], "silence", block[at:] + text, "silence", B])
    assert [event for event in outline(events) if isinstance(event, bytes)] in ([TWO], [text, TWO])


@settings(max_examples=100)
@given(
    data=st.data(), text=texts(), wrap=st.sampled_from(["unframed", "too long", "too short", "oversize", "bare header"])
)
def test_a_frame_inside_a_json_payload_never_runs(drive: Any, outline: Any, data: Any, text: bytes, wrap: str) -> None:
    text = b'{"payload":"' + EVIL_FRAME.replace(b'"', b'\\"').replace(b"\r\n", b"\\r\\n") + b'","more":' + text + b"}"
    declared = {
        "too long": len(text) + data.draw(st.integers(1, 30)),
        "too short": data.draw(st.integers(0, len(text) - 1)),
        "oversize": 10**6,
    }
    match wrap:
        case "unframed":
            stream = text
        case "bare header":
            stream = b"X: y\r\n\r\n" + text
        case _:
            stream = b"Content-Length: %d\r\n\r\n" % declared[wrap] + text
    silence = data.draw(st.lists(st.sampled_from(["silence", "time-out"]), max_size=2))
    at = data.draw(st.integers(0, len(stream)))
    halves = [half for half in (stream[:at], stream[at:]) if half]
    events = drive(
        ContentLengthParser(FrameLimits(max_body=500_000)), [halves[0], *silence, *halves[1:], A, "silence", B, "end"]
    )
    assert EVIL not in outline(events)


@settings(max_examples=100)
@given(
    before=texts(), data=st.data(), after=st.lists(st.sampled_from([b'"', b"}", b"]", b"\r\n", b"x", B]), max_size=6)
)
def test_a_raw_frame_inside_what_began_as_a_text_never_runs(
    drive: Any, outline: Any, before: bytes, data: Any, after: Any
) -> None:
    beginning = before[: data.draw(st.integers(1, len(before) - 1))]
    raw = beginning + f(b"not json" + EVIL_FRAME) + b"".join(after)
    assert EVIL not in outline(drive(ContentLengthParser(FrameLimits()), [raw, "silence", A, "end"]))
    assert EVIL not in outline(drive(ContentLengthParser(FrameLimits()), [b"X: y\r\n\r\n" + raw, "silence", A, "end"]))


@settings(max_examples=60)
@given(bodies=st.lists(st.binary(min_size=0, max_size=120), max_size=6), size=st.integers(1, 50))
def test_what_is_encoded_is_decoded_as_it_was(bodies: list[bytes], size: int) -> None:
    stream = b"".join(f(body) for body in bodies)
    assert decoded(ContentLengthParser(LIMITS), stream, size) == bodies


@settings(max_examples=60)
@given(bodies=st.lists(values, max_size=6), size=st.integers(1, 50))
def test_what_is_encoded_on_lines_is_decoded_as_it_was(bodies: list[Any], size: int) -> None:
    stream = b"".join(encode_frame(json.dumps(body, indent=1).encode(), "newline") for body in bodies)
    assert [json.loads(body) for body in decoded(NewlineParser(FrameLimits()), stream, size)] == bodies


def decoded(parser: Parser, stream: bytes, size: int) -> list[bytes]:
    bodies = []
    for chunk in chunks(stream, size):
        parser.receive_data(chunk)
        while isinstance(event := parser.next_event(), Frame):
            bodies.append(event.body)
        assert event is NEED_DATA
    return bodies


@pytest.mark.parametrize("body", [b"", b"[\r\n]", b'{"a":"\xc3\xa9"}', b"x" * 100_000])
def test_a_frame_has_one_header_with_the_length_in_bytes_and_the_body_as_it_is(body: bytes) -> None:
    assert f(body) == b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


def test_on_a_line_raw_line_ends_become_blanks_and_the_value_stays() -> None:
    raw = msgspec.Raw(b'{\r\n  "a": "x\\ny",\n  "b": [1,\r2]\n}')
    line = encode_frame(msgspec.json.encode({"result": raw}), "newline")
    assert (line.count(b"\n"), line[-1:], b"\r" in line) == (1, b"\n", False)
    assert msgspec.json.decode(line) == {"result": {"a": "x\ny", "b": [1, 2]}}


HOSTILE = {
    "small frames": A,
    "blocks": b"junk\r\n\r\n",
    "line ends": b"\r\n",
    "texts": b"{}",
    "brackets": b"[",
    "quotes": b'["\\"',
    "odd lines": b"{x\n",
    "junk": b"\xff",
    "headers": b"X: y\r\n",
    "doubts": f(b"{]"),
    "cut bodies": f(b'["') + b'"]',
}


@pytest.mark.parametrize("chunk", [1, 64])
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_bytes_take_about_twice_the_calls(drive: Any, piece: bytes, chunk: int) -> None:
    few, many = (calls_for(drive, piece * count, chunk) for count in (200, 400))
    assert many < 2.1 * few + 50


def calls_for(drive: Any, stream: bytes, chunk: int) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    pieces = list(chunks(stream, chunk))
    sys.setprofile(count)
    try:
        drive(ContentLengthParser(LIMITS), pieces)
    finally:
        sys.setprofile(None)
    return calls


def test_a_large_body_in_many_chunks_takes_little_more_memory_than_itself(drive: Any) -> None:
    size, chunk = 4_000_000, b"1" * 50_000
    parser = ContentLengthParser(FrameLimits())
    tracemalloc.start()
    try:
        parser.receive_data(b"Content-Length: %d\r\n\r\n" % size)
        assert parser.next_event() is NEED_DATA
        for _ in range(size // len(chunk) - 1):
            parser.receive_data(chunk)
            assert parser.next_event() is NEED_DATA
        parser.receive_data(chunk)
        event = parser.next_event()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert event == Frame(chunk * (size // len(chunk)))
    assert peak < size * 1.3


# -- smuggling: header junk before frames whose payloads hold frames ---------------------------------------------------

SMUGGLING_LIMITS = FrameLimits(max_body=400, max_header=128)

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
    parser = ContentLengthParser(SMUGGLING_LIMITS)
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
        b"[info] hi\r\n", b"starting up\n", b"starting up", b"Content-Length: 20\r\nContent-Length: 21\r\n",
        b"Content-Length: 20\r\n", b"a b\nContent-Length: 7", b"\x00", b"X: y\r\n" * 30,
    ],
)  # fmt: skip
def test_junk_before_a_frame_costs_at_most_that_frame(drive: Any, outline: Any, junk: bytes, split: int) -> None:
    parser = parser_for("content-length", SMUGGLING_LIMITS)
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
