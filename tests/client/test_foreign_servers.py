"""The client with foreign servers: pygls, vscode-jsonrpc, MCP's own SDK.

`DISCREET_INTEROP_PYTHON` is a Python that has pygls and mcp, `DISCREET_INTEROP` a folder with `node_modules` (`NODE_PATH` will do
too). `DISCREET_INTEROP_REQUIRED=1` makes a missing peer a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec
import pytest

from discreet.client import (
    LSP,
    MCP,
    ClientError,
    ConnectionFailed,
    InternalError,
    InvalidParams,
    MethodNotFound,
    Peer,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from discreet.client.dialects import initialize_handshake
from support.requirements import interop_python, missing
from support.waits import DEADLINE_SECONDS

HERE = Path(__file__).parent
LARGE = "x" * 1_000_000 + "é→🙂"
SHORT = 0.1
"""The time-out, in seconds, of a call that is never answered."""


def python_with(package: str, script: str) -> list[str]:
    return [interop_python(package), "-P", str(HERE / script)]


@cache
def node_finds(module: str, node_path: str) -> bool:
    command = ["node", "-p", f'require.resolve("{module}")']
    environment = {**os.environ, "NODE_PATH": node_path}
    return subprocess.run(command, capture_output=True, check=False, env=environment, timeout=60).returncode == 0


def node_with(module: str, script: str) -> list[str]:
    node = shutil.which("node") or missing("node is not installed")
    folders = [os.environ.get("NODE_PATH", "")]
    if folder := os.environ.get("DISCREET_INTEROP"):
        folders.insert(0, os.path.join(os.path.abspath(folder), "node_modules"))
    node_path = os.pathsep.join(filter(None, folders))
    if not node_finds(module, node_path):
        missing(f"{module} is not installed where DISCREET_INTEROP or NODE_PATH says")
    return ["env", f"NODE_PATH={node_path}", node, str(HERE / script)]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "pygls": lambda: python_with("pygls", "server_pygls.py"),
    "vscode-jsonrpc": lambda: node_with("vscode-jsonrpc/node", "server_vscode.js"),
    "mcp": lambda: python_with("mcp", "server_mcp.py"),
}

Open: TypeAlias = Callable[..., AbstractAsyncContextManager[Peer]]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="the peers are started as on POSIX"),
]


def opens(name: str, dialect: Any) -> Open:
    command = COMMANDS[name]()

    @asynccontextmanager
    async def open_it(**options: Any) -> AsyncIterator[Peer]:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with connect(command, **{"dialect": dialect, "stderr": "collect", **options}) as peer:
                yield peer

    return open_it


@pytest.fixture
def lsp(anyio_backend: str) -> Open:
    """On each event loop of the client another server: what a server says does not depend on the loop that reads it."""
    return opens({"asyncio": "pygls", "trio": "vscode-jsonrpc"}[anyio_backend], LSP)


on_one_loop = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""Each of these servers takes most of a second to start."""


@pytest.fixture
def mcp() -> Open:
    return opens("mcp", MCP)


async def tool(peer: Peer, name: str, given: dict[str, object] | None = None, **options: Any) -> Any:
    """The result of an MCP server's tool."""
    result = await peer.call("tools/call", {"name": name, "arguments": given or {}}, **options)
    return result["structuredContent"]


async def test_calls_of_any_size_and_many_at_once(lsp: Open) -> None:
    found: dict[int, object] = {}
    async with lsp() as peer:
        assert await peer.call("echo", {"text": LARGE}) == {"text": LARGE}

        async def ask(number: int) -> None:
            found[number] = (await peer.call("echo", {"n": number}))["n"]

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(ask, number)
    assert found == {number: number for number in range(200)}


async def test_errors_keep_their_number_message_and_data(lsp: Open) -> None:
    async with lsp() as peer:
        with pytest.raises(MethodNotFound):
            await peer.call("no/such", {})
        with pytest.raises(InternalError) as refused:
            await peer.call("refuse", {})
        error = refused.value
        assert (error.number, error.message, error.data) == (-32050, "it rains", {"since": "noon"})
        assert (error.code, error.retryable) == ("INTERNAL", False)


async def test_requests_and_notifications_of_the_server(lsp: Open) -> None:
    told: list[object] = []

    async def answer(params: Any) -> object:
        return {"text": params["question"] + "!"}

    async with lsp() as peer:
        peer.on_notification("client/told", told.append)
        peer.on_request("client/answer", answer)
        assert await peer.call("ask", {"question": "why"}) == {"answer": "why!"}
    assert told == [{"text": "psst"}]


async def until_cancelled(count: Callable[[], Any], wanted: int) -> None:
    """Ask until the server has seen so many cancellations. The test's own deadline bounds it."""
    while await count() != wanted:
        await anyio.lowlevel.checkpoint()


async def test_a_timeout_and_a_cancelled_scope_cancel_on_the_server(lsp: Open) -> None:
    async with lsp() as peer:
        with pytest.raises(RequestTimeout):
            await peer.call("wait", {}, timeout=SHORT)
        with anyio.move_on_after(SHORT):
            await peer.call("wait", {}, timeout=None)

        async def count() -> Any:
            return (await peer.call("cancelled", {}))["count"]

        await until_cancelled(count, 2)


async def test_junk_between_frames_does_not_end_the_connection(lsp: Open) -> None:
    async with lsp() as peer:
        with suppress(ClientError):  # unless its answer came along with the junk
            await peer.call("junk", {})
        assert await peer.call("echo", {"n": 1}) == {"n": 1}


async def test_a_new_process_gets_its_handshake_before_the_call_that_needed_it(lsp: Open) -> None:
    restart = RestartPolicy(limit=2, initial=0.0)
    async with lsp(restart=restart, retry=RetryPolicy(initial=0.0)) as peer:
        with pytest.raises(ConnectionFailed) as died:
            await peer.call("die", {}, idempotent=False)
        assert died.value.loss.status == 7
        assert await peer.call("echo", {"n": 1}) == {"n": 1}
        with pytest.raises(ConnectionFailed) as given_up:
            await peer.call("die", {}, idempotent=True)
        assert given_up.value.loss.gave_up


@on_one_loop
async def test_a_server_without_its_handshake_refuses(anyio_backend: Any) -> None:
    silent = opens("vscode-jsonrpc", msgspec.structs.replace(LSP, handshake=None))
    async with silent() as peer:
        with pytest.raises(InternalError) as refused:  # its number means something else among agents
            await peer.call("echo", {"n": 1})
        assert refused.value.number == -32002


@on_one_loop
async def test_a_handshake_that_is_refused_is_a_failed_connection(mcp: Open) -> None:
    unfit = msgspec.structs.replace(MCP, handshake=initialize_handshake({"protocolVersion": 7}))
    with pytest.raises(ConnectionFailed) as raised:
        async with mcp(dialect=unfit):
            pytest.fail("there is no peer")
    assert isinstance(raised.value.__cause__, InvalidParams | InternalError)


@on_one_loop
async def test_an_mcp_server_is_called_with_newline_framing(mcp: Open) -> None:
    pings: list[object] = []

    async def pong(params: object) -> object:
        pings.append(params)
        return {}

    async with mcp() as peer:
        assert {it["name"] for it in (await peer.call("tools/list"))["tools"]} >= {"echo", "wait"}
        assert await tool(peer, "echo", {"text": LARGE}) == {"text": LARGE}
        peer.on_request("ping", pong)
        await tool(peer, "ask")
        await tool(peer, "chatter", {"lines": 20_000})
        with pytest.raises(MethodNotFound):
            await peer.call("no/such")
    assert len(pings) == 1


@on_one_loop
async def test_an_mcp_server_gets_its_own_cancel_notification(mcp: Open) -> None:
    async with mcp() as peer:
        with pytest.raises(RequestTimeout):
            await tool(peer, "wait", timeout=SHORT)
        with anyio.move_on_after(SHORT):
            await tool(peer, "wait", timeout=None)
        await until_cancelled(lambda: _cancelled(peer), 2)


async def _cancelled(peer: Peer) -> Any:
    return (await tool(peer, "cancelled"))["count"]


@on_one_loop
async def test_a_restarted_mcp_server_gets_a_new_handshake(mcp: Open) -> None:
    async with mcp(restart=RestartPolicy(initial=0.0)) as peer:
        with pytest.raises(ConnectionFailed):
            await tool(peer, "die")
        assert await tool(peer, "echo", {"n": 1}) == {"n": 1}
