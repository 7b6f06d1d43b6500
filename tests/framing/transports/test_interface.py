"""One contract, every byte transport: the pair in memory, and descriptors in each of the ways they are read and written."""

from __future__ import annotations

import os
import pty
import socket
import tty
from collections.abc import Callable, Iterator

import anyio
import pytest

from discreet.framing.transports.interface import ByteTransport, PeerGone
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from discreet.framing.transports.stdio import StdioTransport, open_reader, open_writer, pipe_writer
from discreet.framing.transports.threaded import threaded_reader, threaded_writer
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

Pair = tuple[ByteTransport, ByteTransport]

LARGE = bytes(range(256)) * 4096 * 3
"""3 MiB: more than any pipe, socket or terminal holds."""


def pipes(*, blocking: bool = True, **ways: Callable[[int], object]) -> Pair:
    (left_in, right_out), (right_in, left_out) = os.pipe(), os.pipe()
    for fd in (left_in, right_out, right_in, left_out):
        os.set_blocking(fd, blocking)
    return StdioTransport(left_in, left_out, **ways), StdioTransport(right_in, right_out, **ways)  # type: ignore[arg-type]


def sockets() -> Pair:
    """As a node parent gives them: one socket is stdin and stdout both."""
    left, right = socket.socketpair()
    fd, other = left.detach(), right.detach()
    return StdioTransport(fd, fd), StdioTransport(other, os.dup(other))


def terminal() -> Pair:
    controlling, controlled = pty.openpty()
    tty.setraw(controlled)
    return (
        StdioTransport(controlling, os.dup(controlling)),
        StdioTransport(controlled, os.dup(controlled)),
    )


MAKERS: dict[str, Callable[[], Pair]] = {
    "memory": lambda: memory_pair(4096),
    "pipe": lambda: pipes(reader=open_reader, writer=open_writer),
    "pipe-in-pieces": lambda: pipes(reader=open_reader, writer=pipe_writer),
    "pumped": lambda: pipes(reader=threaded_reader, writer=threaded_writer),
    "pumped-non-blocking": lambda: pipes(blocking=False, reader=threaded_reader, writer=threaded_writer),
    "socketpair": sockets,
    "terminal": terminal,
}

ENDING = sorted(set(MAKERS) - {"terminal"})
"""A terminal has no end of its own: what closing one side means to the other is tested with the real thing."""


@pytest.fixture(params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = MAKERS[request.param]()
    yield made
    for end in made:
        end.close()


@pytest.fixture(params=ENDING)
def ending_pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = MAKERS[request.param]()
    yield made
    for end in made:
        end.close()


async def receive_exactly(end: ByteTransport, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        chunk = await end.receive()
        assert chunk, "the input ended early"
        got += chunk
    return bytes(got)


async def receive_to_the_end(end: ByteTransport) -> bytes:
    got = bytearray()
    while chunk := await end.receive():
        got += chunk
    return bytes(got)


async def test_bytes_arrive_whole_and_in_order_through_small_buffers(pair: Pair) -> None:
    left, right = pair
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.send, LARGE)
            assert await receive_exactly(right, len(LARGE)) == LARGE


async def test_both_directions_carry_a_load_at_once(pair: Pair) -> None:
    left, right = pair
    received: dict[str, bytes] = {}

    async def receive(name: str, end: ByteTransport) -> None:
        received[name] = await receive_exactly(end, len(LARGE))

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.send, LARGE)
            tasks.start_soon(right.send, LARGE[::-1])
            tasks.start_soon(receive, "left", left)
            tasks.start_soon(receive, "right", right)
    assert received == {"right": LARGE, "left": LARGE[::-1]}


async def test_receive_waits_until_something_comes(pair: Pair) -> None:
    left, right = pair
    order: list[str] = []

    async def receive() -> None:
        order.append("waits")
        assert await right.receive() == b"hello"
        order.append("received")

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            order.append("sends")
            await left.send(b"hello")
    assert order == ["waits", "sends", "received"]


async def test_a_reader_that_stops_reading_stops_the_sender(pair: Pair) -> None:
    left, right = pair
    taken = 0
    while step := left.send_nowait(LARGE[taken:]):
        taken += step
        assert taken < len(LARGE)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.send, LARGE[taken:])
            assert await receive_exactly(right, len(LARGE)) == LARGE


async def test_wait_sendable_returns_when_something_would_be_taken(pair: Pair) -> None:
    left, right = pair
    sent = 0
    while step := left.send_nowait(LARGE):
        sent += step
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive_exactly, right, sent + 1)
            await left.wait_sendable()
            while not left.send_nowait(b"!"):  # another writer's turn may come between; then it waits again
                await left.wait_sendable()


async def test_cancelling_receive_loses_nothing(pair: Pair) -> None:
    left, right = pair
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(right.receive)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        await left.send(b"still here")
        assert await receive_exactly(right, 10) == b"still here"


async def test_receive_and_send_let_other_tasks_run_though_they_need_not_wait(pair: Pair) -> None:
    left, right = pair
    rounds, turns = 20, 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            for _ in range(rounds):
                await left.send(b"a")
            sending = turns
            for _ in range(rounds):
                await right.receive()
                await left.send(b"a")
            tasks.cancel_scope.cancel()
    assert sending >= rounds // 2
    assert turns - sending >= rounds


@pytest.mark.parametrize("view", [bytes, bytearray, memoryview])
async def test_send_takes_any_bytes_and_leaves_them_alone(pair: Pair, view: Callable[[bytes], bytes]) -> None:
    left, right = pair
    data = view(b"payload")
    with anyio.fail_after(DEADLINE_SECONDS):
        await left.send(data)
        assert await receive_exactly(right, 7) == b"payload"
    assert data == b"payload"


async def test_sending_nothing_sends_nothing(pair: Pair) -> None:
    left, right = pair
    with anyio.fail_after(DEADLINE_SECONDS):
        await left.send(b"")
    assert left.send_nowait(b"") == 0
    assert right.receive_nowait() is None


async def test_what_was_sent_arrives_before_the_end(ending_pair: Pair) -> None:
    left, right = ending_pair
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def send_and_close() -> None:
                await left.send(LARGE)
                left.close()

            tasks.start_soon(send_and_close)
            assert await receive_to_the_end(right) == LARGE
        assert await right.receive() == b""
        assert right.receive_nowait() == b""


async def test_after_send_eof_the_other_direction_goes_on(ending_pair: Pair) -> None:
    left, right = ending_pair
    with anyio.fail_after(DEADLINE_SECONDS):
        await left.send(b"question")
        left.send_eof()
        left.send_eof()
        assert await receive_to_the_end(right) == b"question"
        await right.send(b"answer")
        assert await receive_exactly(left, 6) == b"answer"
    with pytest.raises(PeerGone):
        left.send_nowait(b"more")


async def test_a_gone_reader_is_peer_gone_for_good(ending_pair: Pair) -> None:
    left, right = ending_pair
    right.close()
    with anyio.fail_after(DEADLINE_SECONDS):
        with pytest.raises(PeerGone):
            while True:
                await left.send(LARGE)
        await left.wait_sendable()
    with pytest.raises(PeerGone):
        left.send_nowait(b"x")


async def test_a_reader_that_goes_away_wakes_a_waiting_sender(ending_pair: Pair) -> None:
    left, right = ending_pair
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                with pytest.raises(PeerGone):
                    await left.send(LARGE * 4)

            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            right.close()


async def test_closing_wakes_whoever_waits_on_this_end(pair: Pair) -> None:
    left, _ = pair
    ends: list[str] = []

    async def receive() -> None:
        assert await left.receive() == b""
        ends.append("receive")

    async def send() -> None:
        with pytest.raises(PeerGone):
            await left.send(LARGE * 4)
        ends.append("send")

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            left.close()
    assert sorted(ends) == ["receive", "send"]


async def test_a_closed_end_stays_closed(pair: Pair) -> None:
    left, _ = pair
    left.close()
    left.close()
    assert left.receive_nowait() == b""
    assert await left.receive() == b""
    await left.wait_sendable()
    with pytest.raises(PeerGone):
        left.send_nowait(b"x")


async def test_the_pair_in_memory_holds_no_more_than_its_capacity() -> None:
    left, right = memory_pair(10)
    assert isinstance(left, MemoryTransport)
    assert left.send_nowait(b"0123456789ab") == 10
    assert left.send_nowait(b"ab") == 0
    assert right.receive_nowait() == b"0123456789"
    assert left.send_nowait(b"ab") == 2
