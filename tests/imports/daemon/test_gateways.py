"""Daemons that are mounted by their gateway, where connections are lost and answers are not what a gateway writes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

pytest.importorskip("httptools")

from discreet import Service, from_daemon, from_openapi
from discreet.client.errors import InternalError, OperationTimedOut, Overloaded, RemoteError, Unavailable
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.model import ImportFailed
from discreet.testing import in_memory
from support.cutting_proxy import cutting_proxy
from support.far_app import far
from support.gateways import http_daemon
from support.logged_events import LoggedEvents
from support.mounts import FAR_APP

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with http_daemon(tmp_path_factory.mktemp("far"), f"{FAR_APP}:far", "--http-operations") as url:
        yield int(url.rstrip("/").rpartition(":")[2])


def mounted(port: int, **options: Any) -> Service:
    """The service by its document, so that nothing is asked of the server before the first call."""
    document = document_text(openapi_document(far.operations, About(title="Far", version="1")))
    url = f"http://127.0.0.1:{port}/"
    return from_openapi(document, namespace="m", expose=True, base_url=url, allow_private=True, **options)


async def test_a_stream_with_numbers_goes_on_where_it_was_cut_and_nothing_is_lost_or_doubled(port: int) -> None:
    with cutting_proxy(port, b'"tick 40"') as proxy:
        async with in_memory(mounted(proxy.port)) as peer:
            seen = [event async for event in peer.subscribe("m/far/ticks", {"until": 100})]
        assert seen == [f"tick {number}" for number in range(1, 101)]
        assert (proxy.cuts, len(proxy.requests)) == (1, 2)


async def test_one_without_numbers_fails_behind_what_came(port: int) -> None:
    with cutting_proxy(port, b"data: 40") as proxy:
        async with in_memory(mounted(proxy.port)) as peer:
            seen: list[int] = []
            with pytest.raises(Unavailable):
                async for event in peer.subscribe("m/far/numbers", {"until": 100}):
                    seen.append(event)  # noqa: PERF401 - it ends with an exception
        assert seen == [*range(41)]
        assert len(proxy.requests) == 1


class Answering:
    """A server that gives each request the same answer, and counts them. An empty one closes the connection."""

    def __init__(self, answer: bytes) -> None:
        self.requests = 0
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._listener, suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    head = b""
                    while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                        head += data
                    self.requests += 1
                    connection.sendall(self._answer)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()


@contextmanager
def answering(answer: bytes) -> Iterator[Answering]:
    server = Answering(answer)
    try:
        yield server
    finally:
        server.close()


def response(status: int, body: bytes, *headers: str, media_type: str = "application/json") -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", f"content-type: {media_type}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def error(code: str, **details: Any) -> bytes:
    return json.dumps({"code": code, "message": "theirs", "retryable": True, "details": details}).encode()


FAILED: list[tuple[bytes, type[RemoteError]]] = [
    (b"", Unavailable),
    (b"HTTP/1.1 200", Unavailable),
    (b"nonsense\r\n\r\n", InternalError),
    (response(200, b"1", "content-encoding: zstd"), InternalError),
    (response(307, b"", "location: /elsewhere"), InternalError),
    (response(404, b"no such page", media_type="text/plain"), InternalError),
    (response(401, b""), InternalError),
    (response(403, error("FORBIDDEN")), InternalError),
    (response(500, b"secret of theirs", media_type="text/html"), InternalError),
    (response(409, error("UNDECLARED")), InternalError),
    (response(429, b"", "retry-after: 3"), Overloaded),
    (response(429, error("OVERLOADED", retryAfterMs=20)), Overloaded),
    (response(502, b"bad gateway", media_type="text/html"), Unavailable),
    (response(504, b""), OperationTimedOut),
]
LOST = (b"", b"HTTP/1.1 200")
"""After these nobody knows whether a mutation had its effect."""
NO_RESULTS = [
    response(200, b"{"),
    response(200, b"\xff"),
    response(200, b'"\xff"'),
    response(200, b'"x' + b"x" * 11_000_000 + b'"'),
    response(200, b"[1]", media_type="text/event-stream"),
]
NO_STREAMS = [
    response(200, b"[1]"),
    response(204, b""),
    response(200, b"data: " + b"x" * 11_000_000, media_type="text/event-stream"),
    response(200, b"data: {\n\n", media_type="text/event-stream"),
    response(200, b"event: error\ndata: {\n\n", media_type="text/event-stream"),
]


@pytest.mark.parametrize(("answer", "expected"), [*FAILED, *((answer, InternalError) for answer in NO_RESULTS)])
async def test_an_answer_that_no_gateway_writes_is_a_failure_without_any_text_of_it(
    answer: bytes, expected: type[RemoteError], logged: LoggedEvents
) -> None:
    with answering(answer) as server:
        async with in_memory(mounted(server.port)) as peer:
            with pytest.raises(InternalError if answer in LOST else expected) as caught:
                await peer.call("m/far/store", {"item": {"name": "a"}})
            assert "secret" not in str(caught.value)
            assert "theirs" not in str(caught.value)
        assert server.requests == 1
    assert "handler.failed" not in logged.names()  # it is no fault of ours


@pytest.mark.parametrize(
    ("answer", "expected"), [*FAILED[:3], *FAILED[-3:], *((answer, InternalError) for answer in NO_STREAMS)]
)
async def test_the_same_holds_of_streams(answer: bytes, expected: type[RemoteError], logged: LoggedEvents) -> None:
    with answering(answer) as server:
        async with in_memory(mounted(server.port)) as peer:
            with pytest.raises(expected) as caught:
                await anext(peer.subscribe("m/far/numbers", {"until": 1}))
            assert "theirs" not in str(caught.value)
        assert server.requests == 1
    assert "handler.failed" not in logged.names()


async def test_a_query_is_asked_again_where_the_connection_was_lost_and_a_mutation_is_not() -> None:
    for method, params, requests, told in (
        ("count", {"what": "a"}, 2, Unavailable),
        ("store", {"item": {"name": "a"}}, 1, InternalError),
    ):
        with answering(b"") as server:
            async with in_memory(mounted(server.port)) as peer:
                with pytest.raises(told):
                    await peer.call(f"m/far/{method}", params)
            assert server.requests == requests


async def test_nobody_there_is_unavailable() -> None:
    with answering(b"") as server:
        port = server.port
    async with in_memory(mounted(port)) as peer:
        for method in ("far/count", "far/store"):
            with pytest.raises(Unavailable):
                await peer.call(f"m/{method}", {"what": "a", "item": {"name": "a"}})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the connection was lost"),
        (b"nonsense\r\n\r\n", "no HTTP"),
        (response(404, b"{}"), "start it with --http-operations"),
        (response(401, b"{}"), "does not accept this caller (HTTP 401)"),
        (response(302, b"", "location: https://example.org"), "it answered HTTP 302"),
        (response(200, b"{}"), "from_openapi takes any"),
        (
            response(200, document_text(openapi_document([], About(title="t", version="1")))),
            "it offers no operation to this caller",
        ),
    ],
)
def test_a_url_that_is_no_gateway_is_refused_in_one_line(answer: bytes, reason: str) -> None:
    with answering(answer) as server:
        url = f"http://127.0.0.1:{server.port}/?token=secret"
        with pytest.raises(ImportFailed) as caught:
            from_daemon(url, namespace="m", allow_private=True)
    message = str(caught.value)
    assert reason in message
    assert message.startswith(f"http://127.0.0.1:{server.port}/: ")
    assert "secret" not in message and "\n" not in message


@pytest.mark.parametrize("validate", [None, "on", "off"])
async def test_a_document_of_our_own_form_does_not_switch_off_the_check_of_answers(validate: str | None) -> None:
    options = {} if validate is None else {"validate": validate}
    with answering(response(200, b'["undeclared"]')) as server:
        async with in_memory(mounted(server.port, **options)) as peer:
            if validate == "off":
                assert await peer.call("m/far/count", {"what": "a"}) == ["undeclared"]
            else:
                with pytest.raises(InternalError):
                    await peer.call("m/far/count", {"what": "a"})
