"""Newline framing, and the choice between the framings by the first byte."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.errors.failures import ParseFailure
from discreet.framing.content_length import ContentLengthParser
from discreet.framing.encoder import encode_frame
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Fault, FrameLimits
from discreet.framing.newline import AutoParser, NewlineParser
from discreet.framing.parser import parser_for

LIMITS = FrameLimits(max_body=20, max_header=64)

ONE, TWO, BAD = b'{"id":1}', b'{"id":2}', b'{"id":}'
LONG = b'"' + b"x" * 19 + b'"'
FULL = b'"' + b"x" * 18 + b'"'


def line_cases() -> list[tuple[str, list[Any], list[bytes | str]]]:
    """Name, steps, expected events."""
    return [
        ("one-line", [ONE + b"\n"], [ONE]),
        ("two-lines", [ONE + b"\n" + TWO + b"\n"], [ONE, TWO]),
        ("crlf", [ONE + b"\r\n" + TWO + b"\r\n"], [ONE, TWO]),
        ("blank-lines", [b"\n\r\n  \n\t\r\n" + ONE + b"\n\n" + TWO + b"\n \n", "end"], [ONE, TWO]),
        ("white-space-around", [b" \t" + ONE + b" \t\r\n" + TWO + b"\n"], [ONE, TWO]),
        ("last-line-without-its-end", [ONE + b"\n" + TWO, "end"], [ONE, TWO]),
        ("last-line-without-its-end-and-bad", [ONE + b"\n" + BAD, "end"], [ONE, BAD, "invalid-json"]),
        ("nothing", ["end"], []),
        ("nothing-but-blanks", [b" \r\n\t ", "end"], []),
        ("bad-line", [BAD + b"\n" + TWO + b"\n"], [BAD, "invalid-json", TWO]),
        ("cut-line", [b'{"a":"\n' + TWO + b"\n"], [b'{"a":"', "invalid-json", TWO]),
        ("other-control-bytes", [b"\x00\x0b\x0c\n" + TWO + b"\n"], [b"\x00\x0b\x0c", "invalid-json", TWO]),
        ("headers", [b"Content-Length: 8\r\n\r\n" + TWO + b"\n"], [b"Content-Length: 8", "invalid-json", TWO]),
        ("line-at-the-limit", [FULL + b"\n" + FULL + b"\r\n" + FULL, "end"], [FULL, FULL, FULL]),
        ("line-one-beyond-the-limit", [LONG + b"\n" + LONG + b"\r\n" + TWO + b"\n"], ["oversize", "oversize", TWO]),
        ("oversize-last-line", [LONG, "end"], ["oversize"]),
        ("oversize", [LONG * 3 + b"\n" + TWO + b"\n"], ["oversize", TWO]),
        ("oversize-of-blanks-after", [ONE + b" " * 30 + b"\n" + TWO + b"\n"], ["oversize", TWO]),
        ("end-in-an-oversize-line", [LONG * 3, "end"], ["oversize"]),
        ("silence-in-a-line", [ONE[:4], "silence", ONE[4:] + b"\n"], [ONE]),
        ("silence-in-an-oversize-line", [LONG * 2, "silence", ONE + b"\n" + TWO + b"\n"], ["oversize", TWO]),
        ("time-out-in-a-line", [ONE[:4], "time-out", ONE + b"\n" + TWO + b"\n"], ["length-mismatch", TWO]),
        ("time-out-then-silence", [ONE[:4], "time-out", "silence", b"\r\n" + TWO + b"\n"], ["length-mismatch", TWO]),
        ("time-out-then-silence-then-the-tail", [ONE[:4], "time-out", "silence", ONE[4:] + b"\n" + TWO + b"\n"],
            ["length-mismatch", "length-mismatch", TWO]),
        ("the-tail-of-a-line-that-timed-out-never-runs", [b"log: ", "time-out", "silence", ONE, "silence", b"\n" + TWO + b"\n"],
            ["length-mismatch", "length-mismatch", TWO]),
        ("a-line-may-time-out-again-and-again", [b"log: ", *["time-out", "silence", b"x"] * 3, "time-out", "silence", ONE + b"\n" + TWO + b"\n"],
            ["length-mismatch"] * 5 + [TWO]),
        ("time-out-then-silence-then-the-end", [ONE[:4], "time-out", "silence", b" ", "end"], ["length-mismatch"]),
        ("time-out-then-the-end", [ONE[:4], "time-out", "end"], ["length-mismatch"]),
        ("time-out-in-an-oversize-line", [LONG * 2, "time-out", "silence", b"\n" + TWO + b"\n"], ["oversize", TWO]),
        ("the-tail-of-an-oversize-line-that-timed-out-never-runs", [LONG * 2, "time-out", "silence", ONE + b"\n" + TWO + b"\n"],
            ["oversize", "oversize", TWO]),
        ("time-out-twice", [ONE[:4], "time-out", "time-out", "silence", b"\n" + TWO + b"\n"], ["length-mismatch", TWO]),
        ("time-out-then-an-oversize-line", [ONE[:4], "time-out", b"\n" + LONG * 2, "silence", ONE + b"\n" + TWO + b"\n"],
            ["length-mismatch", "oversize", TWO]),
        ("time-out-between-lines-is-none", [ONE + b"\n ", "time-out", TWO + b"\n"], [ONE, TWO]),
    ]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), [pytest.param(*case[1:], id=case[0]) for case in line_cases()])
def test_lines_give_these_frames_and_faults_in_any_chunks(
    every_chunking: Any, outline: Any, steps: Any, expected: Any
) -> None:
    assert outline(every_chunking(lambda: NewlineParser(LIMITS), steps)) == expected


# (steps, state, clock)
STATES: dict[str, tuple[list[Any], str, str | None]] = {
    "a line is due": ([b"\n "], "in-step", None),
    "in a line": ([ONE], "in-line", "frame"),
    "in an oversize line": ([LONG * 2], "dropping", "frame"),
    "after a time-out": ([ONE, "time-out"], "dropping", "long"),
    "after a time-out and silence": ([ONE, "time-out", "silence", b" "], "late-rest", None),
    "in the late rest": ([ONE, "time-out", "silence", ONE], "dropping", "frame"),
    "after a time-out in an oversize line": ([LONG * 2, "time-out"], "dropping", "long"),
}


@pytest.mark.parametrize("name", STATES)
def test_silence_means_what_the_state_says(drive: Any, name: str) -> None:
    steps, *expected = STATES[name]
    parser = NewlineParser(LIMITS)
    drive(parser, steps)
    assert [parser.state, parser.clock] == expected


def test_an_oversize_line_is_not_held_and_restarts_the_frame_deadline(drive: Any) -> None:
    parser = NewlineParser(LIMITS)
    drive(parser, [LONG * 2])
    before = parser.progress
    drive(parser, [b"x" * 100])
    assert parser.progress == before + 100
    assert parser.pending == 0


def test_a_fault_covers_its_line(drive: Any) -> None:
    stream = b"\n" + ONE + b"\n  " + BAD + b"\r\n" + LONG + b"\n" + TWO + b"\n" + BAD
    faults = [event for event in drive(NewlineParser(LIMITS), [stream, "end"]) if isinstance(event, Fault)]
    assert [stream[fault.offset : fault.offset + fault.size] for fault in faults] == [BAD + b"\r\n", LONG + b"\n", BAD]


def test_a_line_is_refused_once_and_only_while_it_is_the_last_event(drive: Any) -> None:
    parser = NewlineParser(LIMITS)
    drive(parser, [ONE + b"\n"])
    with pytest.raises(RuntimeError):
        parser.refuse_body(ParseFailure("invalid-json"))
    parser.receive_data(ONE + b"\n")
    parser.next_event()
    parser.refuse_body(ParseFailure("invalid-utf8"))
    with pytest.raises(RuntimeError):
        parser.refuse_body(ParseFailure("invalid-utf8"))
    assert parser.next_event() == Fault(ParseFailure("invalid-utf8"), len(ONE) + 1, len(ONE) + 1)


FRAME = encode_frame(ONE, "content-length")
LOG = b"[info] hi"
LINES = b"x\n" + ONE + b"\n"
BAD_JSON = "invalid-json"


@pytest.mark.parametrize(
    ("steps", "framing", "expected"),
    [
        ([ONE + b"\n"], "newline", [ONE]),
        ([b"[1]\n"], "newline", [b"[1]"]),
        ([b" \r\n\t\n" + ONE + b"\n"], "newline", [ONE]),
        ([b" \r\n", b"\t" + ONE + b"\n" + FRAME + b"\n"], "newline", [ONE, b"Content-Length: 8", "invalid-json", ONE]),
        ([FRAME], "content-length", [ONE]),
        ([b" \r\n\t" + FRAME], "content-length", [ONE]),
        ([b"\r", b"\n", FRAME + ONE + b"\n", "pause"], "content-length", [ONE, "missing-content-length"]),
        ([b"junk\n", "silence", ONE, "pause"], "content-length", ["malformed-header", "missing-content-length"]),
        ([b'"text"\n', "silence"], "content-length", ["malformed-header"]),
        ([FRAME[:-1], "time-out", FRAME], "content-length", ["length-mismatch", ONE]),
        ([LOG + b"\n", FRAME + FRAME], "content-length", [LOG, BAD_JSON, ONE, ONE]),
        ([LOG + b"\r\n{x}\n\r\n" + FRAME.replace(b"C", b"c")], "content-length", [LOG, b"{x}", BAD_JSON, BAD_JSON, ONE]),
        ([LOG + b"\n" + encode_frame(LINES, "content-length"), "pause"], "content-length", [LOG, BAD_JSON, LINES, BAD_JSON]),
        ([LOG + b"\n" + ONE + b"\nCon\n"], "newline", [LOG, ONE, BAD_JSON, b"Con", BAD_JSON]),
        ([b"{x}\n", "silence", b"junk\n" + ONE + b"\n"], "newline", [b"{x}", BAD_JSON, b"junk", BAD_JSON, ONE]),
        ([b"[info] C", b"\n", ONE + b"\n"], "newline", [b"[info] C", ONE, BAD_JSON]),
        ([b" \r\n"], None, []),
        ([b"\n", "end"], None, []),
        (["end"], None, []),
    ],
)  # fmt: skip
def test_the_first_byte_that_is_not_blank_decides(
    drive: Any, outline: Any, steps: Any, framing: Any, expected: Any
) -> None:
    parser = parser_for("auto", LIMITS)
    assert outline(drive(parser, steps)) == expected
    assert parser.framing == framing


@pytest.mark.parametrize(
    ("before", "faults"),
    [
        ([LOG], [LOG + b"Content-Length: 25", BAD_JSON]),
        ([LOG + b"\nstarting "], [LOG, b"starting Content-Length: 25", BAD_JSON, BAD_JSON]),
        ([LOG + b"x" * 100], ["oversize"]),
        ([LOG + b"x" * 14], ["oversize"]),
        ([LOG, "time-out"], ["length-mismatch"]),
        ([LOG, "time-out", "silence"], ["length-mismatch", "length-mismatch"]),
    ],
)
def test_the_lines_in_a_frame_behind_a_log_line_without_an_end_never_run(
    drive: Any, outline: Any, before: Any, faults: Any
) -> None:
    payload = b"x\n" + TWO + b"\n" + b"y" * 14
    *steps, last = [*before, b""] if isinstance(before[-1], str) else before
    parser = parser_for("auto", FrameLimits(max_body=40, max_header=64))
    events = drive(parser, [*steps, last + encode_frame(payload, "content-length") + FRAME])
    assert outline(events) == [*faults, "malformed-header", ONE]
    assert parser.framing == "content-length"


@pytest.mark.parametrize("before", [b" \n " + FRAME, b" \n" + LOG + b"\n \n" + FRAME])
def test_the_choice_keeps_the_offsets_of_the_stream(drive: Any, before: bytes) -> None:
    stream = before + b"junk \r\n\r\n"
    fault = drive(AutoParser(LIMITS), [stream[:2], stream[2:14], stream[14:], "pause"])[-1]
    assert stream[fault.offset : fault.offset + fault.size] == b"junk \r\n\r\n"


def test_before_the_choice_nothing_is_held_and_no_silence_means_anything() -> None:
    parser = AutoParser(LIMITS)
    parser.receive_data(b" \r\n")
    assert parser.next_event() is NEED_DATA
    assert (parser.pending, parser.clock, parser.progress) == (0, None, 0)


@pytest.mark.parametrize("framing", ["content-length", "newline", "auto"])
def test_bytes_after_the_end_are_a_programming_error(framing: Any) -> None:
    parser = parser_for(framing, LIMITS)
    parser.end_of_input()
    assert parser.next_event() is END_OF_INPUT
    with pytest.raises(RuntimeError):
        parser.receive_data(FRAME)
    with pytest.raises(ValueError, match="end_of_input"):
        parser_for(framing, LIMITS).receive_data(b"")


def test_the_framing_is_what_was_asked_for() -> None:
    assert isinstance(parser_for("content-length"), ContentLengthParser)
    assert parser_for("content-length").framing == "content-length"
    assert parser_for("newline").framing == "newline"
