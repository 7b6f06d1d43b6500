"""Frames that parsers are tried with: whole ones, one too large, and one that is cut."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from discreet.framing.encoder import encode_frame
from discreet.framing.events import FrameLimits

LIMITS = FrameLimits(max_body=200, max_header=128)


def f(body: bytes) -> bytes:
    return encode_frame(body, "content-length")


ONE = b'{"id":1}'
TWO = b'{"id":2}'
EVIL = b'{"id":666}'
A, B, EVIL_FRAME = f(ONE), f(TWO), f(EVIL)
BIG = b'{"text":"' + b"x" * 200 + b'"}'
CUT = b'{"text":"one two'
TAIL = b' three"}'
BAD = b'{"id":}'


def chunks(data: bytes, split: int | Random) -> Iterator[bytes]:
    """The data in chunks of this many bytes, or of random sizes."""
    while data:
        size = split if isinstance(split, int) else split.randint(1, 40)
        yield data[:size]
        data = data[size:]


WHOLE = 1 << 20
"""A size of chunks that cuts nothing."""
