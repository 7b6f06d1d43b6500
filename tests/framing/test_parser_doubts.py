"""Rules 6 and 7 of section 1.1 of docs/protocol.md as a table: bodies that are no JSON, cut short, or too late.

A case is a list of steps (bytes, "silence", "time-out", "end") and the expected events: the body of a frame, or the reason of a
fault. Bodies that are no JSON are returned as frames, and the test driver refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.framing.content_length import ContentLengthParser
from support.frames import BAD, BIG, CUT, EVIL, EVIL_FRAME, LIMITS, ONE, TAIL, TWO, A, B, f


def doubts() -> Iterator[tuple[str, list[Any], list[bytes | str]]]:
    bad = "invalid-json"
    yield "bad-body-then-a-frame", [f(BAD) + B], [BAD, bad, TWO]
    yield "bad-body-then-line-ends-and-a-frame", [f(BAD) + b"\r\n\n" + B], [BAD, bad, TWO]
    yield "bad-body-then-silence", [f(BAD), "silence", EVIL + B], [BAD, bad, "missing-content-length", TWO]
    yield "bad-body-then-a-text", [f(BAD) + EVIL + EVIL_FRAME, "silence", B], [BAD, bad, TWO]
    yield "bad-body-then-junk", [f(BAD) + b"junk\r\n\r\n" + EVIL_FRAME, "silence", B], [BAD, bad, TWO]
    missing = "missing-content-length"
    yield "bad-body-then-no-length", [f(BAD) + b"X: 1\r\n\r\n" + A + B], [BAD, bad, missing, ONE, TWO]
    yield "bad-body-then-no-length-and-a-text", [f(BAD) + b"X: 1\r\n\r\n" + EVIL + B], [BAD, bad, missing, TWO]
    yield "cut-then-no-length", [f(b"{bad") + b"X: 1\r\n\r\n" + A + B], [b"{bad", bad, missing, ONE, TWO]
    yield "nothing-then-no-length", [f(b"") + b"X: 1\r\n\r\n" + A + B], [b"", bad, missing, ONE, TWO]
    yield "bad-body-then-no-length-twice", [f(BAD) + b"X: 1\r\n\r\n" * 2 + B], [BAD, bad, missing, TWO]
    yield (
        "bad-body-then-a-huge-length",
        [f(BAD) + b"Content-Length: %d\r\n\r\n" % 10**30 + A + B],
        [BAD, bad, "oversize", ONE, TWO],
    )
    yield "bad-body-then-an-oversize-frame", [f(BAD) + f(BIG) + B], [BAD, bad, "oversize", TWO]
    yield (
        "bad-body-then-a-bad-type",
        [f(BAD) + b"Content-Type: a/b\r\nContent-Length: 8\r\n\r\n" + EVIL[:8] + B],
        [BAD, bad, "unsupported-content-type", TWO],
    )
    yield "bad-body-then-half-a-block-and-silence", [f(BAD) + A[:9], "silence", B], [BAD, bad, TWO]
    yield "scalar-body-is-json", [f(b"12") + B], [b"12", TWO]
    yield "text-and-more-was-not-cut", [f(b"{}x") + B], [b"{}x", bad, TWO]
    yield "plain-text-was-not-cut", [f(b"hello") + EVIL + EVIL_FRAME, "silence", B], [b"hello", bad, TWO]
    yield "raw-line-end-in-a-string", [f(b'{"a":"\n"}') + B], [b'{"a":"\n"}', bad, TWO]
    yield "cut-but-the-length-was-right", [f(CUT) + B], [CUT, bad, TWO]
    yield "cut-then-line-ends-and-a-frame", [f(CUT) + b"\r\n" + B], [CUT, bad, TWO]
    yield "cut-then-the-rest-of-the-text", [f(CUT) + TAIL + B], [CUT, bad, TWO]
    yield "cut-then-the-rest-and-line-ends", [f(CUT) + TAIL + b"\r\n" + B], [CUT, bad, TWO]
    yield "cut-then-the-rest-and-a-text", [f(CUT) + TAIL + EVIL + EVIL_FRAME, "silence", B], [CUT, bad, TWO]
    yield "cut-then-silence", [f(CUT), "silence", B], [CUT, bad, TWO]
    yield (
        "cut-then-silence-then-a-late-tail",
        [f(CUT), "silence", TAIL, "silence", B],
        [CUT, bad, "malformed-header", TWO],
    )
    yield "cut-then-half-the-rest", [f(CUT) + b"thr", "silence", B], [CUT, bad, TWO]
    yield "cut-then-half-a-block", [f(CUT) + A[:20], "silence", B], [CUT, bad, TWO]
    yield "cut-then-line-ends-inside-its-string", [f(CUT) + b"\r\n" + TAIL + EVIL_FRAME, "silence", B], [CUT, bad, TWO]
    yield "cut-between-members", [f(b'{"a":1,') + b'\r\n"b":2}' + B], [b'{"a":1,', bad, TWO]
    yield "cut-text-that-looks-like-a-header", [f(b'{"a":"') + b'x: 1"}' + B], [b'{"a":"', bad, TWO]
    yield (
        "cut-text-that-looks-like-a-block",
        [f(b'{"a":"') + b"X: 1\r\n\r\n" + EVIL_FRAME, "silence", B],
        [b'{"a":"', bad, TWO],
    )
    yield "cut-text-longer-than-a-block", [f(CUT) + b"x" * 300 + b'"}' + B], [CUT, bad, TWO]
    yield "cut-at-an-escape", [f(b'["\\') + b'"]"]' + B], [b'["\\', bad, TWO]
    yield "cut-inside-a-character", [f(b'["\xc3') + b'\xa9"]' + B], [b'["\xc3', bad, TWO]
    yield "cut-before-it-began", [f(b"") + EVIL + B], [b"", bad, TWO]
    yield "cut-in-leading-white-space", [f(b" \r\n") + b" [1]" + B], [b" \r\n", bad, TWO]
    yield "nothing-then-a-frame", [f(b"") + B], [b"", bad, TWO]
    yield "nothing-then-junk", [f(b"") + b"junk" + EVIL_FRAME + B], [b"", bad, missing, TWO]
    nested = b'{"a":"' + EVIL_FRAME + b'"}'
    yield (
        "raw-frame-in-a-cut-body",
        [f(b'{"a":"x')[:-1] + nested[6:] + EVIL_FRAME, "silence", B],
        [b'{"a":"C', bad, TWO],
    )
    yield "two-bad-bodies", [f(BAD) + f(BAD) + B], [BAD, bad, BAD, bad, TWO]
    yield "bad-body-in-a-frame-that-ended-a-doubt", [f(CUT) + f(CUT) + TAIL + B], [CUT, bad, CUT, bad, TWO]


def time_outs() -> Iterator[tuple[str, list[Any], list[bytes | str]]]:
    mismatch = "length-mismatch"
    begun = b"Content-Length: 60\r\n\r\n" + CUT
    whole = b"Content-Length: 60\r\n\r\n" + EVIL
    yield "time-out-in-a-block", [A[:9], "time-out", "silence", B], ["malformed-header", TWO]
    yield "time-out-in-a-block-then-a-frame", [A[:9], "time-out", B], ["malformed-header", TWO]
    yield (
        "time-out-in-a-block-then-its-tail",
        [A[:9], "time-out", "silence", A[9:] + EVIL_FRAME, "silence", B],
        ["malformed-header", "malformed-header", TWO],
    )
    yield "time-out-in-a-cut-body-then-a-frame", [begun, "time-out", B], [mismatch, TWO]
    yield "time-out-in-a-cut-body-then-its-tail", [begun, "time-out", TAIL + B], [mismatch, TWO]
    yield "time-out-then-silence-then-a-frame", [begun, "time-out", "silence", B], [mismatch, TWO]
    yield (
        "time-out-then-silence-twice-then-the-tail",
        [begun, "time-out", "silence", "silence", TAIL + B],
        [mismatch, TWO],
    )
    yield (
        "time-out-then-silence-then-line-ends-and-a-frame",
        [begun, "time-out", "silence", b"\r\n" + A + B],
        [mismatch, ONE, TWO],
    )
    yield (
        "time-out-then-a-tail-without-end",
        [begun, "time-out", "silence", b" and more", "silence", B],
        [mismatch, mismatch, TWO],
    )
    yield (
        "time-out-then-a-raw-tail",
        [begun, "time-out", "silence", b"x\r\n\r\n" + EVIL_FRAME, "silence", B],
        [mismatch, mismatch, TWO],
    )
    yield (
        "time-out-then-the-whole-tail-then-silence",
        [begun, "time-out", TAIL, "silence", EVIL + B],
        [mismatch, "missing-content-length", TWO],
    )
    yield (
        "time-out-then-silence-then-the-whole-tail-then-silence",
        [begun, "time-out", "silence", TAIL, "silence", EVIL + B],
        [mismatch, "missing-content-length", TWO],
    )
    yield (
        "time-out-then-frames-then-a-doubt-of-another-kind",
        [begun, "time-out", A + f(BAD), "silence", EVIL + B],
        [*(mismatch, ONE, BAD, "invalid-json"), *("missing-content-length", TWO)],
    )
    yield "time-out-after-a-whole-text", [whole, "time-out", B], [mismatch, TWO]
    yield (
        "time-out-after-a-whole-text-then-junk",
        [whole, "time-out", "silence", EVIL + EVIL_FRAME, "silence", B],
        [mismatch, mismatch, TWO],
    )
    yield "time-out-before-the-body", [b"Content-Length: 60\r\n\r\n", "time-out", EVIL + B], [mismatch, TWO]
    yield "time-out-in-an-oversize-body", [f(BIG)[:99], "time-out", B], ["oversize", TWO]
    yield (
        "time-out-in-an-oversize-body-then-its-tail",
        [f(BIG)[:99], "time-out", "silence", b"xx" + EVIL_FRAME, "silence", B],
        ["oversize", "oversize", TWO],
    )
    yield "many-time-outs", [begun, "time-out", "silence"] * 3 + [B], [mismatch, mismatch, mismatch, TWO]
    yield "time-out-between-frames-is-none", [A, "time-out", B], [ONE, TWO]


CASES = [*doubts(), *time_outs()]


@pytest.mark.parametrize(("steps", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_doubt_ends_with_these_frames_and_faults_in_any_chunks(
    every_chunking: Any, outline: Any, steps: Any, expected: Any
) -> None:
    assert outline(every_chunking(lambda: ContentLengthParser(LIMITS), steps)) == expected
