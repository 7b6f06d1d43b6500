"""What no client should send, on real sockets, to a daemon with small limits: refused, and nothing hangs or crashes."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httptools")

from support.http_process import Client, HttpDaemon, http_daemon, message, post, rpc, sent
from support.waits import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signals")

LIMITS = {
    "--frame-timeout": "0.6", "--max-header-bytes": "4096", "--max-message-bytes": "65536", "--http-max-connections": "64",
    "--log-level": "debug",
}  # fmt: skip
FLAGS = ("--http", "127.0.0.1:0", "--no-stdio", "--isolated", *(word for flag in LIMITS.items() for word in flag))
FAULTS = re.compile(r"Traceback|level=error|daemon\.failed|Task exception|never retrieved|Unclosed")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDaemon]:
    """One daemon for all tests."""
    with http_daemon(tmp_path_factory.mktemp("hostile"), *FLAGS) as daemon:
        yield daemon.listening()
        assert daemon.end() == 0
        assert [line for line in daemon.lines if FAULTS.search(line)] == []


@pytest.fixture
def daemon(shared: HttpDaemon) -> Iterator[HttpDaemon]:
    """The daemon, which still serves afterwards."""
    yield shared
    assert shared.call("still here").status == 200


HELLO = sent("hello")
POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\na2a-version: 1.0\r\n"
LENGTH = b"content-length: %d\r\n" % len(HELLO)
CHUNKED = b"transfer-encoding: chunked\r\n"
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HELLO), HELLO)
CARD = b"GET /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
WHOLE = POST + LENGTH + b"\r\n" + HELLO

REFUSED = {
    "two lengths": POST + LENGTH + b"content-length: 3\r\n\r\n" + HELLO,
    "a length and chunks": POST + LENGTH + CHUNKED + b"\r\n" + CHUNK,
    "chunks and a length": POST + CHUNKED + b"content-length: 3\r\n\r\n" + CHUNK,
    "a length that hides a request": POST + b"content-length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "a signed length": POST + b"content-length: +5\r\n\r\nhello",
    "a negative length": POST + b"content-length: -1\r\n\r\nhello",
    "a length in base 16": POST + b"content-length: 0x5\r\n\r\nhello",
    "an empty length": POST + b"content-length: \r\n\r\nhello",
    "an endless length": POST + b"content-length: 99999999999999999999999\r\n\r\nhello",
    "a blank before the colon": POST + b"content-length : 5\r\n\r\nhello",
    "an unknown coding": POST + b"transfer-encoding: xchunked\r\n\r\n" + CHUNK,
    "a coding before chunks": POST + b"transfer-encoding: gzip, chunked\r\n\r\n" + CHUNK,
    "a coding behind chunks": POST + b"transfer-encoding: chunked, identity\r\n\r\n" + CHUNK,
    "no coding": POST + b"transfer-encoding: identity\r\n\r\n" + CHUNK,
    "two codings": POST + CHUNKED + b"transfer-encoding: x\r\n\r\n" + CHUNK,
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n" + CHUNK,
    "a quoted coding": POST + b'transfer-encoding: "chunked"\r\n\r\n' + CHUNK,
    "a coding behind a vertical tab": POST + b"transfer-encoding: \x0bchunked\r\n\r\n" + CHUNK,
    "a coding with a blank before the colon": POST + b"transfer-encoding : chunked\r\n\r\n" + CHUNK,
    "chunks in HTTP/1.0": POST.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + CHUNK,
    "a negative chunk": POST + CHUNKED + b"\r\n-1\r\nhello\r\n0\r\n\r\n",
    "a chunk size with a prefix": POST + CHUNKED + b"\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "an endless chunk": POST + CHUNKED + b"\r\nFFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
    "a chunk without its end": POST + CHUNKED + b"\r\n5\r\nhelloXX0\r\n\r\n",
    "an empty chunk size": POST + CHUNKED + b"\r\n\r\nhello\r\n0\r\n\r\n",
    "bare carriage returns": (POST + LENGTH).replace(b"\r\n", b"\r") + b"\r" + HELLO,
    "HTTP/0.9": b"GET /\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/2.0": WHOLE.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "a null byte in the path": WHOLE.replace(b"POST /", b"POST /\0"),
    "a null byte in a header": POST + LENGTH + b"x: a\0b\r\n\r\n" + HELLO,
    "a null byte in a name": POST + LENGTH + b"x\0: b\r\n\r\n" + HELLO,
    "no host": WHOLE.replace(b"host: localhost\r\n", b""),
    "two hosts": POST + LENGTH + b"host: evil.example\r\n\r\n" + HELLO,
    "two credentials": POST + LENGTH + b"authorization: a\r\nauthorization: b\r\n\r\n" + HELLO,
    "a hello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
    "no HTTP": b"\xff\xfe\x00\n\n\r\n\r\n",
    "a method that is none": WHOLE.replace(b"POST", b"PO(ST"),
    "a path in UTF-8": "GET /ü HTTP/1.1\r\nhost: localhost\r\n\r\n".encode(),
    "an endless request line": b"GET /" + b"a" * 50_000,
    "an endless header": POST + b"x: " + b"a" * 50_000,
    "a head that is too large": POST + LENGTH + b"x: " + b"a" * 5000 + b"\r\n\r\n" + HELLO,
    "too many headers": POST + LENGTH + b"".join(b"h%d: x\r\n" % at for at in range(1000)) + b"\r\n" + HELLO,
    "a target of another scheme": WHOLE.replace(b"POST /", b"POST https://localhost/"),
    "a target with credentials": WHOLE.replace(b"POST /", b"POST http://evil@localhost/"),
    "a target without a host": WHOLE.replace(b"POST /", b"POST http:///"),
    "a target with a fragment": WHOLE.replace(b"POST /", b"POST /#"),
    "an asterisk that is asked for a method": WHOLE.replace(b"POST /", b"POST *"),
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n",
    "empty lines without end": b"\r\n" * 20_000,
    "a body that is announced too large": POST + b"content-length: 999999\r\n\r\n" + b"x" * 1000,
    "the same, and waiting for leave": POST + b"content-length: 999999\r\nexpect: 100-continue\r\n\r\n",
    "chunks that are too much": POST + CHUNKED + b"\r\n" + b"1000\r\n%b\r\n" % (b"x" * 4096) * 17,
    "half a head": b"POST / HT",
    "half a body": POST + LENGTH + b"\r\n{",
    "nothing": b"",
}


def answered(client: Client) -> list[int]:
    """The statuses of all that came until the connection ended."""
    return [int(status) for status in re.findall(rb"(?m)^HTTP/1\.[01] (\d+)", client.rest().replace(b"\r", b""))]


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_request_is_refused_once_and_the_connection_ends(daemon: HttpDaemon, case: str) -> None:
    with daemon.connected() as client:
        try:
            client.send(REFUSED[case] + (CARD if REFUSED[case].endswith(b"0\r\n\r\n") else b""))
        except ConnectionError:
            pass  # refused before it was sent
        statuses = answered(client)
        assert len(statuses) <= 2
        assert all(status in (400, 408, 413, 421, 431, 501, 505) for status in statuses)
        assert len(set(statuses)) == len(statuses)


def test_a_client_that_is_refused_in_the_middle_of_a_large_body_can_read_why(daemon: HttpDaemon) -> None:
    with daemon.connected() as client:
        client.send(POST + b"content-length: 20000000\r\n\r\n")
        for _ in range(200):
            client.send(b"x" * 100_000)
        assert client.response().status == 413
        assert client.rest() == b""


@pytest.mark.parametrize("step", [b"P", b"POST / HTTP/1.1\r\nx: ", POST + LENGTH + b"\r\n"])
def test_a_client_that_sends_byte_by_byte_is_given_no_more_time(daemon: HttpDaemon, step: bytes) -> None:
    with daemon.connected() as client:
        client.send(step)
        client.socket.settimeout(0.02)
        began = time.monotonic()
        found = b""
        while True:
            try:
                data = client.socket.recv(1000)
            except TimeoutError:
                try:
                    client.send(b"x")
                except ConnectionError:
                    break
                assert time.monotonic() - began < 60
                continue
            except ConnectionError:
                break
            if not data:
                break
            found += data
        assert found == b"" or b" 408 " in found or b" 400 " in found


ACCEPTED = {
    "chunks": POST + CHUNKED + b"\r\n" + CHUNK,
    "chunks between tabs": POST + b"Transfer-Encoding:\tchunked\t\r\n\r\n" + CHUNK,
    "tabs and an offer": POST + b"transfer-encoding: chunked \t\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n" + CHUNK,
    "chunks in capitals": POST + b"Transfer-Encoding: CHUNKED\r\n\r\n" + CHUNK,
    "chunks with extensions": POST + CHUNKED + b"\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(HELLO), HELLO),
    "single bytes": POST + CHUNKED + b"\r\n" + b"".join(b"1\r\n%c\r\n" % byte for byte in HELLO) + b"0\r\n\r\n",
    "HTTP/1.0": WHOLE.replace(b"1.1", b"1.0"),
    "an offer to speak HTTP/2": POST
    + LENGTH
    + b"upgrade: h2c\r\nconnection: Upgrade, HTTP2-Settings\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n"
    + HELLO,
    "the same, in chunks": POST + CHUNKED + b"upgrade: h2c\r\nconnection: upgrade\r\n\r\n" + CHUNK,
    "a name like the length's": POST + LENGTH + b"content_length: 3\r\n\r\n" + HELLO,
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_unusual_request_is_answered(daemon: HttpDaemon, case: str) -> None:
    with daemon.connected() as client:
        for _ in range(1 if "1.0" in case else 2):
            client.send(ACCEPTED[case])
            assert client.response().json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("case", REFUSED)
def test_what_came_before_a_hostile_request_is_answered_and_the_connection_ends_in_order(
    daemon: HttpDaemon, case: str
) -> None:
    with daemon.connected() as client:
        with contextlib.suppress(ConnectionError):
            client.send(WHOLE + ACCEPTED["chunks between tabs"] + REFUSED[case] + (CARD if case != "nothing" else b""))
            client.socket.shutdown(socket.SHUT_WR)
        for _ in range(2):
            assert client.response().json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        statuses = answered(client)
        assert len(statuses) <= 1
        assert set(statuses) <= {400, 408, 413, 421, 431, 501, 505}


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_unusual_request_may_come_in_pieces(daemon: HttpDaemon, case: str) -> None:
    for at in range(1, len(ACCEPTED[case]), 23):
        with daemon.connected() as client:
            client.send(ACCEPTED[case][:at])
            client.send(ACCEPTED[case][at:])
            assert client.response().json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HEAD / HTTP/1.1", 405), (b"OPTIONS / HTTP/1.1", 405), (b"TRACE / HTTP/1.1", 405), (b"PUT / HTTP/1.1", 405),
        (b"HEAD /.well-known/agent-card.json HTTP/1.1", 200), (b"GET /%ff%00%2e%2e/ HTTP/1.1", 404),
        (b"GET / HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13", 405),
    ],
)  # fmt: skip
def test_other_methods_are_answered_on_the_same_connection(daemon: HttpDaemon, head: bytes, status: int) -> None:
    with daemon.connected() as client:
        for _ in range(2):
            client.send(head + b"\r\nhost: localhost\r\n\r\n")
            response = client.response(head=head.startswith(b"HEAD"))
            assert response.status == status
            assert b"TRACE" not in response.body


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/", b"evil.example", 200), (b"http://127.0.0.1:1", b"", 200), (b"http://evil.example/", b"localhost", 421),
        (b"http://evil.example", b"localhost", 421), (b"http://localhost:x/", b"localhost", 421), (b"/", b"evil.example", 421),
    ],
)  # fmt: skip
def test_the_host_that_is_checked_is_that_of_an_absolute_target(
    daemon: HttpDaemon, target: bytes, host: bytes, status: int
) -> None:
    with daemon.connected() as client:
        client.send(WHOLE.replace(b"POST /", b"POST " + target).replace(b"localhost\r", host + b"\r"))
        assert client.response().status == status
        client.send(WHOLE)
        assert client.response().status == 200


@pytest.mark.parametrize("more", [b"", HELLO])
def test_who_was_answered_before_its_body_came_is_not_waited_for(daemon: HttpDaemon, more: bytes) -> None:
    with daemon.connected(30) as client:  # less than an idle connection may have
        client.send(POST.replace(b"/", b"/nowhere", 1) + LENGTH + b"\r\n")
        assert client.response().status == 404
        client.send(more)
        assert client.rest() == b""


def test_trailers_are_no_headers(daemon: HttpDaemon) -> None:
    with daemon.connected() as client:
        trailers = b"a2a-version: 1.0\r\nhost: evil.example\r\nauthorization: x\r\n"
        head = POST.replace(b"a2a-version: 1.0\r\n", b"")
        client.send(head + CHUNKED + b"\r\n%x\r\n%b\r\n0\r\n" % (len(HELLO), HELLO) + trailers + b"\r\n")
        assert client.response().json["error"]["code"] == -32009  # the version is 0.3, as none is named


def test_a_client_that_waits_for_leave_gets_it(daemon: HttpDaemon) -> None:
    with daemon.connected() as client:
        client.send(POST + LENGTH + b"expect: 100-continue\r\n\r\n")
        assert client.response().status == 100
        client.send(HELLO)
        assert client.response().status == 200


TINY = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


def test_thousands_of_pipelined_requests_are_answered_in_order(daemon: HttpDaemon) -> None:
    with daemon.connected() as client:
        sender = threading.Thread(target=client.send, args=(TINY * 6000 + message("the last one", call_id=7),))
        sender.start()
        assert {client.response().status for _ in range(6000)} == {200}
        assert client.response().json["id"] == 7
        sender.join()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_requests_that_are_sent_ahead_take_their_bytes_and_little_more(daemon: HttpDaemon) -> None:
    """256 KiB of the smallest requests took 19 MB."""
    before = resident(daemon)
    clients = [stalled(daemon, message("wait")) for _ in range(16)]
    try:
        for sock in clients:
            sock.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                sock.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 20_000)
        for _ in range(3):
            assert daemon.call("beside it").status == 200  # by now they are read
        assert resident(daemon) - before < 32 << 20
    finally:
        for sock in clients:
            sock.close()


def test_pipelined_data_behind_a_request_that_runs_is_bounded(daemon: HttpDaemon) -> None:
    """It is not read any further, or the connection ends."""
    with daemon.connected(seconds=0.3) as client:
        client.send(message("wait") + POST + b"x: " + b"a" * 10_000)
        with pytest.raises((ConnectionError, TimeoutError)):
            for _ in range(1000):
                client.send(b"a" * 100_000)


def test_a_client_that_has_sent_all_it_wants_gets_its_answer(daemon: HttpDaemon) -> None:
    for method in ("SendMessage", "SendStreamingMessage"):
        with daemon.connected() as client:
            client.send(message("ticks 3", method))
            client.socket.shutdown(socket.SHUT_WR)
            response = client.response()
            assert response.status == 200
            assert b"TASK_STATE_COMPLETED" in response.body


def stalled(daemon: HttpDaemon, request: bytes) -> socket.socket:
    """A connection whose client never reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.connect(("127.0.0.1", daemon.port))
    sock.sendall(request)
    return sock


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_client_that_never_reads_is_dropped_and_stalls_nobody(daemon: HttpDaemon, method: str) -> None:
    before = daemon.log.count("http.client_too_slow")
    text = "big 8000000" if method == "SendMessage" else "flood"
    sock = stalled(daemon, message(text, method))
    try:
        for _ in range(3):
            assert daemon.call("beside it").status == 200
        wait_until(lambda: daemon.log.count("http.client_too_slow") > before)
        sock.settimeout(5)
        with pytest.raises(ConnectionError):
            while sock.recv(1 << 20):
                pass
            raise ConnectionError  # it ended
    finally:
        sock.close()
        if method == "SendStreamingMessage":
            _cancel_all(daemon)


def _cancel_all(daemon: HttpDaemon) -> None:
    with daemon.connected() as client:
        client.send(post(rpc("ListTasks", {"status": "TASK_STATE_WORKING", "pageSize": 100})))
        for task in client.response().json["result"]["tasks"]:
            client.send(post(rpc("CancelTask", {"id": task["id"]})))
            client.response()


def test_more_connections_than_one_address_may_have_are_closed_at_once(daemon: HttpDaemon) -> None:
    socks = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(70)]
    try:
        closed = 0
        for sock in socks[64:]:
            sock.settimeout(20)
            try:
                closed += sock.recv(1) == b""
            except ConnectionError:
                closed += 1
        assert closed == 6
    finally:
        for sock in socks:
            sock.close()
    wait_until(lambda: descriptors(daemon) < 40)


def descriptors(daemon: HttpDaemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def resident(daemon: HttpDaemon) -> int:
    return int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_thousands_of_connections_leave_nothing_behind(daemon: HttpDaemon) -> None:
    def connect(count: int) -> None:
        for number in range(count):
            with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
                if number % 3 == 1:
                    sock.sendall(b"GET / HT")
                elif number % 3 == 2:
                    sock.sendall(CARD)
                    sock.recv(10)

    connect(300)
    wait_until(lambda: descriptors(daemon) < 40)
    open_before, before = descriptors(daemon), resident(daemon)
    connect(2000)
    wait_until(lambda: descriptors(daemon) <= open_before)
    assert resident(daemon) - before < 2 << 20
