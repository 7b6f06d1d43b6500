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
from discreet.gateway.requests import in_task
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

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.written.append("closed")

    def abort(self) -> None:
        self.written.append("aborted")

    def is_closing(self) -> bool:
        return "closed" in self.written or "aborted" in self.written

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def written(app: App, *reads: bytes, turns: int = 10, transport: Recording | None = None) -> list[Any]:
    """What is written for what is read, in its pieces. `turns` are those of the loop that it may take."""
    transport = transport or Recording()

    async def run() -> list[Any]:
        server = HttpServer(app, Settings(), MemoryBudget(1 << 20), None)  # type: ignore[arg-type]
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


NONSENSE = b"nonsense\r\n\r\n"


def test_a_refusal_is_never_taken_for_the_answer_to_the_request_before_it() -> None:
    assert written(waiting_for_ever, GET % 1, b"GET /2 HTTP/2.0\r\nhost: localhost\r\n\r\n") == []
    assert written(waiting_for_ever, (GET % 1) + NONSENSE) == []
    assert b" 505 " in written(waiting_for_ever, b"GET / HTTP/2.0\r\nhost: localhost\r\n\r\n")[0]


@pytest.mark.parametrize("later", [b"", GET % 3, b"x" * 5000])
def test_what_came_before_nonsense_is_answered_and_says_that_the_connection_ends(later: bytes) -> None:
    found = written(answering(b"body", content_length="4"), (GET % 1) + (GET % 2) + NONSENSE + later)
    assert pieces(found) == [b"HEAD body", b"HEAD body", "closed"]
    assert [b"connection: close" in head for head in found[:2]] == [False, True]


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer when the whole body has come."""
    while (await receive()).get("more_body", False):
        pass
    await answering(b"body", content_length="4")(scope, receive, send)


def test_a_body_gives_no_leave_for_a_long_trailer() -> None:
    body = b"40000\r\n" + b"x" * 0x40000 + b"\r\n0\r\nx: "
    trailer = [b"a" * 4096] * 8
    found = written(waiting, POST + body, *trailer, turns=300)
    assert (b" 431 " in found[0], found[1:]) == (True, ["closed"])


FAULTY = {
    "a size that is none": b"x\r\n",
    "a signed size": b"+1\r\na\r\n",
    "an endless size": b"FFFFFFFFFFFFFFFFFF\r\n",
    "a chunk without its end": b"1\r\naXX0\r\n\r\n",
    "a bare line feed behind a size": b"1\na\r\n0\r\n\r\n",
    "a trailer without a colon": b"1\r\na\r\n0\r\nx\r\n\r\n",
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_fault_in_a_body_is_answered_where_nothing_else_would_be_taken_for_it(case: str) -> None:
    whole, (head, body) = POST + FAULTY[case], (POST, FAULTY[case])
    for reads in ([whole], [head, body], [whole[:-1], whole[-1:]], [head, b"1\r\na\r\n", body]):
        found = written(waiting, *reads)
        assert (found[0].split()[1], found[1:]) == (b"400", ["closed"])
    found = written(waiting, (GET % 1) + whole)
    assert pieces(found) == [b"HEAD body", "closed"]
    assert b" 200 " in found[0]


def test_a_fault_in_a_body_costs_an_answer_that_has_begun_its_connection() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["body"] == b"a"
        assert (await receive())["type"] == "http.disconnect"

    assert pieces(written(app, POST + b"1\r\na\r\n", b"x\r\n")) == [b"HEAD ", "aborted"]


def test_a_fault_in_a_body_whose_request_was_answered_gets_no_answer_of_its_own() -> None:
    assert pieces(written(answering(b"no", content_length="2"), POST, b"x\r\n")) == [b"HEAD no", "closed"]


def test_whole_requests_are_answered_although_the_one_behind_them_never_comes_whole() -> None:
    async def run() -> list[Any]:
        ended = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await in_task()
            await ended.wait()
            await waiting(scope, receive, send)

        server, transport = HttpServer(app, Settings(), MemoryBudget(1 << 20), None), Recording()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            asyncio.get_running_loop().call_soon(protocol.data_received, (GET % 1) + POST + b"5\r\na")
            await asyncio.sleep(0)
            assert protocol.eof_received() is True
            ended.set()
            await until(lambda: "closed" in transport.written)
            protocol.connection_lost(None)
        return transport.written

    assert pieces(asyncio.run(run())) == [b"HEAD body", "closed"]


CODINGS = {
    b"chunked": True, b"\tchunked\t": True, b" \t CHUNKED \t ": True, b"chunked ": True, b"chunked\t, chunked": False, b"chunked, chunked": False,
    b"xchunked\t": False, b"chunked,\t": False, b"\tchunked;q=1\t": False, b"gzip, chunked\t": False, b"chunked\t\r\n\t": False,
    b"chunked\t\r\n x": False, b"chunked\t\r\ntransfer-encoding: chunked\t": False, b"chunked\t\r\ncontent-length: 1": False, b"\t": False,
    b"chunked\x0b": False, b"identity\t": False,
}  # fmt: skip


@pytest.mark.parametrize("coding", CODINGS)
def test_blanks_around_a_coding_are_no_part_of_it_and_no_other_coding_is_taken(coding: bytes) -> None:
    request = b"POST /1 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding:%b\r\n\r\n1\r\na\r\n0\r\n\r\n" % coding
    packet = request + (GET % 2)
    for reads in ([packet], [packet[:at] for at in (60, 70)], [packet[at : at + 1] for at in range(len(packet))]):
        if len(reads) == 2:
            reads = [packet[:60], packet[60:70], packet[70:]]
        found = written(echo, *reads, turns=20)
        if CODINGS[coding]:
            assert pieces(found) == [b"HEAD /1 a", b"HEAD /2 "]
        else:
            assert (found[0].split()[1] in (b"400", b"501"), found[1:]) == (True, ["closed"])


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the path and the body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await answering(b"%b %b" % (scope["path"].encode(), body), content_length=str(len(scope["path"]) + 1 + len(body)))(
        scope, receive, send
    )


TARGETS = {
    b"http://b/1?x=1": ("/1", b"/1", b"x=1", b"b"),
    b"HTTP://B.example:80/%2f": ("//", b"/%2f", b"", b"B.example:80"),
    b"http://b": ("/", b"/", b"", b"b"),
    b"http://[::1]:80?x": ("/", b"/", b"x", b"[::1]:80"),
    b"//b/1": ("//b/1", b"//b/1", b"", b"a"),
    b"/http://b/1": ("/http://b/1", b"/http://b/1", b"", b"a"),
    b"/%00/../x": ("/\0/../x", b"/%00/../x", b"", b"a"),
    b"https://b/1": 421,
    b"ftp://b/1": 400,
    b"http:///1": 400,
    b"http://:80/1": 400,
    b"http://u@b/1": 400,
    b"http://u:p@b/1": 400,
    b"b:80": 400,
    b"*": 400,
    b"*x": 400,
    b"/a#b": 400,
    b"http://b/a#b": 400,
}


@pytest.mark.parametrize("target", TARGETS)
def test_an_absolute_target_is_a_path_whose_authority_takes_the_place_of_the_host(target: bytes) -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await answering(b"body", content_length="4")(scope, receive, send)

    expected = TARGETS[target]
    found = written(app, b"GET %b HTTP/1.1\r\nx: y\r\nhost: a\r\n\r\n" % target)
    if isinstance(expected, int):
        assert (found[0].split()[1], found[1:], scopes) == (b"%d" % expected, ["closed"], [])
        return
    [scope] = scopes
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    assert (scope["path"], scope["raw_path"], scope["query_string"], *hosts) == expected
    assert (b"x", b"y") in scope["headers"]
    if target.startswith(b"http://b/"):
        scopes.clear()
        assert b" 400 " in written(app, b"GET %b HTTP/1.1\r\n\r\n" % target)[0]  # a client of HTTP/1.1 names the host
        assert b" 200 " in written(app, b"GET %b HTTP/1.0\r\n\r\n" % target)[0]
        assert (b"host", b"b") in scopes[0]["headers"]


def test_the_server_itself_is_asked_by_an_asterisk() -> None:
    for target in (b"*", b"http://localhost", b"/*"):
        [found] = written(echo, b"OPTIONS %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % target)
        assert found.endswith(b"\r\n\r\n" + (b"/* " if target == b"/*" else b"* "))


def test_blanks_behind_the_value_of_a_header_are_no_part_of_it() -> None:
    told: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        told.extend(scope["headers"])
        await answering(b"")(scope, receive, send)

    written(app, b"GET / HTTP/1.1\r\nhost:\tlocalhost \t\r\nx: a\tb\t\r\ny: \r\n\r\n")
    assert told == [(b"host", b"localhost"), (b"x", b"a\tb"), (b"y", b"")]


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


@pytest.mark.parametrize("closing", [True, False])
def test_a_client_that_takes_its_answer_slowly_is_not_cut_before_it_stops(closing: bool) -> None:
    left = [30, 20, 10, 10, 0]

    class Slow(Recording):
        def get_write_buffer_size(self) -> int:
            return left.pop(0)

    async def run() -> list[Any]:
        server, transport = (
            HttpServer(answering(b"body"), Settings(frame_timeout=0.01), MemoryBudget(1 << 20), None),
            Slow(),
        )  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            protocol.data_received(NONSENSE if closing else GET % 1)
            if not closing:
                protocol.pause_writing()
            await until(lambda: "aborted" in transport.written)
            protocol.connection_lost(None)
        return transport.written

    assert asyncio.run(run())[-1] == "aborted"
    assert left == [0]  # 30, twice less, and as much again


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


class HalfClosing(Recording):
    """A transport whose client may be told that nothing more comes. Without one it is `gone`."""

    def __init__(self, *, gone: bool = False) -> None:
        super().__init__()
        self._gone = gone

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._gone:
            raise OSError
        self.written.append("ended")


@pytest.mark.parametrize(
    "reads",
    [(NONSENSE,), (POST + b"x\r\n",), (POST,), (b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" + b"x" * 5000,)],
    ids=["head", "body", "unread body", "data behind the end"],
)  # fmt: skip
def test_a_client_that_may_still_send_is_told_that_nothing_comes_before_its_connection_closes(
    reads: tuple[bytes],
) -> None:
    app = answering(b"no", content_length="2", connection="close")
    found = written(app, *reads, b"x" * 100_000, NONSENSE, transport=HalfClosing())
    assert pieces(found[:1])[0] in (b"HEAD ", b"HEAD no")
    assert found[1:] == ["ended"]
    assert pieces(written(app, *reads, transport=HalfClosing(gone=True)))[1:] == ["aborted"]


def test_a_client_that_never_stops_sending_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[Any]:
        server, transport = HttpServer(answering(b"body"), Settings(), MemoryBudget(1 << 20), None), HalfClosing()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            protocol = HttpProtocol(server, counted=False)
            protocol.connection_made(transport)
            protocol.data_received(NONSENSE)
            await until(lambda: "closed" in transport.written)
            protocol.connection_lost(None)
        return transport.written

    monkeypatch.setattr("discreet.gateway.server.protocol.LINGER_SECONDS", 0.01)
    assert asyncio.run(run())[1:] == ["ended", "closed"]
