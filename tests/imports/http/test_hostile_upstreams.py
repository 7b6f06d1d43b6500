"""Upstreams that misbehave: each is a typed failure and one line of the log, in bounded memory, and leaves no connection behind."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from discreet.errors import Failure, FailureError, Internal, Unavailable
from discreet.imports.http.model import Reply
from discreet.imports.http.upstream import HttpLimits
from support.logged_events import LoggedEvents
from support.raw_upstream import Conversation, called, context, opened, operation, response, serving
from support.waits import until

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


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 200", HEAD + b"Content-Length: 10\r\n\r\n", HEAD + b"Content-Length: 10\r\n\r\n12"]
)
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


async def test_informational_responses_are_skipped() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    async with serving(sends(early + response(b"1"))) as server:
        assert bytes(await called(server.url)) == b"1"


async def test_what_comes_behind_a_response_is_never_the_answer_to_the_next_request() -> None:
    """The length is too small: the rest would be read as the next response."""
    calls = 0

    async def handle(conversation: Conversation) -> None:
        nonlocal calls
        await conversation.request()
        calls += 1
        await conversation.send(response(str(calls).encode()) + response(b'"smuggled"'))
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


async def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(response(b"1"))

    described = operation()
    async with serving(handle) as server, opened(described, url=server.url) as upstream:
        for number in (1, 2):
            assert bytes(await upstream.call(described, {}, context())) == b"1"
            await server.deserted() if number == 2 else await until(lambda: not server.open)


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
    from discreet.imports.http.model import Body
    from discreet.imports.model import UpstreamError

    async def handle(conversation: Conversation) -> None:
        await conversation.send(response(b"{}", "Connection: close", status=413))
        await conversation.deserted()

    replies = (Reply("413", {"application/json": "json"}, "HTTP_413"),)
    described = operation("POST", body=Body("text/plain", "text"), replies=replies)
    async with serving(handle) as server:
        with pytest.raises(UpstreamError) as caught:
            await called(server.url, described, {"body": "x" * MIB})
        assert caught.value.code == "HTTP_413"


async def test_connections_are_reused_and_closed_at_the_end() -> None:
    described = operation()

    async def handle(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            await conversation.send(response(b"1"))

    async with serving(handle) as server:
        async with opened(described, url=server.url) as upstream:
            for _ in range(5):
                await upstream.call(described, {}, context())
            assert server.connections == 1
        await server.deserted()


async def test_calls_beyond_the_connections_are_overloaded_after_a_while(logged: LoggedEvents) -> None:
    from discreet.client.outbound.connection import OutboundError
    from discreet.client.outbound.network import Destination
    from discreet.client.outbound.pool import ConnectionPool, PoolTimeouts

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
    from discreet.client.outbound.connection import OutboundError
    from discreet.client.outbound.network import Destination
    from discreet.client.outbound.pool import ConnectionPool, PoolTimeouts

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
