"""Measures the parser: small frames, large bodies, dropped input. Run: python bench/parser.py

Every figure is the best of several runs over chunks of 64 KiB, the size of a read from a pipe.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable

from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame, Framing
from discreet.framing.parser import FramingChoice, Parser, parser_for

CHUNK = 64 * 1024
SMALL_FRAMES = 400
LARGE = 10 * 1024 * 1024
RUNS = 7


def chunks_of(stream: bytes) -> list[bytes]:
    return [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]


def drain(parser: Parser, chunks: Iterable[bytes]) -> int:
    """Feed all chunks to the parser; returns the number of frames."""
    frames = 0
    next_event = parser.next_event
    for chunk in chunks:
        parser.receive_data(chunk)
        while (event := next_event()) is not NEED_DATA:
            frames += type(event) is Frame
    return frames


def best_seconds(work: Callable[[], int], frames: int) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        got = work()
        best = min(best, time.perf_counter() - start)
        if got != frames:
            raise SystemExit(f"expected {frames} frames, got {got}")
    return best


def small_frames(framing: FramingChoice) -> float:
    """Nanoseconds per frame."""
    kind: Framing = "newline" if framing == "newline" else "content-length"
    body = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"%b"}}' % (b"x" * 75)
    chunk = encode_frame(body, kind) * SMALL_FRAMES
    parser = parser_for(framing)
    return best_seconds(lambda: drain(parser, [chunk]), SMALL_FRAMES) / SMALL_FRAMES * 1e9


def rate(stream: bytes, frames: int) -> float:
    """Megabytes per second."""
    chunks = chunks_of(stream)
    return len(stream) / best_seconds(lambda: drain(parser_for("content-length"), chunks), frames) / 1e6


def dense_json(size: int) -> bytes:
    row = {"id": 12345, "name": "a name", "tags": [1, 2, {"key": 'a "quoted" value'}], "ok": True}
    text = json.dumps(row, separators=(",", ":"))
    return ("[" + ",".join([text] * (size // (len(text) + 1))) + "]").encode()


def main() -> None:
    out = sys.stdout.write
    choices: tuple[FramingChoice, ...] = ("content-length", "newline", "auto")
    for framing in choices:
        out(f"{'small frames, ' + framing:34}{small_frames(framing):8.0f} ns/frame\n")
    junk = b"\xff" + b"junk that is no header \r\n" * (LARGE // 25)
    blocks = b"garbage\r\n\r\n" * 100_000
    for name, stream, frames in (
        ("body of 10 MiB", encode_frame(b"x" * LARGE, "content-length"), 1),
        ("oversize body, discarded", encode_frame(b"x" * (LARGE * 4), "content-length"), 0),
        ("junk without a blank line, dropped", junk, 0),
        ("junk of 11-byte blocks, dropped", blocks, 0),
        ("unframed dense JSON, skipped", dense_json(LARGE), 0),
        ("unframed long strings, skipped", json.dumps(["text\n" * 200] * 10_000).encode(), 0),
    ):
        out(f"{name:34}{rate(stream, frames):8.0f} MB/s\n")


if __name__ == "__main__":
    main()
