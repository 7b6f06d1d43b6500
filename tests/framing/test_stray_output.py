"""The reader of stray output passes on whole texts, in bounded memory, and never blocks a writer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.framing.stdio_guard import (
    CUT_NOTE,
    IDLE_SECONDS,
    MAX_HELD_TEXTS,
    MAX_HOLD_SECONDS,
    MAX_TEXT_BYTES,
    PipeReader,
    StrayOutputReader,
    StreamName,
    TextBuffer,
)
from discreet.framing.transports.stdio import PollingPipeReader
from discreet.framing.transports.threaded import ThreadedPipeReader
from support.waits import DEADLINE_SECONDS


class Stray:
    """A reader over two pipes, and the texts that it passed on."""

    def __init__(self, pipe_reader: Callable[[int, int], PipeReader]) -> None:
        self.stray_out, self.out = os.pipe()
        self.stray_err, self.err = os.pipe()
        self.texts: list[tuple[StreamName, str]] = []
        self._heard = threading.Condition()
        self.reader = StrayOutputReader(self.stray_out, self.stray_err, pipe_reader=pipe_reader)
        self.reader.start()

    def listen(self) -> None:
        self.reader.deliver_to(self._hear)

    def _hear(self, stream: StreamName, text: str) -> None:
        with self._heard:
            self.texts.append((stream, text))
            self._heard.notify_all()

    def wait_for(self, count: int) -> list[tuple[StreamName, str]]:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.texts) >= count, DEADLINE_SECONDS)
            return self.texts

    def end(self) -> None:
        os.close(self.out)
        os.close(self.err)
        assert self.reader.stop(DEADLINE_SECONDS)
        os.close(self.stray_out)
        os.close(self.stray_err)


@pytest.fixture(params=[PollingPipeReader, ThreadedPipeReader])
def stray(request: pytest.FixtureRequest) -> Iterator[Stray]:
    made = Stray(request.param)
    yield made
    made.end()


@pytest.fixture
def polled_stray() -> Iterator[Stray]:
    """With polling, `drain` is exact; with threads it depends on time."""
    made = Stray(PollingPipeReader)
    yield made
    made.end()


def test_silence_ends_a_text_with_and_without_a_line_end(stray: Stray) -> None:
    stray.listen()
    os.write(stray.out, b"one\ntwo\n")
    assert stray.wait_for(1) == [("stdout", "one\ntwo")]
    os.write(stray.err, b"three")
    assert stray.wait_for(2)[1:] == [("stderr", "three")]


def test_one_closed_pipe_does_not_end_the_other(stray: Stray) -> None:
    stray.listen()
    os.write(stray.out, b"last words")
    os.close(stray.out)
    stray.out = os.dup(stray.err)  # for `end`
    assert stray.wait_for(1) == [("stdout", "last words")]
    os.write(stray.err, b"still here")
    assert stray.wait_for(2)[1:] == [("stderr", "still here")]


def test_drain_passes_on_what_is_there_and_waits_for_no_writer(polled_stray: Stray) -> None:
    polled_stray.listen()
    os.write(polled_stray.out, b"a\n")
    os.write(polled_stray.err, b"b")
    assert polled_stray.reader.drain(DEADLINE_SECONDS)  # the writing ends are still open
    assert sorted(polled_stray.texts) == [("stderr", "b"), ("stdout", "a")]
    os.write(polled_stray.out, b"later")
    assert polled_stray.reader.drain(DEADLINE_SECONDS)
    assert polled_stray.texts[2:] == [("stdout", "later")]


def test_texts_before_the_listener_are_kept_up_to_a_bound_and_the_rest_counted(polled_stray: Stray) -> None:
    for number in range(MAX_HELD_TEXTS + 3):
        os.write(polled_stray.err, b"%d\n" % number)
        assert polled_stray.reader.drain(DEADLINE_SECONDS)
    polled_stray.listen()
    assert polled_stray.texts[:MAX_HELD_TEXTS] == [("stderr", str(number)) for number in range(MAX_HELD_TEXTS)]
    (stream, note), *more = polled_stray.texts[MAX_HELD_TEXTS:]
    assert (stream, more) == ("stderr", [])
    assert note.startswith("[3 ")


# -- texts ----------------------------------------------------------------------------------------------------------


def test_a_text_is_due_when_its_stream_is_idle_and_at_least_once_a_second() -> None:
    buffer = TextBuffer("stdout")
    assert buffer.due is None
    now = 100.0
    while now < 100 + MAX_HOLD_SECONDS:  # it is never idle
        assert buffer.feed(b"tick\n...", now) == []
        assert buffer.due_texts(now) == []
        assert buffer.due is not None
        assert now < buffer.due <= 100 + MAX_HOLD_SECONDS
        now += IDLE_SECONDS / 2
    (aged,) = buffer.due_texts(100 + MAX_HOLD_SECONDS)
    assert aged.endswith("...tick")
    assert buffer.due == now - IDLE_SECONDS / 2 + IDLE_SECONDS
    assert buffer.due_texts(buffer.due) == ["..."]
    assert buffer.due is None


def texts_of(*chunks: bytes) -> list[str]:
    buffer = TextBuffer()
    texts = [text for chunk in chunks for text in buffer.feed(chunk, 0)]
    return texts + buffer.take_all()


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (b"", []),
        (b"\n\r\n\n", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\r\ntwo\rthree\n", ["one\ntwo\nthree"]),
        (b"  indented\n\n  apart\n", ["  indented\n\n  apart"]),
        (b"\xff\xc3\xa9", ["\\xffé"]),
        (b"x" * MAX_TEXT_BYTES, ["x" * MAX_TEXT_BYTES]),
        (b"x" * (MAX_TEXT_BYTES + 1), ["x" * MAX_TEXT_BYTES + CUT_NOTE]),
        (b"x" * (MAX_TEXT_BYTES * 5) + b"\nnext", ["x" * MAX_TEXT_BYTES + CUT_NOTE, "next"]),
        (b"short\n" + b"x" * MAX_TEXT_BYTES, ["short", "x" * MAX_TEXT_BYTES]),
        (b"\n" * MAX_TEXT_BYTES + b"late", ["late"]),
    ],
)
def test_texts_of_bytes(written: bytes, texts: list[str]) -> None:
    assert texts_of(written) == texts
    assert texts_of(*(written[at : at + 1000] for at in range(0, len(written), 1000))) == texts


def test_lines_that_come_one_by_one_stay_together() -> None:
    assert texts_of(b"Traceback:\n", b"  line 1\n", b"Error\n") == ["Traceback:\n  line 1\nError"]


def test_whole_lines_can_be_taken_without_the_one_that_is_being_written() -> None:
    buffer = TextBuffer()
    buffer.feed(b"50%\r75%\r100", 0)
    assert buffer.take_lines() == ["50%\n75%"]
    assert buffer.take_lines() == []
    buffer.feed(b"%\n", 0)
    assert buffer.take_all() == ["100%"]
    assert buffer.due is None


lines = st.lists(st.text("ab é", max_size=40).map(str.encode) | st.just(b"z" * (MAX_TEXT_BYTES - 1)), max_size=30)


@given(lines, st.sampled_from([b"\n", b"\r", b"\r\n"]), st.lists(st.integers(1, 20_000)))
def test_no_split_of_the_bytes_loses_a_line_or_grows_a_text(written: list[bytes], end: bytes, sizes: list[int]) -> None:
    data = b"".join(line + end for line in written)
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    texts = texts_of(*chunks, data)
    assert [line for text in texts for line in text.split("\n") if line] == [line.decode() for line in written if line]
    assert all(len(text.encode()) <= MAX_TEXT_BYTES for text in texts)


@given(st.lists(st.binary(max_size=3) | st.just(b"q" * 5000)))
def test_any_bytes_at_all_give_texts(chunks: list[bytes]) -> None:
    buffer = TextBuffer()
    for chunk in chunks:
        for text in buffer.feed(chunk, 0):
            assert text.strip("\n") == text != ""
    assert len(buffer.take_all()) <= 1
    assert buffer.due is None
