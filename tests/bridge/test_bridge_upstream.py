"""The connection to the server behind a bridge: which requests share one, when it ends, and what becomes of its calls."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
import pytest

from discreet.daemon.operations.request import Request
from discreet.gateway.mcp.conversation import Conversation
from discreet.imports.targets import Url
from support.asgi_client import AsgiClient
from support.http_server import HttpRequest, http_server
from support.mcp_http import META, MODERN, McpHttp, begun
from support.vault import SECRET, digest
from support.waits import until

from .conftest import Bridged

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="process groups")]

WELCOME = {"protocolVersion": "2025-11-25", "capabilities": {}}


async def answer(request: HttpRequest) -> None:
    """As a server of both eras by HTTP does."""
    match (request.message or {}).get("method"):
        case "initialize":
            result = msgspec.json.encode({"jsonrpc": "2.0", "id": request.message["id"], "result": WELCOME})
            await request.answer(200, result, content_type="application/json", mcp_session_id="one")
        case "do/wait":
            await request.until_gone()
        case _ if request.message is not None and "id" in request.message:
            await request.result({})
        case _:
            await request.answer(202 if request.verb == "POST" else 405, b"")


async def test_requests_of_two_eras_never_share_a_connection_by_http(bridged: Bridged) -> None:
    async with http_server(answer) as server, bridged(Url(server.url, allow_private=True), share=True) as client:
        old, new = await begun(client), McpHttp(client, MODERN)
        for ours in (old, new, old, new):
            assert (await ours.post("do/say")).result == {}
        said = [each.headers for each in server.requests if (each.message or {}).get("method") == "do/say"]
    named = [(each["mcp-protocol-version"], each.get("mcp-session-id"), each.get("mcp-method")) for each in said]
    assert named == [("2025-11-25", "one", None), (MODERN, None, "do/say")] * 2


async def test_a_fault_of_our_own_loses_no_call(bridged: Bridged) -> None:
    faulty = False

    async def headers(_: str) -> Mapping[str, str]:
        if faulty:
            raise RuntimeError("no headers")
        return {}

    codes: list[int] = []
    async with (
        http_server(answer) as server,
        bridged(Url(server.url, allow_private=True), headers=headers) as client,
        anyio.create_task_group() as tasks,
    ):
        ours = await begun(client)

        async def call(method: str) -> None:
            codes.append((await ours.post(method, call_id=method)).code)

        tasks.start_soon(call, "do/wait")
        await until(lambda: "do/wait" in [each.message["method"] for each in server.requests if each.message])
        faulty = True
        await call("do/say")
        await until(lambda: len(codes) == 2)
        assert (await ours.post("do/say")).status == 404
    assert codes == [-32603, -32603]


TOOLS = {
    "tools": [
        {
            "name": "find",
            "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
        }
    ]
}


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        (
            "tools/call",
            {"name": "find", "arguments": {"region": "Überall"}},
            {"mcp-param-region": "=?base64?w5xiZXJhbGw=?="},
        ),
        ("prompts/get", {"name": "find"}, {}),
        ("resources/read", {"uri": "find"}, {}),
        ("tasks/get", {"taskId": "find"}, {}),
    ],
)
async def test_what_a_request_names_is_in_its_headers_by_http_whoever_listed_the_tools(
    bridged: Bridged, method: str, params: Any, named: Mapping[str, str]
) -> None:
    async def listing(request: HttpRequest) -> None:
        await request.result(TOOLS)

    tokens = (f"ada:{digest(SECRET)}", f"bob:{digest('other-token')}")
    async with (
        http_server(listing, answer) as server,
        bridged(Url(server.url, allow_private=True), tokens=tokens) as client,
    ):
        await McpHttp(client, MODERN, authorization=f"Bearer {SECRET}").post("tools/list")
        ours = McpHttp(client, MODERN, authorization="Bearer other-token")
        assert (await ours.post(method, params, mcp_name="find")).result == {}
        headers = server.requests[-1].headers
    assert headers["mcp-name"] == "find"
    assert named.items() <= headers.items()


class Clock:
    """Stands still. `reads` counts who looks at it."""

    now = 0.0
    reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now


async def test_no_process_ends_as_idle_under_a_request_that_is_on_its_way(
    bridged: Bridged, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("discreet.bridge.monotonic", clock)
    async with bridged(http_session_timeout=0.01) as client:
        pid = (await McpHttp(client, MODERN).post("do/say")).result["pid"]
        clock.now += 1
        request = Request("do/say", b"1", msgspec.Raw(msgspec.json.encode({"_meta": META})), {})
        assert _conversation(client).session.dialect.receive(request) is None
        seen = clock.reads
        await until(lambda: clock.reads > seen)  # the process counts as idle, or does not
        call, upstream = request.arguments or ()
        assert msgspec.json.decode(await upstream.call(call))["pid"] == pid


def _conversation(client: AsgiClient) -> Conversation:
    host = client._app._gateway._host
    return Conversation(host, lambda each: host.bridge.open_session(each, each, b""), keeps=False)


async def test_an_answered_request_waits_for_no_collector(client: AsgiClient) -> None:
    def alive() -> int:
        return sum(isinstance(each, Request) for each in gc.get_objects())

    ours = await begun(client)
    gc.collect()
    gc.disable()
    try:
        before = alive()
        for _ in range(3):
            await ours.post("do/say")
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert alive() == before
    finally:
        gc.enable()
