"""Upstreams that misbehave: each is a typed failure and one line of the log, in bounded memory, and leaves no connection behind."""

from __future__ import annotations

import gzip
import socket
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest
from anyio.abc import ByteStream
from hypothesis import given
from hypothesis import strategies as st

from discreet.client.outbound.connection import HttpConnection, OutboundError, Response
from discreet.client.outbound.network import Destination
from discreet.client.outbound.pool import ConnectionPool, PoolTimeouts
from discreet.errors import Failure, FailureError, Internal, Unavailable
from discreet.imports.http.model import Body, Reply
from discreet.imports.http.upstream import HttpLimits
from discreet.imports.model import UpstreamError
from support.backends import both_loops
from support.logged_events import LoggedEvents
from support.raw_upstream import Conversation, called, context, opened, operation, response, serving

pytestmark = pytest.mark.anyio

MAX_RESPONSE_BYTES = HttpLimits().response_bytes
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MIB = 1024 * 1024

Handle = Callable[[Conversation], Awaitable[None]]


def sends(data: bytes) -> Handle:
    """Answers with this, and closes."""

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(data)

    return handle


def repeats(head: bytes, piece: bytes) -> Handle:
    """Answers with this, and then with this for ever."""

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(head)
        while True:
            await conversation.send(piece)

    return handle


def resets(data: bytes) -> Handle:
    """Sends this and resets the connection."""

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        if data:
            await conversation.send(data)
        await conversation.reset()

    return handle


async def hangs_up(conversation: Conversation) -> None:
    """Closes before it has read anything."""


BOMB = gzip.compress(bytes(64 * MIB))

CASES: dict[str, tuple[Handle, Failure, str]] = {
    "closed at once": (hangs_up, Unavailable(upstream=True), "lost"),
    "no answer": (sends(b""), Unavailable(upstream=True), "lost"),
    "half a head": (sends(HEAD), Unavailable(upstream=True), "lost"),
    "reset instead of a head": (resets(b""), Unavailable(upstream=True), "lost"),
    "reset in the head": (resets(HEAD), Unavailable(upstream=True), "lost"),
    "reset in the body": (resets(HEAD + b"Content-Length: 10\r\n\r\n12"), Unavailable(upstream=True), "lost"),
    "shorter than announced": (sends(HEAD + b"Content-Length: 10\r\n\r\n12"), Unavailable(upstream=True), "lost"),
    "chunks that do not end": (sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n"), Unavailable(upstream=True), "lost"),
    "bad chunks": (sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), Internal(), "protocol"),
    "two lengths": (sends(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n12"), Internal(), "protocol"),
    "a negative length": (sends(HEAD + b"Content-Length: -1\r\n\r\n12"), Internal(), "protocol"),
    "no http": (sends(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Internal(), "protocol"),
    "http 2": (sends(b"\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x80\0\4\0\1\0\0\0\5\0\xff\xff\xff\r\n\r\n"), Internal(), "protocol"),
    "a head without end": (repeats(b"HTTP/1.1 200 OK\r\n", b"X-Flood: " + b"x" * 1000 + b"\r\n"), Internal(), "protocol"),
    "a header without end": (repeats(b"HTTP/1.1 200 OK\r\nX-Flood: ", b"x" * 1000), Internal(), "protocol"),
    "trailers without end": (repeats(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n", b"X-Flood: " + b"x" * 1000 + b"\r\n"), Internal(), "protocol"),
    "informational responses without end": (repeats(b"", b"HTTP/1.1 102 Processing\r\n\r\n"), Internal(), "protocol"),
    "another protocol": (sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), Internal(), "protocol"),
    "larger than the limit, announced": (sends(HEAD + b"Content-Length: %d\r\n\r\n" % (MAX_RESPONSE_BYTES + 1)), Internal(), "too-large"),
    "a length of many digits": (sends(HEAD + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n"), Internal(), "too-large"),
    "larger than the limit, chunked": (repeats(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 0x10000 + b"\r\n"), Internal(), "too-large"),
    "larger than the limit, until the end": (repeats(HEAD + b"Connection: close\r\n\r\n", b" " * 65536), Internal(), "too-large"),
    "a gzip bomb": (sends(response(BOMB, "Content-Encoding: gzip")), Internal(), "too-large"),
    "many gzip bombs": (repeats(HEAD + b"Content-Encoding: gzip\r\n\r\n", BOMB), Internal(), "too-large"),
    "half a gzip": (sends(response(gzip.compress(b"[1]")[:-4], "Content-Encoding: gzip")), Internal(), "encoding"),
    "no gzip": (sends(response(b"[1]", "Content-Encoding: gzip")), Internal(), "encoding"),
    "a compression that nobody asked for": (sends(response(b"[1]", "Content-Encoding: br")), Internal(), "encoding"),
    "two compressions": (sends(response(b"[1]", "Content-Encoding: gzip, gzip")), Internal(), "encoding"),
}  # fmt: skip


@pytest.mark.parametrize(("handle", "failure", "reason"), CASES.values(), ids=CASES)
async def test_a_misbehaving_upstream_is_a_typed_failure(
    handle: Handle, failure: Failure, reason: str, logged: LoggedEvents
) -> None:
    async with serving(handle) as server:
        with pytest.raises(FailureError) as caught:
            await called(server.url)
        await server.deserted()
    assert caught.value.failure == failure
    assert [(event, fields["reason"]) for event, fields in logged()] == [("import.failed", reason)]


@pytest.mark.parametrize(
    "name", ["a gzip bomb", "many gzip bombs", "larger than the limit, chunked", "a head without end"]
)
async def test_memory_is_bounded_whatever_is_sent(name: str) -> None:
    async with serving(CASES[name][0]) as server:
        with pytest.raises(FailureError):  # all is loaded before it is measured
            await called(server.url)
        tracemalloc.start()
        try:
            with pytest.raises(FailureError):
                await called(server.url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 3 * MAX_RESPONSE_BYTES


@both_loops
@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200", HEAD + b"Content-Length: 10\r\n\r\n12"])
async def test_a_cancelled_call_closes_its_connection(begin: bytes) -> None:
    """A slow head or body lasts until the deadline of the call, which arrives as cancellation."""
    reached = anyio.Event()

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(begin)
        reached.set()
        await conversation.deserted()

    described = operation()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upstream.call, described, {}, context())
            await reached.wait()
            tasks.cancel_scope.cancel()
        await server.deserted()


async def test_what_comes_behind_a_response_is_never_the_answer_to_the_next_request() -> None:
    """The length is too small: the rest would be read as the next response."""
    calls = 0

    async def handle(conversation: Conversation) -> None:
        nonlocal calls
        await conversation.request()
        calls += 1
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        await conversation.send(early + response(str(calls).encode()) + response(b'"smuggled"'))
        await conversation.deserted()

    described = operation()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        results = [bytes(await upstream.call(described, {}, context())) for _ in range(3)]
        assert (results, server.connections) == ([b"1", b"2", b"3"], 3)


async def test_what_comes_between_two_requests_is_never_an_answer() -> None:
    sent = anyio.Event()
    proceed = anyio.Event()

    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(response(b"1"))
        if not sent.is_set():
            await proceed.wait()
            await conversation.send(response(b'"smuggled"'))
            sent.set()
        await conversation.deserted()

    described = operation()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        await upstream.call(described, {}, context())
        proceed.set()
        await sent.wait()
        assert bytes(await upstream.call(described, {}, context())) == b"1"
        assert server.connections == 2


async def test_a_connection_that_is_closed_under_the_request_is_lost_and_the_request_is_not_repeated(
    logged: LoggedEvents,
) -> None:
    requests = 0

    async def handle(conversation: Conversation) -> None:
        nonlocal requests
        while True:
            await conversation.request()
            requests += 1
            if requests == 2:
                return
            await conversation.send(response(b"1"))

    described = operation()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        await upstream.call(described, {}, context())
        with pytest.raises(FailureError) as caught:
            await upstream.call(described, {}, context())
        assert (caught.value.failure, requests, server.connections) == (Unavailable(upstream=True), 2, 1)
        assert bytes(await upstream.call(described, {}, context())) == b"1"
    assert [fields["reason"] for _, fields in logged()] == ["lost"]


async def test_an_answer_before_the_whole_request_was_read_counts() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.send(response(b"{}", "Connection: close", status=413))
        await conversation.deserted()

    replies = (Reply("413", {"application/json": "json"}, "HTTP_413"),)
    described = operation("POST", body=Body("text/plain", "text"), replies=replies)
    async with serving(handle) as server:
        with pytest.raises(UpstreamError) as caught:
            await called(server.url, described, {"body": "x" * MIB})
        assert caught.value.code == "HTTP_413"


async def test_calls_beyond_the_connections_are_overloaded_after_a_while() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.deserted()

    async with serving(handle) as server:
        pool = ConnectionPool(allow_private=True, timeouts=PoolTimeouts(free=0.0), max_connections=1)
        to = Destination("http", "127.0.0.1", server.port, "")
        async with pool.connection(to):
            with pytest.raises(OutboundError) as caught:
                async with pool.connection(to):
                    pass
        assert caught.value.reason == "connections"
        async with pool.connection(to):
            pass
        await server.deserted()


async def test_a_connection_that_is_never_made_has_its_own_reason() -> None:
    class Nowhere:
        async def resolve(self, host: str, port: int) -> list[str]:
            return await anyio.sleep_forever()  # type: ignore[return-value]

        async def connect(self, address: str, port: int) -> Any:
            await anyio.sleep_forever()

        def ssl_context(self) -> Any:
            raise NotImplementedError

    pool = ConnectionPool(allow_private=True, network=Nowhere(), timeouts=PoolTimeouts(connect=0.0))
    for host in ("127.0.0.1", "shop.example"):
        with pytest.raises(OutboundError) as caught:
            async with pool.connection(Destination("http", host, 80, "")):
                pass
        assert caught.value.reason == "connect-timeout"


async def test_a_cancelled_handshake_leaves_no_connection_open() -> None:
    greeted = anyio.Event()

    async def handle(conversation: Conversation) -> None:
        await conversation.stream.receive()
        greeted.set()
        await conversation.deserted()

    described = operation()
    async with (
        serving(handle) as server,
        opened(described, url=server.url.replace("http:", "https:")) as upstream,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(upstream.call, described, {}, context())
        await greeted.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await server.deserted()


# -- any bytes at all are a response or a typed fault, however they are divided --

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
