"""Section 1.1 of docs/protocol.md as a table: what a stream of bytes becomes, however it is cut into chunks.

A case is a list of steps (bytes, "silence", "time-out", "end") and the expected events: the body of a frame, or the reason of a
fault. Bodies that are no JSON are returned as frames, and the test driver refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.framing.content_length import ContentLengthParser
from support.frames import BAD, BIG, CUT, EVIL, EVIL_FRAME, LIMITS, ONE, TAIL, TWO, A, B, f


def block(*lines: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in lines) + b"\r\n"


GOOD_BLOCKS: dict[str, tuple[bytes, ...]] = {
    "lower-case": (b"content-length: 8",),
    "upper-case": (b"CONTENT-LENGTH: 8",),
    "no-space": (b"Content-Length:8",),
    "blanks-around-the-value": (b"Content-Length: \t 8 \t ",),
    "leading-zeros": (b"Content-Length: 0000000000000000000000000000008",),
    "unknown-headers": (b"X-A: 1", b"Content-Length: 8", b"x-b: 2"),
    "every-token-character": (b"!#$%&'*+-.^_`|~09azAZ: 1", b"Content-Length: 8"),
    "empty-value": (b"X:", b"Y: ", b"Content-Length: 8"),
    "every-value-byte": (b"X: \t !~\x80\xff:{}", b"Content-Length: 8"),
    "content-type": (b"Content-Length: 8", b"Content-Type: application/vscode-jsonrpc"),
    "content-type-first": (b"Content-Type: application/vscode-jsonrpc; charset=utf-8", b"Content-Length: 8"),
    "content-type-quoted": (b'Content-Type: application/vscode-jsonrpc;charset="UTF8"', b"Content-Length: 8"),
    "at-the-limit": (b"X: " + b"x" * (LIMITS.max_header - 26), b"Content-Length: 8"),
}

# Refused blocks that declare a length of 8 nevertheless, and with which reason.
DECLARING_BLOCKS: dict[str, tuple[str, bytes]] = {
    **{
        name: ("malformed-header", raw)
        for name, raw in {
            "log-line": b"starting up\nContent-Length: 8\r\n\r\n",
            "log-line-in-brackets": b"hi [info]\r\nContent-Length: 8\r\n\r\n",
            "log-line-without-its-end": b"starting up ...Content-Length: 8\r\n\r\n",
            "log-line-behind": b"Content-Length: 8\r\nstarting up\r\n\r\n",
            "length-repeated": b"a b\nContent-Length: 8\ncontent-length: 08\n\n",
            "one-length-usable": b"a b\nContent-Length: x\nContent-Length: 8\nContent-Length: 8, 8\n\n",
            "blank-before-the-colon": b"Content-Length : 8\r\n\r\n",
            "leading-blank": b" Content-Length: 8\r\n\r\n",
            "folded-line": b"Content-Length: 8\r\n X: y\r\n\r\n",
            "bare-lf": b"X: y\nContent-Length: 8\n\n",
            "bare-lf-then-crlf": b"X: y\nContent-Length: 8\r\n\r\n",
            "bare-cr": b"X: y\rContent-Length: 8\r\n\r\n",
            "bare-cr-at-a-line-start": b"X: y\r\n\rContent-Length: 8\r\n\r\n",
            "blank-line-of-bare-lf": b"Content-Length: 8\r\n\n",
            "nul": b"\x00\x00Content-Length: 8\r\n\r\n",
            "control-in-a-value": b"X: \x01\r\nContent-Length: 8\r\n\r\n",
            "brace-in-a-block": b'Content-Length: 8\r\n{"id":1}\r\n\r\n',
            "other-case": b"\xffcONTENT-lENGTH:8\t \r\n\r\n",
            "blanks-and-zeros": b"a b\nContent-Length\t : " + b" " * 900 + b"0" * 900 + b"8" + b" " * 900 + b"\r\n\r\n",
            "long-line": b"a b" * 4000 + b"Content-Length: 8\r\n\r\n",
        }.items()
    },
    "header-too-large": ("header-too-large", b"X: " + b"x" * 128 + b"\r\nContent-Length: 8\r\n\r\n"),
    "header-too-large-by-lines": ("header-too-large", b"X: y\r\n" * 30 + b"Content-Length: 8\r\n\r\n"),
    **{
        f"header-too-large-by-{over}": (
            "header-too-large",
            b"X: " + b"x" * (LIMITS.max_header - 26 + over) + b"\r\nContent-Length: 8\r\n\r\n",
        )
        for over in range(1, 5)
    },
    "equal-duplicates": ("invalid-content-length", block(b"Content-Length: 8", b"content-length: 8")),
    "beyond-then-repeated": ("oversize", block(b"Content-Length: " + b"9" * 30, b"Content-Length: 8")),
    "header-cut-at-its-name": ("missing-content-length", block(b"Content-LenContent-Length: 8")),
    "header-cut-at-its-value": ("invalid-content-length", block(b"Content-Length: 1Content-Length: 8")),
    "other-header-cut": ("missing-content-length", block(b"X: yContent-Length: 8")),
}

CONFLICTING_BLOCKS: dict[str, tuple[str, bytes]] = {
    "in-a-dropped-block": ("malformed-header", b"a b\nContent-Length: 8\nContent-Length: 9\n\n"),
    "before-and-behind": ("malformed-header", b"Content-Length: 8\r\na b\r\nContent-Length: 9\r\n\r\n"),
    "in-one-line": ("malformed-header", b"a b Content-Length: 8\rContent-Length: 9\r\n\r\n"),
    "duplicates": ("invalid-content-length", block(b"Content-Length: 8", b"X: 1", b"Content-Length: 9")),
    "duplicates-of-which-one-is-oversize": ("invalid-content-length", block(b"Content-Length: 999", b"Content-Length: 8")),
}  # fmt: skip

MALFORMED_BLOCKS: dict[str, bytes] = {
    "no-colon": b"garbage\r\n\r\n",
    "no-name": b": 8\r\n\r\n",
    "nul": b"\x00\r\n\r\n",
    "del-in-a-value": b"X: \x7f\r\n\r\n",
    "non-ascii-name": b"\xc3\xa9: 1\r\n\r\n",
    "bare-lf": b"X: y\nY: z\n\n",
    "bad-length-of-bare-lf": b"X: y\nContent-Length: -8\n\n",
    "length-in-words": b"a b\nContent-Length: 8 bytes\n\n",
    "utf-16": b"\xff\xfeC\x00o\x00n\x00\r\n\r\n",
    "bracket-in-a-name": b"X[0]: 1\r\n\r\n",
    "malformed-after-a-bad-length": b"Content-Length: x\r\nno colon\r\n\r\n",
}

UNUSABLE_BLOCKS: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "none": ("missing-content-length", (b"X: 1",)),
    "none-but-a-bad-type": ("missing-content-length", (b"Content-Type: text/plain",)),
    "empty": ("invalid-content-length", (b"Content-Length:",)),
    "blank": ("invalid-content-length", (b"Content-Length:  \t",)),
    "plus": ("invalid-content-length", (b"Content-Length: +8",)),
    "minus": ("invalid-content-length", (b"Content-Length: -8",)),
    "hexadecimal": ("invalid-content-length", (b"Content-Length: 0x8",)),
    "underscore": ("invalid-content-length", (b"Content-Length: 1_0",)),
    "fraction": ("invalid-content-length", (b"Content-Length: 8.0",)),
    "list": ("invalid-content-length", (b"Content-Length: 8, 8",)),
    "inner-blank": ("invalid-content-length", (b"Content-Length: 0 8",)),
    **{
        f"odd-{digits!r}": ("invalid-content-length", (b"Content-Length: " + digits,))
        for digits in (b"\xd9\xa8", b"\xb2", b"\xef\xbc\x95", b"5e0", b"five")
    },
    "beyond-unsigned-64-bits": ("oversize", (b"Content-Length: 18446744073709551624",)),
    "beyond-64-bits": ("oversize", (b"Content-Length: 9223372036854775808",)),
    "far-beyond": ("oversize", (b"Content-Length: " + b"9" * 90,)),
    "bad-length-and-bad-type": ("invalid-content-length", (b"Content-Type: text/plain", b"Content-Length: x")),
}

SKIPPED_BLOCKS: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "type": ("unsupported-content-type", (b"Content-Type: application/json",)),
    "empty-type": ("unsupported-content-type", (b"Content-Type:",)),
    "charset": ("bad-charset", (b"Content-Type: application/vscode-jsonrpc; charset=latin-1",)),
    "type-repeated": (
        "bad-charset",
        (b"Content-Type: application/vscode-jsonrpc; charset=x", b"Content-Type: application/json"),
    ),
}


def cases() -> Iterator[tuple[str, list[Any], list[bytes | str]]]:
    """Name, steps, expected events."""
    yield from frames()
    yield from header_faults()
    yield from unframed_texts()
    yield from ends()
    yield from doubts()
    yield from time_outs()


def frames() -> Iterator[tuple[str, list[Any], list[bytes | str]]]:
    yield "one-frame", [A], [ONE]
    yield "three-frames", [A + B + A], [ONE, TWO, ONE]
    yield "crlf-before-a-block", [b"\r\n\r\n" + A + b"\r\n" + B], [ONE, TWO]
    yield "lf-before-a-block", [b"\n" + A + b"\n\n" + B + b"\n", "end"], [ONE, TWO]
    yield "body-at-the-limit", [f(b'"' + b"x" * 198 + b'"')], [b'"' + b"x" * 198 + b'"']
    escaped = b'["Content-Length: 10\\r\\n\\r\\n{\\"id\\":666}"]'
    yield "frame-in-a-string-stays-there", [f(escaped) + B], [escaped, TWO]
    yield "silence-in-a-body-changes-nothing", [A[:-3], "silence", A[-3:] + B], [ONE, TWO]
    yield "silence-in-a-block-changes-nothing", [A[:9], "silence", A[9:] + B], [ONE, TWO]
    for name, lines in GOOD_BLOCKS.items():
        yield f"good-block-{name}", [block(*lines) + ONE + B], [ONE, TWO]


def header_faults() -> Iterator[tuple[str, list[Any], list[bytes | str]]]:
    for name, raw in MALFORMED_BLOCKS.items():
        yield f"malformed-{name}", [raw + B], ["malformed-header", TWO]
        yield f"malformed-{name}-then-a-text", [raw + b"\r\n" + EVIL + B], ["malformed-header", TWO]
    for name, (reason, lines) in UNUSABLE_BLOCKS.items():
        yield f"unusable-{name}", [block(*lines) + B], [reason, TWO]
        yield f"unusable-{name}-then-a-text", [block(*lines) + EVIL + b"\n" + B], [reason, TWO]
    for name, (reason, raw) in DECLARING_BLOCKS.items():
        length = len(EVIL_FRAME)
        longer = re.sub(rb"8(?=[ \t]*[\r\n])", b"%d" % length, raw)
        yield f"declaring-{name}", [raw + ONE + B], [reason, TWO]
        yield f"declaring-{name}-a-frame", [longer + EVIL_FRAME + B], [reason, TWO]
        yield f"declaring-{name}-silence", [raw, "silence", ONE, "silence", B], [reason, TWO]
        yield f"declaring-{name}-a-longer-body", [raw + ONE + EVIL + EVIL_FRAME, "silence", B], [reason, TWO]
        yield f"declaring-{name}-an-end", [raw + ONE[:4], "end"], [reason]
    for name, (reason, raw) in CONFLICTING_BLOCKS.items():
        yield f"conflicting-{name}", [raw + EVIL_FRAME, "silence", B], [reason, TWO]
        yield f"conflicting-{name}-then-a-text", [raw + b"{}" + EVIL_FRAME, "silence", B], [reason, TWO]
    for name, (reason, lines) in SKIPPED_BLOCKS.items():
        skipped = block(*lines, b"Content-Length: %d" % len(EVIL_FRAME)) + EVIL_FRAME
        yield f"skipped-{name}", [skipped + B], [reason, TWO]
        yield f"skipped-{name}-then-a-text", [skipped + EVIL + B], [reason, "missing-content-length", TWO]
    oversize = f(BIG[:100] + EVIL_FRAME + BIG[100:])
    yield "oversize", [oversize + B], ["oversize", TWO]
    yield (
        "oversize-outweighs-a-bad-type",
        [block(b"Content-Type: x/y", b"Content-Length: 201") + b"x" * 201],
        ["oversize"],
    )
    yield "silence-does-not-end-an-oversize-body", [oversize[:50], "silence", oversize[50:] + B], ["oversize", TWO]
    large = b"X: " + b"x" * LIMITS.max_header + b"\r\n"
    yield "header-too-large-then-a-text", [large + b"\r\n" + EVIL + B], ["header-too-large", TWO]
    yield "header-too-large-by-lines", [b"X: y\r\n" * 30 + b"\r\n" + B], ["header-too-large", TWO]
    yield (
        "malformed-at-the-limit",
        [b"X: " + b"x" * (LIMITS.max_header - 4) + b"\x00\r\n\r\n" + B],
        ["malformed-header", TWO],
    )
    yield "malformed-and-silence", [b"no header", "silence", B], ["malformed-header", TWO]
    yield "malformed-and-silence-after-the-line", [b"no header\r\n", "silence", B], ["malformed-header", TWO]
    yield "two-malformed", [b"a\r\n\r\nb\r\n\r\n" + B], ["malformed-header", TWO]
    yield (
        "a-text-after-silence-is-a-loss-of-its-own",
        [b"a\r\n\r\n", "silence", EVIL + B],
        ["malformed-header", "missing-content-length", TWO],
    )
    yield "two-texts-behind-a-block", [b"a\r\n\r\n[1]\r\n[2]" + B], ["malformed-header", TWO]
    missing = "missing-content-length"
    yield "a-text-after-a-pause", [b"a\r\n\r\n", "pause", EVIL + B], ["malformed-header", TWO]
    yield "two-texts-after-a-pause", [b"a\r\n\r\n", "pause", EVIL * 2 + B], ["malformed-header", missing, TWO]
    yield "a-block-after-a-pause", [b"a\r\n\r\n", "pause", b"X: y\r\n\r\n" + B], ["malformed-header", missing, TWO]
    yield "half-a-block-and-silence", [b"a\r\n\r\n" + A[:9], "silence", B], ["malformed-header", TWO]
    yield "half-a-block-and-a-pause", [b"a\r\n\r\n" + A[:9], "pause", A[9:] + B], ["malformed-header", ONE, TWO]
    yield (
        "refusals-in-step",
        [oversize + block(b"Content-Type: x/y", b"Content-Length: 1") + b"1" + oversize + B],
        [*("oversize", "unsupported-content-type", "oversize", TWO)],
    )
    yield (
        "refusals-in-step-behind-junk",
        [b"a\r\n\r\n" + oversize + oversize + B],
        [*("malformed-header", "oversize", "oversize", TWO)],
    )


def unframed_texts() -> list[tuple[str, list[Any], list[bytes | str]]]:
    missing = "missing-content-length"
    return [
        ("object", [EVIL + B], [missing, TWO]),
        ("array-and-line-end", [b"[" + EVIL + b"]\r\n" + B], [missing, TWO]),
        ("three-texts", [(EVIL + b"\n") * 3 + B], [missing, TWO]),
        ("pretty-printed", [b'{\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n' + B], [missing, TWO]),
        ("brackets-in-strings", [b'{"}]":"\\"}"}' + B], [missing, TWO]),
        ("escaped-frame-in-a-string", [b'{"a":"Content-Length: 10\\r\\n\\r\\n{}"}' + B], [missing, TWO]),
        ("not-quite-json", [b"{not: 'json'}" + B], [missing, TWO]),
        ("silence-in-a-text", [b'{"a":[1', "silence", B], [missing, TWO]),
        ("raw-frame-in-a-string", [b'{"a":"' + EVIL_FRAME + b'"}' + EVIL_FRAME, "silence", B], [missing, TWO]),
        ("raw-frame-in-an-object", [b"{" + EVIL_FRAME + b"}" + EVIL_FRAME, "silence", B], [missing, TWO]),
        ("raw-frames-with-braces", [b"{" + f(b"}}" + EVIL_FRAME) + EVIL_FRAME, "silence", B], [missing, TWO]),
        ("raw-frame-in-a-text-after-a-block", [b"x\r\n\r\n{" + EVIL_FRAME + EVIL_FRAME, "silence", B], ["malformed-header", TWO]),
    ]  # fmt: skip


def ends() -> list[tuple[str, list[Any], list[bytes | str]]]:
    return [
        ("nothing", ["end"], []),
        ("end-after-a-frame", [A, "end", "end"], [ONE]),
        ("end-in-a-block", [A + B[:9], "end"], [ONE, "malformed-header"]),
        ("end-in-a-body", [A + B[:-1], "end"], [ONE, "length-mismatch"]),
        ("end-before-a-body", [block(b"Content-Length: 8"), "end"], ["length-mismatch"]),
        ("end-in-an-oversize-body", [f(BIG)[:99], "end"], ["oversize"]),
        ("end-in-a-malformed-block", [b"no header\r\n", "end"], ["malformed-header"]),
        ("end-after-a-malformed-block", [b"no header\r\n\r\n", "end"], ["malformed-header"]),
        ("end-in-an-unframed-text", [b'{"a"', "end"], ["missing-content-length"]),
        ("end-in-a-text-after-a-block", [b'x\r\n\r\n{"a"', "end"], ["malformed-header"]),
        ("end-in-doubt-after-a-cut-body", [f(CUT), "end"], [CUT, "invalid-json"]),
        ("end-in-doubt-after-a-bad-body", [f(BAD), "end"], [BAD, "invalid-json"]),
        ("end-in-a-block-in-doubt", [f(CUT) + A[:9], "end"], [CUT, "invalid-json"]),
        ("end-in-a-cut-text", [f(CUT) + TAIL[:-1], "end"], [CUT, "invalid-json"]),
        ("end-after-a-cut-text", [f(CUT) + TAIL, "end"], [CUT, "invalid-json"]),
        ("end-in-quarantine", [f(BAD) + b"junk", "end"], [BAD, "invalid-json"]),
    ]  # fmt: skip


# Rules 6 and 7: bodies that are no JSON, cut short, or too late.


def doubts() -> list[tuple[str, list[Any], list[bytes | str]]]:
    bad = "invalid-json"
    missing = "missing-content-length"
    nested = b'{"a":"' + EVIL_FRAME + b'"}'
    return [
        ("bad-body-then-a-frame", [f(BAD) + B], [BAD, bad, TWO]),
        ("bad-body-then-line-ends-and-a-frame", [f(BAD) + b"\r\n\n" + B], [BAD, bad, TWO]),
        ("bad-body-then-silence", [f(BAD), "silence", EVIL + B], [BAD, bad, "missing-content-length", TWO]),
        ("bad-body-then-a-text", [f(BAD) + EVIL + EVIL_FRAME, "silence", B], [BAD, bad, TWO]),
        ("bad-body-then-junk", [f(BAD) + b"junk\r\n\r\n" + EVIL_FRAME, "silence", B], [BAD, bad, TWO]),
        ("bad-body-then-no-length", [f(BAD) + b"X: 1\r\n\r\n" + A + B], [BAD, bad, missing, ONE, TWO]),
        ("bad-body-then-no-length-and-a-text", [f(BAD) + b"X: 1\r\n\r\n" + EVIL + B], [BAD, bad, missing, TWO]),
        ("cut-then-no-length", [f(b"{bad") + b"X: 1\r\n\r\n" + A + B], [b"{bad", bad, missing, ONE, TWO]),
        ("nothing-then-no-length", [f(b"") + b"X: 1\r\n\r\n" + A + B], [b"", bad, missing, ONE, TWO]),
        ("bad-body-then-no-length-twice", [f(BAD) + b"X: 1\r\n\r\n" * 2 + B], [BAD, bad, missing, TWO]),
        ("bad-body-then-a-huge-length", [f(BAD) + b"Content-Length: %d\r\n\r\n" % 10**30 + A + B],
            [BAD, bad, "oversize", ONE, TWO]),
        ("bad-body-then-an-oversize-frame", [f(BAD) + f(BIG) + B], [BAD, bad, "oversize", TWO]),
        ("bad-body-then-a-bad-type", [f(BAD) + b"Content-Type: a/b\r\nContent-Length: 8\r\n\r\n" + EVIL[:8] + B],
            [BAD, bad, "unsupported-content-type", TWO]),
        ("bad-body-then-half-a-block-and-silence", [f(BAD) + A[:9], "silence", B], [BAD, bad, TWO]),
        ("scalar-body-is-json", [f(b"12") + B], [b"12", TWO]),
        ("text-and-more-was-not-cut", [f(b"{}x") + B], [b"{}x", bad, TWO]),
        ("plain-text-was-not-cut", [f(b"hello") + EVIL + EVIL_FRAME, "silence", B], [b"hello", bad, TWO]),
        ("raw-line-end-in-a-string", [f(b'{"a":"\n"}') + B], [b'{"a":"\n"}', bad, TWO]),
        ("cut-but-the-length-was-right", [f(CUT) + B], [CUT, bad, TWO]),
        ("cut-then-line-ends-and-a-frame", [f(CUT) + b"\r\n" + B], [CUT, bad, TWO]),
        ("cut-then-the-rest-of-the-text", [f(CUT) + TAIL + B], [CUT, bad, TWO]),
        ("cut-then-the-rest-and-line-ends", [f(CUT) + TAIL + b"\r\n" + B], [CUT, bad, TWO]),
        ("cut-then-the-rest-and-a-text", [f(CUT) + TAIL + EVIL + EVIL_FRAME, "silence", B], [CUT, bad, TWO]),
        ("cut-then-silence", [f(CUT), "silence", B], [CUT, bad, TWO]),
        ("cut-then-silence-then-a-late-tail", [f(CUT), "silence", TAIL, "silence", B], [CUT, bad, "malformed-header", TWO]),
        ("cut-then-half-the-rest", [f(CUT) + b"thr", "silence", B], [CUT, bad, TWO]),
        ("cut-then-half-a-block", [f(CUT) + A[:20], "silence", B], [CUT, bad, TWO]),
        ("cut-then-line-ends-inside-its-string", [f(CUT) + b"\r\n" + TAIL + EVIL_FRAME, "silence", B], [CUT, bad, TWO]),
        ("cut-between-members", [f(b'{"a":1,') + b'\r\n"b":2}' + B], [b'{"a":1,', bad, TWO]),
        ("cut-text-that-looks-like-a-header", [f(b'{"a":"') + b'x: 1"}' + B], [b'{"a":"', bad, TWO]),
        ("cut-text-that-looks-like-a-block", [f(b'{"a":"') + b"X: 1\r\n\r\n" + EVIL_FRAME, "silence", B], [b'{"a":"', bad, TWO]),
        ("cut-text-longer-than-a-block", [f(CUT) + b"x" * 300 + b'"}' + B], [CUT, bad, TWO]),
        ("cut-at-an-escape", [f(b'["\\') + b'"]"]' + B], [b'["\\', bad, TWO]),
        ("cut-inside-a-character", [f(b'["\xc3') + b'\xa9"]' + B], [b'["\xc3', bad, TWO]),
        ("cut-before-it-began", [f(b"") + EVIL + B], [b"", bad, TWO]),
        ("cut-in-leading-white-space", [f(b" \r\n") + b" [1]" + B], [b" \r\n", bad, TWO]),
        ("nothing-then-a-frame", [f(b"") + B], [b"", bad, TWO]),
        ("nothing-then-junk", [f(b"") + b"junk" + EVIL_FRAME + B], [b"", bad, missing, TWO]),
        ("raw-frame-in-a-cut-body", [f(b'{"a":"x')[:-1] + nested[6:] + EVIL_FRAME, "silence", B], [b'{"a":"C', bad, TWO]),
        ("two-bad-bodies", [f(BAD) + f(BAD) + B], [BAD, bad, BAD, bad, TWO]),
        ("bad-body-in-a-frame-that-ended-a-doubt", [f(CUT) + f(CUT) + TAIL + B], [CUT, bad, CUT, bad, TWO]),
    ]  # fmt: skip


def time_outs() -> list[tuple[str, list[Any], list[bytes | str]]]:
    mismatch = "length-mismatch"
    begun = b"Content-Length: 60\r\n\r\n" + CUT
    whole = b"Content-Length: 60\r\n\r\n" + EVIL
    return [
        ("time-out-in-a-block", [A[:9], "time-out", "silence", B], ["malformed-header", TWO]),
        ("time-out-in-a-block-then-a-frame", [A[:9], "time-out", B], ["malformed-header", TWO]),
        ("time-out-in-a-block-then-its-tail", [A[:9], "time-out", "silence", A[9:] + EVIL_FRAME, "silence", B],
            ["malformed-header", "malformed-header", TWO]),
        ("time-out-in-a-cut-body-then-a-frame", [begun, "time-out", B], [mismatch, TWO]),
        ("time-out-in-a-cut-body-then-its-tail", [begun, "time-out", TAIL + B], [mismatch, TWO]),
        ("time-out-then-silence-then-a-frame", [begun, "time-out", "silence", B], [mismatch, TWO]),
        ("time-out-then-silence-twice-then-the-tail", [begun, "time-out", "silence", "silence", TAIL + B], [mismatch, TWO]),
        ("time-out-then-silence-then-line-ends-and-a-frame", [begun, "time-out", "silence", b"\r\n" + A + B],
            [mismatch, ONE, TWO]),
        ("time-out-then-a-tail-without-end", [begun, "time-out", "silence", b" and more", "silence", B],
            [mismatch, mismatch, TWO]),
        ("time-out-then-a-raw-tail", [begun, "time-out", "silence", b"x\r\n\r\n" + EVIL_FRAME, "silence", B],
            [mismatch, mismatch, TWO]),
        ("time-out-then-the-whole-tail-then-silence", [begun, "time-out", TAIL, "silence", EVIL + B],
            [mismatch, "missing-content-length", TWO]),
        ("time-out-then-silence-then-the-whole-tail-then-silence", [begun, "time-out", "silence", TAIL, "silence", EVIL + B],
            [mismatch, "missing-content-length", TWO]),
        ("time-out-then-frames-then-a-doubt-of-another-kind", [begun, "time-out", A + f(BAD), "silence", EVIL + B],
            [*(mismatch, ONE, BAD, "invalid-json"), *("missing-content-length", TWO)]),
        ("time-out-after-a-whole-text", [whole, "time-out", B], [mismatch, TWO]),
        ("time-out-after-a-whole-text-then-junk", [whole, "time-out", "silence", EVIL + EVIL_FRAME, "silence", B],
            [mismatch, mismatch, TWO]),
        ("time-out-before-the-body", [b"Content-Length: 60\r\n\r\n", "time-out", EVIL + B], [mismatch, TWO]),
        ("time-out-in-an-oversize-body", [f(BIG)[:99], "time-out", B], ["oversize", TWO]),
        ("time-out-in-an-oversize-body-then-its-tail", [f(BIG)[:99], "time-out", "silence", b"xx" + EVIL_FRAME, "silence", B],
            ["oversize", "oversize", TWO]),
        ("many-time-outs", [begun, "time-out", "silence"] * 3 + [B], [mismatch, mismatch, mismatch, TWO]),
        ("time-out-between-frames-is-none", [A, "time-out", B], [ONE, TWO]),
    ]  # fmt: skip


CASES = list(cases())


@pytest.mark.parametrize(("steps", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_stream_gives_these_frames_and_faults_in_any_chunks(
    every_chunking: Any, outline: Any, steps: Any, expected: Any
) -> None:
    assert outline(every_chunking(lambda: ContentLengthParser(LIMITS), steps)) == expected


TYPE = b"application/vscode-jsonrpc"
CONTENT_TYPES: dict[str | None, list[bytes]] = {
    None: [
        TYPE, TYPE.title(), TYPE + b"; charset=utf-8", TYPE + b"; charset=utf8", TYPE + b";CHARSET=UTF-8", TYPE + b";",
        TYPE + b' \t;\t charset="utf-8"', TYPE + b'; charset="UTF8"', TYPE + b'; note=";charset=latin1"; charset=utf-8',
        TYPE + b'; note="a\\";charset=latin1"', TYPE + b"; charset=utf-8; version=1", TYPE + b"; =utf-8",
    ],
    "bad-charset": [
        TYPE + b'; note=";charset=utf-8"; charset=latin1', TYPE + b"; charset=utf-16", TYPE + b"; charset=", TYPE + b"; charset",
        TYPE + b'; charset="', TYPE + b"; charset='utf-8'", TYPE + b"; charset=utf-8; charset=latin-1",
        TYPE + b"; foo=bar; charset=latin-1",
    ],
    "unsupported-content-type": [
        TYPE + b" charset=utf-8", TYPE + b"2", b"application/json; charset=utf-8", b"text/plain; charset=latin-1", b"charset=utf-8", b"",
    ],
}  # fmt: skip


@pytest.mark.parametrize("reason", CONTENT_TYPES)
def test_one_content_type_in_utf8_is_supported(drive: Any, outline: Any, reason: str | None) -> None:
    for value in CONTENT_TYPES[reason]:
        stream = block(b"Content-Type: " + value, b"Content-Length: 8") + ONE
        assert outline(drive(ContentLengthParser(LIMITS), [stream])) == [reason or ONE], value


def state_after(drive: Any, data: bytes) -> str:
    parser = ContentLengthParser(LIMITS)
    drive(parser, [data])
    return parser.state


@pytest.mark.parametrize(
    ("begun", "fault"),
    [
        (b"\r\n", b":"), (b"\r\n", b" "), (b"na", b" "), (b"name", b"\r"), (b"name: x", b"\x00"), (b"name: x", b"\n"),
        (b"name: x\r", b"X"), (b"name: x\r\n", b" "), (b"name: x\r\n\r", b"X"), (b"name: x\r\n", b"\n"),
    ],
)  # fmt: skip
def test_the_first_byte_that_no_block_holds_is_the_fault(drive: Any, begun: bytes, fault: bytes) -> None:
    assert state_after(drive, begun) == ("in-step" if begun == b"\r\n" else "in-block")
    assert state_after(drive, begun + fault) in ("dropping-block", "after-block")


def test_each_byte_is_judged_by_the_grammar_of_names_and_values(drive: Any) -> None:
    for octet in range(256):
        char = bytes([octet])
        in_name = char.isalnum() or char in {each.encode() for each in "!#$%&'*+-.^_`|~:"}
        in_value = octet in {0x09, 0x20} or 0x21 <= octet <= 0x7E or octet >= 0x80
        assert (state_after(drive, b"X" + char) == "in-block") == in_name, octet
        assert (state_after(drive, b"X: " + char) == "in-block") == (in_value or char == b"\r"), octet
