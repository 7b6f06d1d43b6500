"""The leftover of one parser brings another one into its state, wherever the stream is cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors.failures import ParseFailure
from discreet.framing.channel import Channel
from discreet.framing.events import NEED_DATA, Fault, Frame, FrameLimits, Framing
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair
from support.frames import f

LIMITS = FrameLimits(max_body=120, max_header=80)


STREAMS: list[tuple[Framing, bytes]] = [
    ("content-length", f(b'{"id":1}') + b"\r\n" + f(b"") + b"X: y\r\n" + f(b'{"id":2}')),
    ("content-length", f(b"{]") + f(b'{"id":1}') + f(b"y" * 130) + f(b'{"id":2}') + f(b'{"a":"x') + f(b'{"id":3}')),
    ("content-length", b'{"un":"framed"}' + f(b'{"id":1}') + b"Content-Length: x\r\n\r\n" + f(b'{"id":2}')),
    ("newline", b'{"id":1}\r\n \n{"id":2}\n' + b"y" * 130 + b'\n{]\n{"id":3}\n'),
]


@settings(max_examples=200)
@given(stream=st.sampled_from(STREAMS), at=st.integers(0, 400), before=st.integers(1, 60), auto=st.booleans())
def test_a_stream_goes_on_in_a_second_parser(
    drive: Any, outline: Any, stream: tuple[Framing, bytes], at: int, before: int, auto: bool
) -> None:
    framing, data = stream
    head, tail = data[:at], data[at:]
    whole = outline(drive(parser_for(framing, LIMITS), [*([head] if head else []), *([tail] if tail else []), "end"]))
    first = parser_for("auto" if auto and not data.startswith(b'{"un') else framing, LIMITS)
    events = drive(first, [head[i : i + before] for i in range(0, len(head), before)])
    left = first.leftover()
    assert left == first.leftover()
    if left is None:
        return
    second = parser_for(first.framing or framing, LIMITS)
    rest = left + tail
    assert outline([*events, *drive(second, [*([rest] if rest else []), "end"])]) == whole


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_nothing_is_left_over_of_what_is_wrong_or_at_its_end(drive: Any, framing: Framing) -> None:
    for steps in ([b"y" * 300], ["end"]):
        parser = parser_for(framing, LIMITS)
        drive(parser, steps)
        assert parser.leftover() is None


def test_a_body_under_way_is_left_over_with_a_block_of_its_own() -> None:
    parser = parser_for("content-length", LIMITS)
    parser.receive_data(b'Content-Type: application/vscode-jsonrpc\r\nContent-Length: 8\r\n\r\n{"i')
    assert parser.next_event() is NEED_DATA
    assert parser.leftover() == b'Content-Length: 8\r\n\r\n{"i'


def test_a_channel_goes_on_with_what_another_one_received_and_had_not_sent() -> None:
    ours, theirs = memory_pair(capacity=100)
    first = Channel(ours, parser_for("content-length", LIMITS))
    first.post(b"1" * 90)
    first.post(b"2" * 50)
    assert not first.flush()
    theirs.send_nowait(f(b'{"id":1}') + f(b'{"id":2}')[:25])
    assert first.receive_more_nowait()
    left = first.leftover()
    assert left is not None
    second = Channel(ours, parser_for("content-length", LIMITS), received=left, waiting=first.unsent_bytes())
    theirs.send_nowait(f(b'{"id":2}')[25:])
    assert second.next_event() == Frame(b'{"id":1}')
    assert second.receive_more_nowait()
    assert second.next_event() == Frame(b'{"id":2}')
    sent = theirs.receive_nowait() or b""
    while not second.flush() or len(sent) < len(f(b"1" * 90) + f(b"2" * 50)):
        sent += theirs.receive_nowait() or b""
    assert sent == f(b"1" * 90) + f(b"2" * 50)


def test_a_channel_leaves_nothing_over_while_a_loss_waits_to_be_told() -> None:
    ours, theirs = memory_pair()
    channel = Channel(ours, parser_for("content-length", LIMITS))
    theirs.send_nowait(f(b"{]") + f(b'{"id":1}'))
    assert channel.receive_more_nowait()
    assert isinstance(channel.next_event(), Frame)
    channel.refuse_body(ParseFailure("invalid-json"))
    assert channel.leftover() is None
    assert isinstance(channel.next_event(), Fault)
    assert channel.next_event() == Frame(b'{"id":1}')
    assert channel.leftover() == b""
