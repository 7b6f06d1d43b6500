"""The service of an MCP server behind a URL: sessions that end, credentials, changes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

pytest.importorskip("httpx")
pytest.importorskip("jsonschema_rs")

from discreet import Service
from discreet.client import OperationFailed, Unavailable
from discreet.errors.codes import UPSTREAM_MESSAGE
from discreet.imports.archive import pack
from discreet.imports.from_mcp import mcp_service
from discreet.imports.mcp.model import Agreed, Era, Listing
from discreet.imports.mcp.reading import read_listing
from discreet.imports.mcp.session import read_mcp
from discreet.imports.service import ImportOptions
from discreet.imports.targets import Url
from discreet.testing import in_memory
from support.gateways import http_daemon
from support.http_server import HttpRequest, http_server
from support.waits import until

from .conftest import odd

pytestmark = pytest.mark.anyio

TOOL = {"name": "act", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class LegacyServer:
    """Of 2025-11-25. `call` answers calls of its tools; `sessions` are those that it has begun."""

    def __init__(self, call: Callable[[HttpRequest], Awaitable[None]] | None = None) -> None:
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
            capabilities = {"tools": {"listChanged": True}}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "odd"}}
            answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
            await request.json(answer, mcp_session_id=self.current)
        elif request.headers.get("mcp-session-id") != self.current:
            await request.answer(404, b"")
        elif method == "tools/list":
            await request.result({"tools": [TOOL]})
        elif method == "tools/call":
            await (request.result(DONE) if self.call is None else self.call(request))
        elif method == "GET":
            await request.answer(405, b"")
        else:
            await request.answer(202, b"")


def service_of(url: str, **options: Any) -> Service:
    data = pack(read_listing(Listing(tools=(TOOL,)), Agreed("2025-11-25")))
    credential = options.pop("credential", None)
    chosen = ImportOptions(expose=True, **options)
    return mcp_service("odd", Url(url, allow_private=True), data, chosen, credential=credential)


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
