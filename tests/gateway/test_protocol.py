"""The server's own HTTP/1.1, around any ASGI app: what is written in which pieces, and what a request costs that need not wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("httptools")

from discreet.daemon.memory import MemoryBudget
from discreet.daemon.settings import Settings
from discreet.gateway.asgi import Receive, Scope, Send
from discreet.gateway.server.protocol import MAX_JOINED, PIPELINED_BYTES, HttpProtocol, HttpServer
from support.logged_events import logged_events
from support.waits import until

GET = b"GET /%d HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = b"x" * (MAX_JOINED + 1)

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Recording(asyncio.Transport):
    """A transport whose writes stay as they are."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written: list[Any] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append("closed")

    def abort(self) -> None:
        self.written.append("aborted")

    def is_closing(self) -> bool:
        return "closed" in self.written or "aborted" in self.written

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def written(app: App, *reads: bytes, turns: int = 10) -> list[Any]:
    """What is written for what is read, in its pieces. `turns` are those of the loop that it may take."""

    async def run() -> list[Any]:
        server, transport = HttpServer(app, Settings(), MemoryBudget(1 << 20), None), Recording()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            for read in reads:
                asyncio.get_running_loop().call_soon(
                    protocol.data_received, read
                )  # as transports do: outside of all tasks
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            found = [*transport.written]
            protocol.connection_lost(None)
        return found

    return asyncio.run(run())


def answering(*bodies: bytes, status: int = 200, **headers: str) -> App:
    """An app that sends these, one by one."""
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": told})
        for left, body in zip(reversed(range(len(bodies))), bodies, strict=True):
            await send({"type": "http.response.body", "body": body, "more_body": left > 0})

    return app


def pieces(found: list[Any]) -> list[Any]:
    """The same, with HEAD for each head."""
    return [
        re.sub(rb"(?s)HTTP/1\.1 .*?\r\n\r\n", b"HEAD ", each) if isinstance(each, bytes) else each for each in found
    ]


@pytest.mark.parametrize(
    ("app", "request_line", "expected"),
    [
        (answering(b"body", content_length="4"), b"GET / HTTP/1.1", [b"HEAD body"]),
        (answering(LARGE, content_length=str(len(LARGE))), b"GET / HTTP/1.1", [b"HEAD ", LARGE]),
        (answering(b"one", b"two", content_length="6"), b"GET / HTTP/1.1", [b"HEAD one", b"two"]),
        (answering(b"", status=204), b"GET / HTTP/1.1", [b"HEAD "]),
        (answering(b"body", content_length="4"), b"HEAD / HTTP/1.1", [b"HEAD "]),
        (answering(b"one", b"two"), b"GET / HTTP/1.1", [b"HEAD ", b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"]),
        (answering(b"one", b""), b"GET / HTTP/1.1", [b"HEAD ", b"3\r\none\r\n", b"0\r\n\r\n"]),
        (answering(b"one", b"two"), b"HEAD / HTTP/1.1", [b"HEAD "]),
        (answering(b"one", b"two"), b"GET / HTTP/1.0", [b"HEAD ", b"one", b"two", "closed"]),
        (answering(b"body", content_length="4"), b"GET / HTTP/1.0", [b"HEAD body", "closed"]),
        (answering(b"body", content_length="4", connection="close"), b"GET / HTTP/1.1", [b"HEAD body", "closed"]),
    ],
)
def test_a_head_leaves_with_its_body_unless_what_follows_may_take_its_time(
    app: App, request_line: bytes, expected: list[Any]
) -> None:
    assert pieces(written(app, request_line + b"\r\nhost: localhost\r\n\r\n")) == expected


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_head_says_when_it_was_sent_and_whether_the_connection_ends(version: str) -> None:
    request = f"GET / HTTP/{version}\r\nhost: localhost\r\n\r\n".encode()
    head = written(answering(b"body", content_length="4"), request)[0].decode().lower()
    assert re.search(r"\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d gmt\r\n", head)
    assert ("\r\nconnection: close\r\n" in head) is (version == "1.0")


def test_no_header_of_an_answer_ends_its_line() -> None:
    assert written(answering(b"", etag="a\r\nset-cookie: b"), GET % 1) == ["aborted"]


async def _failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ZeroDivisionError


async def _silent(scope: Scope, receive: Receive, send: Send) -> None: ...


@pytest.mark.parametrize("app", [_failing, _silent])
def test_an_app_that_does_not_answer_costs_its_client_the_connection(app: App) -> None:
    with logged_events("error") as logged:
        assert written(app, GET % 1) == ["aborted"]
        assert logged.names() == (["daemon.fault"] if app is _failing else [])


def test_a_request_that_need_not_wait_runs_in_no_task_and_takes_no_turn_of_the_loop() -> None:
    tasks: list[object] = []
    answer = answering(b"body", content_length="4")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"{}"
        tasks.append(asyncio.current_task())
        await answer(scope, receive, send)

    post = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
    assert pieces(written(app, post, turns=0)) == [b"HEAD body"]
    assert tasks == [None]


def test_a_request_that_waits_goes_on_in_a_task() -> None:
    tasks: list[Any] = []
    answer = answering(b"body", content_length="4")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert [(await receive())["body"], (await receive())["body"]] == [b"{", b"}"]
        tasks.append(asyncio.current_task())
        await answer(scope, receive, send)

    post = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{"
    assert pieces(written(app, post, b"}")) == [b"HEAD body"]
    assert isinstance(tasks[0], asyncio.Task)


def test_requests_of_one_packet_are_answered_in_order_one_in_each_turn_of_the_loop() -> None:
    paths: list[str] = []
    answer = answering(b"body", content_length="4")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await answer(scope, receive, send)

    packet = b"".join(GET % number for number in range(3))
    assert pieces(written(app, packet, turns=0)) == [b"HEAD body"]
    assert paths == ["/0"]
    paths.clear()
    assert pieces(written(app, packet)) == [b"HEAD body"] * 3
    assert paths == ["/0", "/1", "/2"]


def test_a_refusal_is_never_taken_for_the_answer_to_the_request_before_it() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await receive()  # until the client has gone

    assert written(app, GET % 1, b"GET /2 HTTP/2.0\r\nhost: localhost\r\n\r\n") == []
    assert written(app, (GET % 1) + b"nonsense\r\n\r\n") == ["aborted"]
    assert b" 505 " in written(app, b"GET / HTTP/2.0\r\nhost: localhost\r\n\r\n")[0]


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer when the whole body has come."""
    while (await receive()).get("more_body", False):
        pass
    await answering(b"body", content_length="4")(scope, receive, send)


def test_a_body_gives_no_leave_for_a_long_trailer() -> None:
    body = b"40000\r\n" + b"x" * 0x40000 + b"\r\n0\r\nx: "
    trailer = [b"a" * 4096] * 8
    assert written(waiting, POST + body, *trailer, turns=300)[-1] == "aborted"


def test_chunks_of_a_byte_are_no_long_head() -> None:
    chunks = [b"1\r\na\r\n" * 500] * 20
    assert pieces(written(waiting, POST, *chunks, b"0\r\n\r\n", turns=300)) == [b"HEAD body"]


def test_a_trailer_may_end_the_connection() -> None:
    found = written(waiting, POST + b"1\r\na\r\n0\r\nconnection: close\r\n\r\n", GET % 1)
    assert pieces(found) == [b"HEAD body", "closed"]


def test_a_client_of_http_1_0_is_sent_no_100() -> None:
    head = b"POST / HTTP/1.0\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"
    assert pieces(written(waiting, head, b"a")) == [b"HEAD body", "closed"]


def test_an_answer_before_100_continue_ends_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"
    assert pieces(written(answering(b"no", content_length="2"), head)) == [b"HEAD no", "closed"]


def test_a_connection_that_is_closed_is_cut_when_its_client_takes_nothing() -> None:
    async def run() -> list[Any]:
        settings = Settings(frame_timeout=0.01)
        server, transport = HttpServer(answering(b"body"), settings, MemoryBudget(1 << 20), None), Recording()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            protocol.data_received(b"GARBAGE\r\n\r\n")
            await until(lambda: "aborted" in transport.written)
            protocol.connection_lost(None)
        return transport.written

    assert asyncio.run(run())[1:] == ["closed", "aborted"]


def test_requests_that_come_in_one_piece_count_while_they_wait() -> None:
    async def run() -> tuple[int, int]:
        memory = MemoryBudget(1 << 20)
        server, transport = HttpServer(waiting_for_ever, Settings(), memory, None), Recording()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            asyncio.get_running_loop().call_soon(protocol.data_received, b"".join(GET % number for number in range(50)))
            await asyncio.sleep(0)
            counted = memory.held("requests")
            protocol.connection_lost(None)
        return counted, memory.held("requests")

    counted, left = asyncio.run(run())
    assert (counted >= 49 * PIPELINED_BYTES, left) == (True, 0)


async def waiting_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
