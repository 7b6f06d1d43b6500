"""What the channel adds to parser and transport: clocks, the folding of faults, and the outgoing buffer."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import anyio
import anyio.lowlevel
import pytest

from discreet.errors import InvalidRequest, ParseFailure
from discreet.framing.channel import HIGH_WATER_BYTES, Channel
from discreet.framing.encoder import encode_frame
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Fault, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.interface import PeerGone
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.timing import Clock
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

GOOD = encode_frame(b"{}", "content-length")


def channel(
    frame_timeout: float = 30.0, capacity: int = 1 << 16, clock: Callable[[], float] = monotonic
) -> tuple[Channel, MemoryTransport, list[int]]:
    ours, theirs = memory_pair(capacity)
    timeouts: list[int] = []
    parser = parser_for("content-length", FrameLimits())
    wire = Channel(ours, parser, frame_timeout=frame_timeout, on_timeout=timeouts.append, clock=clock)
    return wire, theirs, timeouts


async def events(wire: Channel, count: int) -> list[object]:
    """The next frames and faults, however long they take within reason."""
    found: list[object] = []
    with anyio.fail_after(DEADLINE_SECONDS):
        while len(found) < count:
            event = wire.next_event()
            if event is not NEED_DATA:
                found.append(event)
            else:
                await wire.receive_more()
    return found


async def test_frames_come_through_and_then_the_end() -> None:
    wire, peer, _ = channel()
    await peer.send(GOOD * 2)
    peer.send_eof()
    first, second, end = await events(wire, 3)
    assert (first, second, end) == (Frame(b"{}"), Frame(b"{}"), END_OF_INPUT)


async def test_faults_that_follow_each_other_are_one_loss_told_before_the_next_frame() -> None:
    wire, peer, _ = channel()
    await peer.send(b"garbage\r\n\r\n" * 1000 + GOOD)
    fault, frame = await events(wire, 2)
    assert isinstance(fault, Fault)
    assert fault.failure == InvalidRequest("malformed-header")
    assert frame == Frame(b"{}")
    assert wire.next_event() is NEED_DATA


async def test_a_loss_is_told_when_nothing_follows_it() -> None:
    wire, peer, _ = channel()
    await peer.send(b"Content-Length: x\r\n\r\n")
    (fault,) = await events(wire, 1)
    assert isinstance(fault, Fault)
    assert fault.failure == InvalidRequest("invalid-content-length")


async def test_whoever_waits_for_the_error_before_sending_again_gets_one_each_time() -> None:
    wire, peer, _ = channel()
    for _ in range(3):
        await peer.send(b'{"jsonrpc":"2.0"}\n')
        (fault,) = await events(wire, 1)
        assert isinstance(fault, Fault)


async def test_junk_without_an_end_is_told_after_a_rest_and_the_next_frame_is_read() -> None:
    wire, peer, _ = channel()
    await peer.send(b"\x00junk")
    (fault,) = await events(wire, 1)
    assert isinstance(fault, Fault)
    await peer.send(GOOD)
    assert await events(wire, 1) == [Frame(b"{}")]


async def test_a_frame_that_takes_too_long_is_dropped_and_told() -> None:
    wire, peer, timeouts = channel(frame_timeout=0.05)
    await peer.send(b"Content-Length: 10\r\n\r\n{")
    (fault,) = await events(wire, 1)
    assert isinstance(fault, Fault)
    assert fault.failure == ParseFailure("length-mismatch")
    assert len(timeouts) == 1


async def take_in(wire: Channel) -> None:
    """Takes in what has been sent, finds no frame in it, and goes on waiting for a moment, which starts the frame's clock."""
    assert wire.next_event() is NEED_DATA
    while wire.receive_more_nowait():
        assert wire.next_event() is NEED_DATA
    with anyio.move_on_after(0.01):
        await wire.receive_more()


async def test_a_frame_is_timed_from_its_first_byte_not_from_that_of_an_earlier_one() -> None:
    clock = Clock()
    wire, peer, timeouts = channel(frame_timeout=30, clock=clock)
    for _ in range(4):
        await peer.send(GOOD[:-1])
        await take_in(wire)
        clock.now += 20
        await take_in(wire)
        await peer.send(GOOD[-1:])
        assert await events(wire, 1) == [Frame(b"{}")]
    assert timeouts == []


async def test_reading_that_paused_for_longer_than_the_deadline_takes_what_came_meanwhile() -> None:
    clock = Clock()
    wire, peer, timeouts = channel(frame_timeout=30, clock=clock)
    await peer.send(GOOD[:10])
    await take_in(wire)
    await peer.send(GOOD[10:])
    clock.now += 60
    assert await events(wire, 1) == [Frame(b"{}")]
    assert timeouts == []


ENDLESS = {
    "frames": (b"", GOOD),
    "a body": (b"Content-Length: 99999999\r\n\r\n", b"x" * 1000),
    "a header": (b"", b"x" * 1000),
    "blocks that are refused": (b"", b"garbage\r\n\r\n" * 50),
    "lengths that differ": (b"", b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
    "text without a frame": (b"{bad\n", b"[" * 1000),
}


@pytest.mark.parametrize(("before", "chunk"), ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_peer_that_writes_without_end_leaves_the_loop_to_others(before: bytes, chunk: bytes) -> None:
    class Endless(MemoryTransport):
        def receive_nowait(self) -> bytes:
            return next(incoming, chunk)

        async def receive(self) -> bytes:
            await anyio.lowlevel.checkpoint()
            return self.receive_nowait()

    incoming = iter([before] if before else [])
    transport = Endless.__new__(Endless)
    wire = Channel(
        transport, parser_for("content-length", FrameLimits()), frame_timeout=30.0, on_timeout=lambda _: None
    )
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        for _ in range(200):
            await wire.receive_more()
            while wire.next_event() is not NEED_DATA:
                pass
        tasks.cancel_scope.cancel()
    assert turns >= 100


async def test_replies_go_out_in_order_in_as_few_writes_as_the_reader_allows() -> None:
    wire, peer, _ = channel(capacity=100)
    bodies = [b'{"n":%d}' % n for n in range(50)]
    for body in bodies:
        wire.post(body)
    received = b""
    while not wire.flush():
        received += peer.receive_nowait() or b""
    received += peer.receive_nowait() or b""
    assert received == b"".join(encode_frame(body, "content-length") for body in bodies)
    assert wire.unsent == 0


async def test_much_that_waits_is_congestion_until_it_is_read() -> None:
    wire, peer, _ = channel()
    wire.post(b"x" * HIGH_WATER_BYTES)
    assert wire.congested
    while not wire.flush():
        assert peer.receive_nowait()
    assert not wire.congested


async def test_a_reader_that_has_gone_is_told_once_and_everything_later_is_dropped() -> None:
    wire, peer, _ = channel()
    peer.close()
    wire.post(b"{}")
    with pytest.raises(PeerGone):
        wire.flush()
    wire.post(b"{}")
    assert wire.broken
    assert wire.unsent == 0
    assert wire.flush()
