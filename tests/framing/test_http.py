"""The parser of event streams: each case whole, byte by byte and at random splits."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.framing.http import MAX_ID_LENGTH, SseEvent, SseParser, TooLarge

LIMIT = 1000

READ_BYTES = 64 * 1024
"""What the HTTP library reads at once."""

CASES: list[tuple[bytes, list[SseEvent]]] = [
    (b"data: a\n\n", [SseEvent(b"a")]),
    (b"data:a\r\rdata: b\r\n\r\n", [SseEvent(b"a"), SseEvent(b"b")]),
    (b"data: a\ndata: b\ndata\n\n", [SseEvent(b"a\nb\n")]),
    (
        b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        [SseEvent(b"a", "7", has_own_id=True), SseEvent(b"b", "7"), SseEvent(b"c", "", has_own_id=True)],
    ),
    (b"id: 7\n\ndata: a\n\n", [SseEvent(b"a", "7")]),
    (b"id: 1\0\ndata: a\n\n", [SseEvent(b"a")]),
    (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
    (b": comment\n\nevent: x\nunknown: y\ndata:  a\n\n", [SseEvent(b" a", type="x")]),
    (b"event: x\nretry: 50\ndata: a\n\ndata: b\n\n", [SseEvent(b"a", type="x", retry_ms=50), SseEvent(b"b")]),
    (b"event: x\nretry: 5\n\ndata: a\n\n", [SseEvent(b"a")]),
    (b"data: a\n\ndata: unfinished\n", [SseEvent(b"a")]),
    (b"\n\n\r\n", []),
]


def parsed(pieces: list[bytes]) -> list[SseEvent]:
    parser = SseParser(limit=LIMIT)
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(("text", "events"), CASES)
def test_a_stream_is_parsed_whole_and_byte_by_byte(text: bytes, events: list[SseEvent]) -> None:
    assert parsed([text]) == events
    assert parsed([bytes([byte]) for byte in text]) == events


@given(st.lists(st.sampled_from([b"data", b"id", b":", b" ", b"a", b"\r", b"\n", b"\r\n", b"\n\n"])), st.data())
def test_splits_change_nothing(words: list[bytes], data: st.DataObject) -> None:
    text = b"".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed(pieces) == parsed([text])


def test_a_line_end_after_a_line_that_began_in_the_piece_before_counts() -> None:
    assert parsed([b"data\r:", b"\n\n"]) == parsed([b"data\r:\n\n"]) == [SseEvent(b"")]


@given(st.binary(max_size=300))
def test_any_bytes_are_events_or_nothing(text: bytes) -> None:
    assert parsed([text]) == parsed([bytes([byte]) for byte in text])


@pytest.mark.parametrize("text", [b"x" * (LIMIT + 1), b"data: aaaa\n" * 100, b":" + b"x" * LIMIT])
def test_what_is_too_large_is_refused_whole_and_in_pieces(text: bytes) -> None:
    for pieces in ([text], [bytes([byte]) for byte in text]):
        with pytest.raises(TooLarge):
            parsed(pieces)


def test_comments_without_end_are_not_kept() -> None:
    parser = SseParser(limit=LIMIT)
    assert [event for _ in range(LIMIT) for event in parser.feed(b": keep-alive\n\n")] == []


@pytest.mark.parametrize(("value", "seconds"), [(b"1500", 1.5), (b"soon", None), (b"9" * 20, None), (b"-1", None)])
def test_the_server_says_how_long_to_wait(value: bytes, seconds: float | None) -> None:
    parser = SseParser(limit=LIMIT)
    parser.feed(b"retry: %b\n\n" % value)
    assert parser.retry_seconds == seconds


def test_an_id_that_is_too_long_is_none() -> None:
    parser = SseParser(limit=10 * MAX_ID_LENGTH)
    assert parser.feed(b"id: %b\ndata: a\n\n" % (b"1" * (MAX_ID_LENGTH + 1))) == [SseEvent(b"a")]


@pytest.mark.parametrize(
    "line", [b"data: " + b"x" * 2**20, b"data: ab\n" * 2**17, b"data\n" * 2**17], ids=["1", "many", "bare"]
)
def test_an_event_takes_at_most_three_times_its_bytes(line: bytes) -> None:
    wire = line + b"\n\n"
    pieces = [wire[start : start + READ_BYTES] for start in range(0, len(wire), READ_BYTES)]
    parser = SseParser(limit=len(wire))
    tracemalloc.start()
    try:
        events = [event for piece in pieces for event in parser.feed(piece)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(events) == 1
    assert peak < 3 * len(wire)
