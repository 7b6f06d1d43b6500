"""Any bytes at all are a response or a typed fault, however they are divided."""

from __future__ import annotations

import gzip
import socket
from collections import deque
from typing import Any, cast

import anyio
from anyio.abc import ByteStream
from hypothesis import given
from hypothesis import strategies as st

from discreet.client.outbound.connection import HttpConnection, OutboundError, Response

LIMIT = 1000

WORDS = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.0 204 No\r\n", b"HTTP/1.1 302 Found\r\n", b"HTTP/1.1 999 X\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Content-Length: x\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Content-Encoding: gzip\r\n", b"Content-Type: application/json\r\n", b": a\r\n", b"a: b\r\n c\r\n",
    b"\r\n", b"\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffffffffffffff\r\n", b"hello", b"\0", b"\xff", gzip.compress(b"hello"),
]  # fmt: skip


class Scripted:
    """The pieces, then the end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = deque(piece for piece in pieces if piece)

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.popleft()

    def extra(self, attribute: Any) -> socket.socket:
        closed = socket.socket()
        closed.close()
        return closed


async def outcome(pieces: list[bytes]) -> tuple[int, bytes] | str:
    connection = HttpConnection(cast(ByteStream, Scripted(pieces)))
    try:
        await connection.send("GET", "/", [("host", "h")], b"")
        head = await connection.read_head()
        body = await Response(head, connection).read_all(LIMIT, lambda _: None)
    except OutboundError as exc:
        return exc.reason
    assert not connection.is_reusable()  # its socket is closed
    return head.status, body


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=8), max_size=12), st.data())
def test_any_bytes_are_a_response_or_a_fault_however_they_are_divided(words: list[bytes], data: st.DataObject) -> None:
    text = b"".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    outcomes = [anyio.run(outcome, each) for each in ([text], pieces)]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], str) or len(outcomes[0][1]) <= LIMIT
