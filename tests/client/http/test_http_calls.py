"""Calls by HTTP: what is sent, what each response means, and what happens when none comes."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.agents.methods import _METHODS
from discreet.client import (
    MCP,
    AuthenticationRequired,
    ConnectionFailed,
    EndBounds,
    InsufficientPermissions,
    InternalError,
    InvalidReply,
    InvalidRequest,
    MethodNotFound,
    OperationTimedOut,
    OperationTypeMismatch,
    Overloaded,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    TaskNotFound,
    Unavailable,
    connect,
)
from discreet.client.http.a2a import A2A, QUERIES
from discreet.client.http.connection import client_error, open_http
from discreet.client.http.wire import parse_address
from discreet.client.outbound.connection import LossReason, OutboundError
from support.http_server import HttpRequest, http_server
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


async def echo(request: HttpRequest) -> None:
    await request.result(request.message.get("params"))


async def hang(request: HttpRequest) -> None:
    await request.until_gone()


async def cut(request: HttpRequest) -> None:
    await request.cut()


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_a_call_is_one_post_whose_service_params_are_headers_and_stand_in_no_body() -> None:
    async with http_server(echo) as server, connect(server.url, service_params={"Traceparent": "00"}) as peer:
        sent = await peer.call("GetTask", {"id": "1"}, service_params={"authorization": "Bearer s3"})
        (request,) = server.requests
        assert sent == {"id": "1"}
        assert (request.verb, request.path) == ("POST", "/")
        assert request.message == {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "1"}}
        sent_headers = {name: request.headers.get(name) for name in ("authorization", "traceparent", "content-type")}
        assert sent_headers == {"authorization": "Bearer s3", "traceparent": "00", "content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "given", "sent"),
    [
        ("GetTask", {}, "1.0"),
        ("tasks/get", {}, "0.3"),
        ("something/else", {}, None),
        ("GetTask", {"A2A-Version": "1.0.7"}, "1.0.7"),
    ],
)
async def test_the_version_of_the_method_is_named_unless_another_is(
    method: str, given: dict[str, str], sent: str | None
) -> None:
    async with http_server(echo) as server, connect(server.url) as peer:
        await peer.call(method, service_params=given)
        assert server.requests[0].headers.get("a2a-version") == sent


async def test_connections_are_used_again() -> None:
    async with http_server(echo) as server, connect(server.url) as peer:
        for _ in range(3):
            await peer.call("GetTask")
        assert server.connections == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
async def test_a_unix_socket_is_an_address(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()

    def serve() -> None:
        with listener.accept()[0] as client:
            body = b'{"jsonrpc":"2.0","id":1,"result":"here"}'
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    with listener:
        thread = threading.Thread(target=serve)
        thread.start()
        async with connect(f"unix:{tmp_path / 's'}") as peer:
            assert await peer.call("GetTask") == "here"
        thread.join(DEADLINE_SECONDS)


@pytest.mark.parametrize(
    "given",
    [{"host": "x"}, {"Content-Length": "3"}, {"a b": "c"}, {"x": "a\r\nb: c"}, {"x": "ä"}, {"": "x"}, {"x": " y"}],
)
async def test_what_can_be_no_header_is_refused_before_anything_is_sent(given: dict[str, str]) -> None:
    async with http_server(echo) as server, connect(server.url) as peer:
        with pytest.raises(ValueError, match="service_params") as caught:
            await peer.call("GetTask", service_params=given)
        assert all(value.strip() not in str(caught.value) for value in given.values() if value not in "xy c3")
        assert server.requests == []


async def test_what_http_does_not_have_is_refused() -> None:
    async with connect("http://127.0.0.1:9/") as peer:
        with pytest.raises(RuntimeError):
            await peer.notify("exit")
        with pytest.raises(RuntimeError):
            await peer.send_raw(b"x")
        with pytest.raises(ValueError, match="on_progress"):
            await peer.call("GetTask", on_progress=print)


# -- addresses and options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http:", "https:///x", "http://h:port/", "http://ann:s3@h/", "unix:", "http://h /", "http://h:99999/"]
)
async def test_a_url_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="url") as caught:
        async with connect(url):
            pass
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"cwd": "/"},
        {"env": {}},
        {"stderr": "collect"},
        {"bounds": EndBounds(eof=1.0)},
        {"framing": "newline"},
        {"dialect": MCP},
        {"restart": RestartPolicy()},
        {"ssl_context": 5},
        {"service_params": {"a": 1}},
    ],
)
async def test_options_of_commands_are_refused_with_a_url(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        async with connect("http://127.0.0.1:9/", **options):
            pass


async def test_a_command_takes_no_tls() -> None:
    with pytest.raises(TypeError, match="ssl_context"):
        async with connect([sys.executable], ssl_context=ssl.create_default_context()):
            pass


async def test_a_missing_library_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h11", None)
    with pytest.raises(ImportError, match=r"discreet\[http\]"):
        async with connect("http://127.0.0.1:9/"):
            pass


# -- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 404])
async def test_an_error_of_json_rpc_counts_whatever_the_status(status: int) -> None:
    async def refuse(request: HttpRequest) -> None:
        await request.error({"code": -32001, "message": "Task not found"}, status)

    async with http_server(refuse) as server, connect(server.url) as peer:
        with pytest.raises(TaskNotFound):
            await peer.call("GetTask")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, InternalError),
        (401, AuthenticationRequired),
        (403, InsufficientPermissions),
        (404, MethodNotFound),
        (408, OperationTimedOut),
        (413, InvalidRequest),
        (429, Overloaded),
        (500, InternalError),
        (503, Unavailable),
        (504, OperationTimedOut),
    ],
)
async def test_a_status_alone_is_a_typed_error_with_the_body_as_its_data(
    status: int, expected: type[RemoteError]
) -> None:
    async def refuse(request: HttpRequest) -> None:
        await request.answer(status, b"because", content_type="text/plain", retry_after="7")

    async with http_server(refuse) as server, connect(server.url) as peer:
        with pytest.raises(expected) as caught:
            await peer.call("GetTask")
        assert caught.value.message.startswith(f"HTTP {status}")
        assert (caught.value.data, caught.value.retry_after) == ("because", 7.0)


async def test_a_challenge_names_schemes_and_realm() -> None:
    async def refuse(request: HttpRequest) -> None:
        await request.answer(401, b"", www_authenticate='Bearer realm="the \\"shop\\"", ApiKey realm="a, b"')

    async with http_server(refuse) as server, connect(server.url) as peer:
        with pytest.raises(AuthenticationRequired) as caught:
            await peer.call("GetTask")
        assert (caught.value.failure.schemes, caught.value.failure.realm) == (("Bearer", "ApiKey"), 'the "shop"')


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"<html>", {"content_type": "text/html"}),
        (b"[]", {}),
        (b'{"jsonrpc":"2.0","id":77,"result":1}', {}),
        (b'{"error":{"code":401}}x', {}),
        (b"\x1f\x8b", {"content_encoding": "gzip"}),
    ],
)
async def test_what_is_no_response_is_an_invalid_reply(body: bytes, headers: dict[str, str]) -> None:
    async def answer(request: HttpRequest) -> None:
        await request.answer(200, body, **headers)

    async with http_server(answer) as server, connect(server.url) as peer:
        with pytest.raises(InvalidReply):
            await peer.call("GetTask")


async def test_a_redirect_is_not_followed() -> None:
    async def move(request: HttpRequest) -> None:
        await request.answer(307, b"", location=server.url)

    async with http_server(move) as server, connect(server.url) as peer:
        with pytest.raises(InvalidReply, match="307"):
            await peer.call("GetTask")
        assert len(server.requests) == 1


async def test_events_are_no_answer_to_a_call() -> None:
    async def stream(request: HttpRequest) -> None:
        await request.begin_events()
        await request.until_gone()

    async with http_server(stream) as server, connect(server.url) as peer:
        with pytest.raises(OperationTypeMismatch):
            await peer.call("SendStreamingMessage")
        await server.gone.wait()


@pytest.mark.parametrize("limit", [11, 12])
async def test_a_body_is_read_up_to_its_limit(limit: int) -> None:
    async def long(request: HttpRequest) -> None:
        await request.answer(200, b"x" * 12)

    async with http_server(long) as server, open_http(parse_address(server.url), A2A()) as http:
        if limit == 12:
            assert (await http.get(parse_address(server.url), {}, limit=limit))[1] == b"x" * 12
        else:
            with pytest.raises(InvalidReply):
                await http.get(parse_address(server.url), {}, limit=limit)


# -- no answer ---------------------------------------------------------------------------------------------------------


async def test_a_refused_connection_has_sent_nothing() -> None:
    async with http_server(echo) as server:
        url = server.url
    async with connect(url) as peer:
        with pytest.raises(ConnectionFailed) as caught:
            await peer.call("GetTask")
        assert (caught.value.sent, caught.value.retryable) == (False, True)


async def test_a_lost_connection_may_have_had_an_effect() -> None:
    async with http_server(cut) as server, connect(server.url) as peer:
        with pytest.raises(ConnectionFailed) as caught:
            await peer.call("GetTask")
        assert caught.value.sent


async def test_a_time_out_closes_the_request() -> None:
    async with http_server(hang) as server, connect(server.url) as peer:
        with pytest.raises(RequestTimeout) as caught:
            await peer.call("GetTask", timeout=0.5)
        await server.gone.wait()
        assert caught.value.sent


async def test_cancelling_a_call_closes_the_request_and_no_other() -> None:
    asked = anyio.Event()

    async def first(request: HttpRequest) -> None:
        asked.set()
        await request.until_gone()

    async with http_server(first, echo) as server, connect(server.url) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.call, "SendMessage")
            await asked.wait()
            tasks.cancel_scope.cancel()
        await server.gone.wait()
        assert await peer.call("GetTask", {"id": "1"}) == {"id": "1"}


async def test_the_end_of_the_block_fails_the_calls_that_wait() -> None:
    failed = anyio.Event()

    async def ask(peer: Any) -> None:
        with pytest.raises(ConnectionFailed):
            await peer.call("GetTask")
        failed.set()

    async with http_server(hang) as server, anyio.create_task_group() as tasks:
        async with connect(server.url) as peer:
            tasks.start_soon(ask, peer)
            while not server.requests:
                await anyio.lowlevel.checkpoint()
        await failed.wait()
        with pytest.raises(ConnectionFailed) as caught:
            await peer.call("GetTask")
        assert not caught.value.sent


# -- what is called again: never what may have had an effect, and never before the server says ----------------------------


AT_ONCE = RetryPolicy(attempts=3, initial=0)


async def test_a_query_is_repeated_after_a_loss_without_a_question_what_it_is() -> None:
    async with http_server(cut, echo) as server, connect(server.url, retry=AT_ONCE) as peer:
        await peer.call("GetTask")
        assert server.methods == ["GetTask", "GetTask"]


async def test_a_message_is_never_repeated_after_a_loss() -> None:
    async with http_server(cut) as server, connect(server.url, retry=AT_ONCE) as peer:
        with pytest.raises(ConnectionFailed):
            await peer.call("SendMessage")
        assert server.methods == ["SendMessage"]


async def test_a_message_that_was_not_taken_is_sent_again() -> None:
    async def full(request: HttpRequest) -> None:
        await request.answer(429, b"", retry_after="0")

    async with http_server(full, echo) as server, connect(server.url, retry=AT_ONCE) as peer:
        await peer.call("SendMessage")
        assert server.methods == ["SendMessage", "SendMessage"]


async def test_an_attempt_that_retry_after_puts_behind_the_deadline_is_not_made() -> None:
    async def down(request: HttpRequest) -> None:
        await request.answer(503, b"", retry_after="3600")

    retry = RetryPolicy(attempts=3, initial=0, deadline=600)
    async with http_server(down) as server, connect(server.url, retry=retry) as peer:
        with pytest.raises(Unavailable):
            await peer.call("GetTask")
        assert len(server.requests) == 1


def test_what_counts_as_a_query_is_what_the_daemon_declares_as_one() -> None:
    assert {name for methods in _METHODS.values() for name, it in methods.items() if it.kind == "query"} == QUERIES


# -- what people read when a server can't be reached: nothing of the URL that may be secret ------------------------------


UNTRUSTED = ssl.SSLCertVerificationError(1, "secret")
UNTRUSTED.verify_message = "self-signed certificate"

CASES: list[tuple[LossReason, BaseException | None, str]] = [
    ("connect", OSError(errno.ECONNREFUSED, "secret"), os.strerror(errno.ECONNREFUSED).lower()),
    ("connect", None, "no connection"),
    ("tls", UNTRUSTED, "its certificate is not trusted: self-signed certificate"),
    ("tls", ssl.SSLError(1, "secret"), "the TLS handshake failed"),
    ("unresolved", None, "the host is unknown"),
    ("lost", OSError(errno.EPIPE, "secret"), "the connection was lost"),
]


@pytest.mark.parametrize("url", ["https://agent.example:8443/a?key=secret#b", "unix:/run/a"])
@pytest.mark.parametrize(("reason", "cause", "told"), CASES)
def test_a_failure_is_told_by_its_kind(reason: LossReason, cause: BaseException | None, told: str, url: str) -> None:
    failure = OutboundError(reason)
    failure.__cause__ = cause
    assert str(client_error(failure, parse_address(url).shown)) == f"{url.partition('?')[0]}: {told}"
