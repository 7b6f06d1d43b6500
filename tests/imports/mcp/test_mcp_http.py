"""Sessions by Streamable HTTP: both eras, sessions, streams that are cut off, servers that misbehave."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec
import pytest
from msgspec.structs import replace

pytest.importorskip("httpx")
pytest.importorskip("jsonschema_rs")

from discreet import Service
from discreet.client import OperationFailed, Unavailable
from discreet.client.errors import ConnectionFailed, InvalidReply, RemoteError
from discreet.client.retry import RECONNECT_INITIAL
from discreet.errors import Internal, Overloaded
from discreet.errors import Unavailable as UnavailableFailure
from discreet.errors.backoff import SystemTiming
from discreet.errors.codes import UPSTREAM_MESSAGE
from discreet.imports.archive import pack
from discreet.imports.from_mcp import mcp_service
from discreet.imports.mcp.model import Agreed, Era, Listing
from discreet.imports.mcp.reading import read_listing
from discreet.imports.mcp.server_messages import ListKind, ServerMessages
from discreet.imports.mcp.session import Opener, Session, encoded, read_mcp
from discreet.imports.service import ImportOptions
from discreet.imports.targets import Url
from discreet.testing import in_memory
from support.gateways import http_daemon
from support.http_server import HttpRequest, HttpServer, http_server
from support.waits import DEADLINE_SECONDS, until

from .conftest import odd

pytestmark = pytest.mark.anyio

Take: TypeAlias = Callable[[HttpRequest], Awaitable[None]]
WELCOME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "odd"},
}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def with_token() -> dict[str, str]:
    return {"authorization": "Bearer t"}


@asynccontextmanager
async def talking(
    url: str, era: Era | None = "legacy", server: ServerMessages | None = None
) -> AsyncGenerator[Session]:
    opening = Opener(
        Url(url, allow_private=True),
        server or ServerMessages("odd"),
        era,
        headers=with_token,
    )
    with anyio.fail_after(DEADLINE_SECONDS):
        async with opening.open() as conversation:
            yield conversation


@asynccontextmanager
async def legacy(call: Take, get: Take | None = None, **headers: str) -> AsyncGenerator[HttpServer]:
    """A server of 2025-11-25 whose calls are answered by `call`, and its stream by `get`."""

    async def take(request: HttpRequest) -> None:
        match request.verb, (request.message or {}).get("method"):
            case "POST", "initialize":
                await request.json(answer_of(request, WELCOME), **{"mcp_session_id": "one", **headers})
            case "POST", "tools/call":
                await call(request)
            case "POST", _:
                await request.answer(202, b"")
            case "GET", _ if get is not None:
                await get(request)
            case _:
                await request.answer(405, b"")

    async with http_server(take) as server:
        yield server


async def act(conversation: Session, **arguments: Any) -> Any:
    result = await conversation.request("tools/call", {"name": "act", "arguments": arguments}, name="act")
    return msgspec.json.decode(result)


def answer_of(request: HttpRequest, result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": result}


async def test_requests_say_what_they_are_in_headers() -> None:
    async def call(request: HttpRequest) -> None:
        await request.result({"content": []})

    async with legacy(call) as server, talking(server.url) as conversation:
        await act(conversation)
        headers = [request.headers for request in server.requests]
    assert [each.get("mcp-session-id") for each in headers] == [None, *["one"] * (len(headers) - 1)]
    assert [each.get("mcp-protocol-version") for each in headers] == [None, *["2025-11-25"] * (len(headers) - 1)]
    assert {each["authorization"] for each in headers} == {"Bearer t"}
    assert {each["accept-encoding"] for each in headers} == {"identity"}
    assert server.requests[-1].verb == "DELETE"


async def test_a_modern_request_repeats_its_name_in_headers() -> None:
    async def take(request: HttpRequest) -> None:
        if request.message["method"] == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}
            await request.result(found)
        else:
            await request.result({"content": []})

    async with http_server(take) as server, talking(server.url, None) as conversation:
        params = {"name": "töle", "arguments": {}}
        await conversation.request("tools/call", params, name="töle", mirrored={"Mcp-Param-Region": "eu"})
    headers = server.requests[-1].headers
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?dMO2bGU=?="
    assert headers["mcp-param-region"] == "eu"
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert "mcp-session-id" not in headers


@pytest.mark.parametrize(
    ("value", "header"),
    [("plain", "plain"), (" a", "=?base64?IGE=?="), ("", ""), ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?=")],
)
def test_values_of_headers_are_encoded_where_they_must_be(value: str, header: str) -> None:
    assert encoded(value) == header


async def test_messages_before_an_answer_come_on_its_stream() -> None:
    async def call(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event_of(CHANGED)
        await request.event({"content": [1]})
        await request.end_events()

    changed: list[ListKind] = []
    async with legacy(call) as server, talking(server.url, server=ServerMessages("odd", changed.append)) as found:
        assert await act(found) == {"content": [1]}
    assert changed == ["tools"]


async def test_a_stream_that_is_cut_off_is_taken_up_behind_its_last_event() -> None:
    calls: list[HttpRequest] = []

    async def call(request: HttpRequest) -> None:
        calls.append(request)
        await request.begin_events()
        await request.raw(b"retry: 1\nid: 7\ndata:\n\n")
        await request.cut()

    async def get(request: HttpRequest) -> None:
        if "last-event-id" not in request.headers:
            await request.answer(405, b"")
            return
        assert request.headers["last-event-id"] == "7"
        await request.begin_events()
        await request.event_of(answer_of(calls[0], {"content": [2]}), 8)
        await request.end_events()

    async with legacy(call, get) as server, talking(server.url) as conversation:
        assert await act(conversation) == {"content": [2]}
    assert len(calls) == 1


async def test_a_stream_without_numbers_that_is_cut_off_fails_its_call() -> None:
    async def call(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event_of(CHANGED)
        await request.cut()

    async with legacy(call) as server, talking(server.url) as conversation:
        with pytest.raises(ConnectionFailed) as caught:
            await act(conversation)
        assert caught.value.sent


async def test_the_stream_of_a_get_tells_of_changes() -> None:
    done = anyio.Event()
    changed: list[ListKind] = []

    async def call(request: HttpRequest) -> None:
        await request.result({})

    async def get(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event_of(CHANGED)
        await request.until_gone()

    def note(kind: ListKind) -> None:
        changed.append(kind)
        done.set()

    async with legacy(call, get) as server, talking(server.url, server=ServerMessages("odd", note)):
        await done.wait()
    assert changed == ["tools"]


async def test_a_cancelled_call_is_told_to_a_server_with_sessions() -> None:
    called, told = anyio.Event(), anyio.Event()

    async def take(request: HttpRequest) -> None:
        called.set()
        await request.begin_events()
        await request.until_gone()

    async with legacy(take) as server, talking(server.url) as conversation, anyio.create_task_group() as tasks:
        tasks.start_soon(act, conversation)
        await called.wait()
        tasks.cancel_scope.cancel()
        told.set()
    methods = [request.message["method"] for request in server.requests if request.message]
    assert told.is_set()
    assert "notifications/cancelled" in methods


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503, 302])
async def test_a_status_is_an_error_that_says_whether_the_request_was_taken(status: int) -> None:
    async def call(request: HttpRequest) -> None:
        await request.answer(status, b"<html>secret</html>", content_type="text/html", location="http://127.0.0.1:1/")

    async with legacy(call) as server, talking(server.url) as conversation:
        with pytest.raises((ConnectionFailed, InvalidReply)) as caught:
            await act(conversation)
    assert isinstance(caught.value, ConnectionFailed) == (status in (401, 403, 429, 503))
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, ConnectionFailed) or not caught.value.sent


async def test_an_error_of_json_rpc_is_read_whatever_the_status() -> None:
    async def call(request: HttpRequest) -> None:
        await request.error({"code": -32001, "message": "no"}, 400)

    async with legacy(call) as server, talking(server.url) as conversation:
        with pytest.raises(RemoteError):
            await act(conversation)


@pytest.mark.parametrize("kind", ["json", "events", "gzip", "html", "empty", "other"])
async def test_what_is_no_answer_is_bounded_and_of_no_use(kind: str) -> None:
    async def call(request: HttpRequest) -> None:
        match kind:
            case "json":
                await request.json(answer_of(request, "x" * (11 * 1024 * 1024)))
            case "events":
                await request.begin_events()
                await request.event_of(answer_of(request, "x" * (11 * 1024 * 1024)))
            case "gzip":
                await request.json(answer_of(request, {}), content_encoding="gzip")
            case "html":
                await request.answer(200, b"<html>", content_type="text/html")
            case "empty":
                await request.answer(200, b"", content_type="application/json")
            case _:
                await request.json({"jsonrpc": "2.0", "id": 999, "result": {}})

    async with legacy(call) as server, talking(server.url) as conversation:
        with pytest.raises(InvalidReply):
            await act(conversation)


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_calls_one_after_the_other_use_one_connection(kind: str) -> None:
    async def call(request: HttpRequest) -> None:
        if kind == "json":
            await request.result({"content": []})
        else:
            await request.begin_events()
            await request.event({"content": []})
            await request.end_events()

    async with legacy(call) as server, talking(server.url) as conversation:
        for _ in range(5):
            await act(conversation)
            await anyio.wait_all_tasks_blocked()
        calls = [request.connection for request in server.requests if request.verb == "POST"]
    assert len(set(calls[-5:])) == 1


async def test_calls_that_wait_end_with_their_session() -> None:
    waiting = anyio.Event()

    async def call(request: HttpRequest) -> None:
        if request.message["params"]["arguments"]:
            await request.answer(404, b"")
        else:
            await request.begin_events()
            waiting.set()
            await request.until_gone()

    async with legacy(call) as server, talking(server.url) as conversation, anyio.create_task_group() as tasks:

        async def wait() -> None:
            with pytest.raises(ConnectionFailed):
                await act(conversation)

        tasks.start_soon(wait)
        await waiting.wait()
        with pytest.raises(ConnectionFailed):
            await act(conversation, end=True)


async def test_a_server_without_sessions_and_without_that_route_is_called_on() -> None:
    asked = anyio.Event()

    async def call(request: HttpRequest) -> None:
        await asked.wait()
        await request.result({"content": []})

    async def get(request: HttpRequest) -> None:
        await request.answer(404, b"Cannot GET /mcp")
        asked.set()

    for session in ("", "one"):
        asked = anyio.Event()
        async with legacy(call, get, mcp_session_id=session) as server, talking(server.url) as conversation:
            for _ in range(3):
                assert await act(conversation) == {"content": []}
            assert conversation.usable


async def test_a_server_that_cuts_off_each_stream_at_once_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    enough = anyio.Event()

    async def note(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 5:
            enough.set()
            await sleep_forever()

    sleep_forever = anyio.sleep_forever
    monkeypatch.setattr(SystemTiming, "sleep", lambda _, seconds: note(seconds))

    async def call(request: HttpRequest) -> None:
        await request.result({})

    async def get(request: HttpRequest) -> None:
        await request.begin_events()
        await request.raw(b"retry: 0\nid: 7\ndata: {}\n\n")
        await request.end_events()

    async with legacy(call, get) as server, talking(server.url):
        await enough.wait()
    first, *later = waited
    assert first == 0.0
    assert min(later) >= RECONNECT_INITIAL / 2


# -- the service of such a server: sessions that end, credentials, changes --

TOOL = {"name": "act", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class LegacyServer:
    """Of 2025-11-25. `call` answers calls of its tools; `sessions` is how many it has begun, of which one is `current`."""

    def __init__(self, call: Take | None = None) -> None:
        self.call = call
        self.sessions = 0
        self.current = ""

    async def take(self, request: HttpRequest) -> None:
        method = (request.message or {}).get("method", request.verb)
        if method == "server/discover":
            await request.answer(400, b"no session")
        elif method == "initialize":
            self.sessions += 1
            self.current = f"s{self.sessions}"
            await request.json(answer_of(request, WELCOME), mcp_session_id=self.current)
        elif request.headers.get("mcp-session-id") != self.current:
            await request.answer(404, b"")
        elif method == "tools/list":
            await request.result({"tools": [TOOL]})
        elif method == "tools/call":
            await (request.result(DONE) if self.call is None else self.call(request))
        else:
            await request.answer(405 if method == "GET" else 202, b"")


def service_of(url: str, **options: Any) -> Service:
    data = pack(read_listing(Listing(tools=(TOOL,)), Agreed("2025-11-25")))
    credential = options.pop("credential", None)
    chosen = ImportOptions(expose=True, **options)
    return mcp_service("odd", Url(url, allow_private=True), data, chosen, credential=credential)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (429, Overloaded(2000)),
        (503, UnavailableFailure(2000)),
        (401, Internal("HTTP_401")),
        (403, Internal("HTTP_403")),
        (500, Internal("HTTP_500")),
        (302, Internal()),
    ],
)
async def test_a_caller_gets_the_status_and_how_long_to_wait(status: int, failure: Any) -> None:
    async def call(request: HttpRequest) -> None:
        await request.answer(status, b"<html>secret</html>", content_type="text/html", retry_after="2")

    async with legacy(call) as server, in_memory(service_of(server.url)) as peer:
        with pytest.raises(RemoteError) as failed:
            await peer.call(f"odd/{TOOL['name']}", {})
    assert failed.value.failure == failure


async def test_a_session_that_has_ended_is_begun_anew_and_the_call_is_made() -> None:
    ours = LegacyServer()
    async with http_server(ours.take) as server, in_memory(service_of(server.url)) as peer:
        assert await peer.call("odd/act") == DONE
        ours.current = "forgotten"
        assert await peer.call("odd/act") == DONE
        assert ours.sessions == 2


async def test_an_idempotent_call_that_was_cut_off_is_made_once_more() -> None:
    calls: list[HttpRequest] = []

    async def call(request: HttpRequest) -> None:
        calls.append(request)
        if len(calls) == 1:
            await request.cut()
        else:
            await request.result(DONE)

    async with http_server(LegacyServer(call).take) as server, in_memory(service_of(server.url)) as peer:
        assert await peer.call("odd/act") == DONE
        assert len(calls) == 2


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with in_memory(service_of("http://127.0.0.1:9/mcp")) as peer:
        with pytest.raises(Unavailable) as caught:
            await peer.call("odd/act")
        assert caught.value.message == UPSTREAM_MESSAGE


async def test_the_credential_of_the_app_is_sent_as_a_bearer_token() -> None:
    async with http_server(LegacyServer().take) as server:
        service = service_of(server.url, credentials=["odd"], credential="odd")
        async with in_memory(service, credentials={"odd": "token-of-the-app"}) as peer:
            await peer.call("odd/act")
        assert {request.headers.get("authorization") for request in server.requests} == {"Bearer token-of-the-app"}


async def test_a_server_with_a_credential_is_subscribed_to_from_the_first_call_on() -> None:
    subscribed: list[HttpRequest] = []
    ours = LegacyServer()

    async def take(request: HttpRequest) -> None:
        match (request.message or {}).get("method"):
            case "initialize":
                ours.current = "s1"
                welcome = {**WELCOME, "capabilities": {"tools": {}, "resources": {"subscribe": True}}}
                await request.json(answer_of(request, welcome), mcp_session_id="s1")
            case "resources/subscribe":
                subscribed.append(request)
                await request.result({})
            case "resources/list" | "resources/templates/list" as method:
                await request.result({"resourceTemplates" if "templates" in method else "resources": []})
            case _:
                await ours.take(request)

    data = pack(
        read_listing(Listing(tools=(TOOL,), resources=({"uri": "shop://a", "name": "a"},)), Agreed("2025-11-25"))
    )
    options = ImportOptions(expose=True, credentials=["odd"])
    async with http_server(take) as server:
        service = mcp_service("odd", Url(server.url, allow_private=True), data, options, credential="odd")
        async with in_memory(service, dialect="mcp", credentials={"odd": "token-of-the-app"}) as peer:
            await peer.call("resources/subscribe", {"uri": "shop://odd/a"})
            assert not server.requests
            await peer.call("tools/call", {"name": "odd_act", "arguments": {}})
            await until(lambda: bool(subscribed))
    assert (subscribed[0].message or {})["params"] == {"uri": "shop://a"}
    assert subscribed[0].headers["authorization"] == "Bearer token-of-the-app"


async def test_a_url_is_read_before_there_is_a_loop_of_the_daemon() -> None:
    async with http_server(LegacyServer().take) as server:
        found = await anyio.to_thread.run_sync(lambda: read_mcp(Url(server.url, allow_private=True), "odd", token="t"))
    assert [operation.name for operation in found.operations] == ["act"]
    assert found.era == "legacy"
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer t"}


@pytest.mark.skipif(sys.platform == "win32", reason="the odd server is ended as POSIX does")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_change_travels_through_a_chain_of_daemons(tmp_path: Path, era: Era) -> None:
    words = list(odd().words)
    (tmp_path / "app.py").write_text(
        f"from discreet import from_mcp\nodd = from_mcp({words!r}, namespace='odd', expose=True)\n"
    )
    with http_daemon(tmp_path, "./app.py:odd", "--http-mcp") as url:
        target = Url(f"{url.rstrip('/')}/mcp", allow_private=True)
        found = await anyio.to_thread.run_sync(lambda: read_mcp(target, "far"))
        assert found.era == "modern"
        data = pack(replace(found, era=era))
        async with in_memory(mcp_service("far", target, data, ImportOptions(expose=True))) as peer:
            await peer.call("far/odd_act", {"do": "add", "name": "extra"})

            async def listed() -> bool:
                return "far/odd_extra" in [each["name"] for each in await peer.call("services/list")]

            await until(listed)
            assert (await peer.call("far/odd_extra", {"a": 1}))["content"][0]["text"] == '{"a": 1}'
            told: list[Any] = []
            await peer.call("far/odd_act", {"do": "progress"}, on_progress=told.append)
            assert [each["progress"] for each in told] == [1, 2]
            with pytest.raises(OperationFailed) as failed:
                await peer.call("far/odd_act", {"do": "error"})
            assert failed.value.details["content"] == [{"type": "text", "text": "it went wrong"}]
