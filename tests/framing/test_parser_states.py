"""Every state of the `Content-Length` parser meets every kind of input, and each meeting has a stated outcome."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from discreet.errors.failures import ParseFailure
from discreet.framing.content_length import ContentLengthParser, ParserState
from discreet.framing.encoder import encode_frame
from discreet.framing.events import Fault, Frame, FrameLimits
from support.frames import LIMITS, ONE, A

BAD_FRAME = encode_frame(b"{]x", "content-length")
CUT_FRAME = encode_frame(b'{"a":', "content-length")
CUT_BODY = b'Content-Length: 60\r\n\r\n{"a":'
OVERSIZE = b"Content-Length: 201\r\n\r\nx"
JUNK = b"junk\r\n\r\n"

INPUTS: dict[str, Any] = {
    "frame": A, "text": ONE, "junk": JUNK, "line end": b"\r\n", "no length": b"X: 1\r\n\r\n", "pause": "pause",
    "silence": "silence", "time-out": "time-out", "end": "end",
}  # fmt: skip

MALFORMED, MISSING, INVALID = "malformed-header", "missing-content-length", "invalid-json"

Outcomes = dict[str, tuple[list[bytes | str], str]]


# What leads there, the state, and for each input what comes out and the state after it. An input left out changes nothing.
ROWS: dict[str, tuple[list[Any], ParserState, str]] = {
    "in step": ([A], "in-step",
        "frame: ONE > in-step, text: > after-text, junk: > after-block, no length: > after-block"),
    "after a text": ([ONE], "after-text",
        ("frame: missing-content-length ONE > in-step, junk: > after-block, no length: > after-block, "
         "pause: missing-content-length > in-step, silence: missing-content-length > in-step, "
         "end: missing-content-length > in-step")),
    "after a faulty block": ([JUNK], "after-block",
        ("frame: malformed-header ONE > in-step, text: > after-text, pause: malformed-header > after-block, "
         "silence: malformed-header > in-step, end: malformed-header > in-step")),
    "the same, and told": ([JUNK, "pause"], "after-block",
        "frame: ONE > in-step, text: > in-step, silence: > in-step, end: > in-step"),
    "in a block after a faulty block": ([JUNK + b"Y: "], "in-block",
        ("frame: > doubt-whole, junk: > after-block, no length: > after-block, "
         "silence: malformed-header > in-step, end: malformed-header > in-step")),
    "in a block": ([b"Y: "], "in-block",
        ("frame: > doubt-whole, junk: > after-block, no length: > after-block, time-out: > doubt-whole, "
         "end: malformed-header > in-step")),
    "in a body": ([CUT_BODY], "in-body",
        "time-out: > doubt-cut, end: length-mismatch > in-step"),
    "in the body of a whole text": ([b"Content-Length: 60\r\n\r\n{}"], "in-body",
        "time-out: > doubt-whole, end: length-mismatch > in-step"),
    "skipping a body": ([OVERSIZE], "skipping-body",
        "time-out: > doubt-whole, end: oversize > in-step"),
    "dropping a block": ([b"no header"], "dropping-block",
        ("frame: > doubt-whole, junk: > after-block, no length: > after-block, "
         "silence: malformed-header > in-step, end: malformed-header > in-step")),
    "skipping the body of a dropped block": ([b"a b\nContent-Length: 90\n\n"], "skipping-refused",
        "time-out: > doubt-whole, end: malformed-header > in-step"),
    "behind the body of a dropped block": ([b"a b\nContent-Length: 2\n\n{}"], "doubt-whole",
        ("frame: malformed-header ONE > in-step, text: > quarantine, junk: > quarantine, "
         "no length: > quarantine, pause: malformed-header > doubt-whole, "
         "silence: malformed-header > in-step, end: malformed-header > in-step")),
    "in an unframed text": ([b'{"a":1'], "unframed",
        ("frame: > quarantine, junk: > quarantine, no length: > quarantine, "
         "silence: missing-content-length > in-step, end: missing-content-length > in-step")),
    "in an unframed text after a faulty block": ([JUNK + b'{"a":1'], "unframed",
        ("frame: > quarantine, junk: > quarantine, no length: > quarantine, "
         "silence: malformed-header > in-step, end: malformed-header > in-step")),
    "in doubt after a bad body": ([BAD_FRAME], "doubt-whole",
        ("frame: invalid-json ONE > in-step, text: > quarantine, junk: > quarantine, "
         "no length: > after-block, pause: invalid-json > doubt-whole, silence: invalid-json > in-step, "
         "end: invalid-json > in-step")),
    "in doubt after a bad body, and told": ([BAD_FRAME, "pause"], "doubt-whole",
        ("frame: ONE > in-step, text: > quarantine, junk: > quarantine, no length: > after-block, "
         "silence: > in-step, end: > in-step")),
    "in doubt after a cut body": ([CUT_FRAME], "doubt-cut",
        ("frame: invalid-json ONE > in-step, text: > cut-text, junk: > quarantine, no length: > after-block, "
         "silence: invalid-json > in-step, end: invalid-json > in-step")),
    "in doubt after a body that timed out": ([CUT_BODY, "time-out"], "doubt-cut",
        ("frame: length-mismatch ONE > in-step, text: > cut-text, junk: > quarantine, "
         "no length: > quarantine, silence: length-mismatch > doubt-cut, end: length-mismatch > in-step")),
    "the same, reported": ([CUT_BODY, "time-out", "silence"], "doubt-cut",
        ("frame: ONE > in-step, text: > cut-text, junk: > quarantine, no length: > quarantine, "
         "end: > in-step")),
    "in doubt after a whole text that timed out": ([b"Content-Length: 60\r\n\r\n{}", "time-out"], "doubt-whole",
        ("frame: length-mismatch ONE > in-step, text: > quarantine, junk: > quarantine, "
         "no length: > quarantine, pause: length-mismatch > doubt-whole, "
         "silence: length-mismatch > doubt-whole, end: length-mismatch > in-step")),
    "in a block in doubt after a bad body": ([BAD_FRAME + b"Y: "], "in-block",
        ("frame: > doubt-whole, junk: > after-block, no length: > after-block, "
         "silence: invalid-json > in-step, end: invalid-json > in-step")),
    "in a block in doubt after a cut body": ([CUT_FRAME + b"1: "], "in-block",
        ("frame: > doubt-whole, junk: > after-block, no length: > after-block, "
         "silence: invalid-json > in-step, end: invalid-json > in-step")),
    "in the rest of a cut text": ([CUT_FRAME + b"[1"], "cut-text",
        ("frame: > quarantine, junk: > quarantine, no length: > quarantine, silence: invalid-json > in-step, "
         "end: invalid-json > in-step")),
    "in the late rest of a body that timed out": ([CUT_BODY, "time-out", "silence", b"[1"], "cut-text",
        ("frame: > quarantine, junk: > quarantine, no length: > quarantine, "
         "silence: length-mismatch > in-step, end: length-mismatch > in-step")),
    "in quarantine": ([BAD_FRAME + b"{"], "quarantine",
        "silence: invalid-json > in-step, end: invalid-json > in-step"),
}  # fmt: skip


def outcomes_of(row: str) -> Outcomes:
    """For each input that changes something: what comes out, and the state after it."""
    found: Outcomes = {}
    for outcome in ROWS[row][2].split(", "):
        given, _, then = outcome.partition(": ")
        *events, _, state = then.split(" ")
        found[given] = [ONE if event == "ONE" else event for event in events], state
    return found


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("row", ROWS)
def test_every_state_answers_every_input_as_the_table_says(drive: Any, outline: Any, row: str, given: str) -> None:
    prefix, state, _ = ROWS[row]
    parser = ContentLengthParser(LIMITS)
    drive(parser, prefix)
    assert parser.state == state
    expected, after = outcomes_of(row).get(given, ([], state))
    assert outline(drive(parser, [INPUTS[given]])) == expected
    assert parser.state == after


@pytest.mark.parametrize("row", ROWS)
def test_a_clock_runs_where_its_end_changes_something_and_nowhere_else(drive: Any, row: str) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, ROWS[row][0])
    outcomes = outcomes_of(row)
    clocks = {"pause": "short", "silence": "long", "time-out": "frame"}
    assert parser.clock == next((clock for given, clock in clocks.items() if given in outcomes), None)


@pytest.mark.parametrize("row", ROWS)
def test_nothing_can_be_refused_where_no_frame_has_just_come(drive: Any, row: str) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, ROWS[row][0])
    with pytest.raises(RuntimeError):
        parser.refuse_body(ParseFailure("invalid-json"))


def test_the_table_reaches_every_state() -> None:
    reached = {state for _, state, _ in ROWS.values()}
    assert reached | {"reporting"} == set(get_args(ParserState))


@pytest.mark.parametrize("given", ["silence", "time-out", "end", "frame"])
def test_a_fault_that_waits_to_be_read_comes_before_everything_else(drive: Any, outline: Any, given: str) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, [BAD_FRAME])
    parser.clock_expired()
    assert (parser.state, parser.clock) == ("reporting", None)
    expected = [INVALID, ONE] if given == "frame" else [INVALID]
    assert outline(drive(parser, [INPUTS[given]])) == expected


@pytest.mark.parametrize(
    ("before", "unread", "expected"),
    [
        (b"no header", b"\r\n\r\n" + A, [MALFORMED, ONE]),
        (b"[", b"]" + A, [MISSING, ONE]),
        (A[:-3], A[-3:] + A, [ONE, ONE]),
    ],
)
def test_silence_means_nothing_while_bytes_wait_to_be_read(
    drive: Any, outline: Any, before: bytes, unread: bytes, expected: Any
) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, [before])
    parser.receive_data(unread[:-1])
    parser.clock_expired()
    assert outline(drive(parser, [unread[-1:]])) == expected


def test_chunks_may_pile_up_unread(drive: Any, outline: Any) -> None:
    parser = ContentLengthParser(LIMITS)
    for byte in A + A:
        parser.receive_data(bytes([byte]))
    assert parser.pending == len(A + A)
    assert outline(drive(parser, [A])) == [ONE, ONE, ONE]
    assert parser.pending == 0


def test_chunks_that_come_between_two_frames_keep_their_order(drive: Any, outline: Any) -> None:
    parser = ContentLengthParser(LIMITS)
    two, three = (encode_frame(body, "content-length") for body in (b"2", b"3"))
    parser.receive_data(A)
    parser.receive_data(two)
    assert parser.next_event() == Frame(ONE)
    assert outline(drive(parser, [three])) == [b"2", b"3"]


def test_a_fault_covers_the_bytes_that_were_dropped(drive: Any) -> None:
    stream = A + b"\r\n" + JUNK + ONE + b"\r\n" + OVERSIZE.ljust(len(OVERSIZE) + 200, b"x") + BAD_FRAME + b"junk"
    faults = [event for event in drive(ContentLengthParser(LIMITS), [stream, "end"]) if isinstance(event, Fault)]
    spans = [stream[fault.offset : fault.offset + fault.size] for fault in faults]
    assert spans == [JUNK + ONE + b"\r\n", OVERSIZE.ljust(len(OVERSIZE) + 200, b"x"), b"{]xjunk"]


def test_an_oversize_body_restarts_the_frame_deadline_as_it_streams_by(drive: Any) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, [OVERSIZE])
    before = parser.progress
    drive(parser, [b"x"])
    assert parser.clock == "frame"
    assert parser.progress == before + 1
    assert parser.pending == 0


def test_a_body_within_the_limit_does_not_restart_the_frame_deadline(drive: Any) -> None:
    parser = ContentLengthParser(LIMITS)
    drive(parser, [CUT_BODY])
    before = parser.progress
    drive(parser, [b"x"])
    assert parser.clock == "frame"
    assert parser.progress == before


def test_limits_that_no_frame_could_meet_are_refused() -> None:
    for body, header in ((0, 8192), (1024, 63)):
        with pytest.raises(ValueError, match="at least"):
            FrameLimits(max_body=body, max_header=header)
