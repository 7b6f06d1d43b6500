"""What a dialect adds to JSON-RPC: its handshake, its framing, its cancel notification, its error numbers."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import msgspec
import pytest

from discreet.client import (
    ACP,
    LSP,
    MCP,
    PLAIN,
    ConnectionFailed,
    ConnectionLoss,
    Dialect,
    InternalError,
    MethodNotFound,
    OperationFailed,
    Peer,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from discreet.client.dialects import DIALECTS, initialize_handshake
from discreet.client.errors import TaskNotCancelable, TaskNotFound, remote_error
from support.waits import DEADLINE_SECONDS

from .conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio

LINES = Dialect(
    framing="newline",
    handshake=initialize_handshake({"level": 1}, then="ready"),
    cancel="drop",
    cancel_member="which",
)


async def test_the_handshake_comes_first_and_no_id_is_used_twice(answering: Answering) -> None:
    heard: list[tuple[object, object, object]] = []

    async def serve(server: FakeServer) -> None:
        for _ in range(3):
            message = await server.read()
            heard.append((message["method"], message.get("params"), message.get("id")))
            if "id" in message:
                await server.reply(message, {})

    async with answering(serve, dialect=LINES) as peer:
        await peer.call("first")
    assert heard == [("initialize", {"level": 1}, 1), ("ready", {}, None), ("first", None, 2)]


async def test_a_handshake_that_is_refused_or_unanswered_is_a_failed_connection(answering: Answering) -> None:
    async def refuse(server: FakeServer) -> None:
        message = await server.read()
        await server.fail(message, {"code": -32601, "message": "Method not found"})

    async def ignore(server: FakeServer) -> None:
        await server.read()

    for serve, timeout, cause in ((refuse, None, MethodNotFound), (ignore, 0.05, RequestTimeout)):
        with pytest.raises(ConnectionFailed) as raised:
            async with answering(serve, dialect=LINES, timeout=timeout, retry=RetryPolicy()):
                pytest.fail("there is no peer")
        assert isinstance(raised.value.__cause__, cause)


async def test_a_custom_handshake_may_use_the_whole_peer(answering: Answering) -> None:
    welcome: list[object] = []

    async def greet(peer: Peer) -> None:
        welcome.append(await peer.call("hello", {"from": "here"}, type=dict[str, str]))

    async def serve(server: FakeServer) -> None:
        message = await server.read()
        await server.reply(message, {"motd": message["params"]["from"]})

    async with answering(serve, dialect=msgspec.structs.replace(LINES, handshake=greet)):
        assert welcome == [{"motd": "here"}]


async def test_cancellations_use_the_dialects_notification_in_both_directions(answering: Answering) -> None:
    seen: list[object] = []
    stopped = anyio.Event()

    async def serve(server: FakeServer) -> None:
        call = await server.read()
        seen.append(await server.read() == {"jsonrpc": "2.0", "method": "drop", "params": {"which": call["id"]}})
        await server.write({"jsonrpc": "2.0", "id": "theirs", "method": "wait"})
        await server.notify("$/cancelRequest", {"id": "theirs"})  # means nothing here
        await server.notify("drop", {"which": "theirs"})
        seen.append((await server.read())["error"]["code"])
        stopped.set()

    async def wait(params: object) -> None:
        await anyio.sleep_forever()

    async with answering(serve, dialect=msgspec.structs.replace(LINES, handshake=None)) as peer:
        peer.on_request("wait", wait)
        with pytest.raises(RequestTimeout):
            await peer.call("long", timeout=0.05)
        await stopped.wait()
    assert seen == [True, -32800]


@pytest.mark.parametrize(
    ("name", "method", "member"),
    [
        ("plain", "$/cancelRequest", "id"),
        ("lsp", "$/cancelRequest", "id"),
        ("mcp", "notifications/cancelled", "requestId"),
        ("acp", "$/cancel_request", "requestId"),
    ],
)
def test_a_request_is_cancelled_in_the_words_of_its_protocol(name: str, method: str, member: str) -> None:
    cancellation = msgspec.json.decode(DIALECTS[name].cancellation(7))
    assert cancellation == {"jsonrpc": "2.0", "method": method, "params": {member: 7}}


def test_a2a_error_numbers_mean_nothing_in_other_protocols() -> None:
    error = b'{"code":-32001,"message":"Server overslept"}'
    assert [name for name, dialect in DIALECTS.items() if dialect.a2a] == ["plain"]
    assert isinstance(remote_error(error), TaskNotFound)
    other = remote_error(error, a2a=False)
    assert isinstance(other, InternalError)
    assert (other.number, other.message, other.retryable) == (-32001, "Server overslept", False)


async def test_an_error_number_is_read_as_the_dialect_defines_it(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        call = await server.read()
        await server.fail(call, {"code": -32001, "message": "Request timed out"})

    with pytest.raises(InternalError):
        async with answering(serve, dialect=msgspec.structs.replace(MCP, handshake=None)) as peer:
            await peer.call("tools/call")


@pytest.mark.parametrize(
    ("method", "data", "raised", "code"),
    [
        ("textDocument/hover", {}, InternalError, "INTERNAL"),
        ("textDocument/hover", {"data": {"code": "NOT_YET", "retryable": False}}, OperationFailed, "NOT_YET"),
        ("CancelTask", {}, TaskNotCancelable, "TASK_NOT_CANCELABLE"),
    ],
)
async def test_in_plain_json_rpc_a_number_of_a2a_is_that_for_a_method_of_a2a_only(
    answering: Answering, method: str, data: dict[str, Any], raised: type[RemoteError], code: str
) -> None:
    async def serve(server: FakeServer) -> None:
        call = await server.read()
        await server.fail(call, {"code": -32002, "message": "Server not initialized", **data})

    with pytest.raises(raised, match="Server not initialized") as caught:
        async with answering(serve, dialect=msgspec.structs.replace(PLAIN, framing="newline")) as peer:
            await peer.call(method)
    assert (caught.value.code, caught.value.number) == (code, -32002)


def test_each_dialect_has_its_protocols_framing() -> None:
    framings = [dialect.framing for dialect in (PLAIN, LSP, MCP, ACP)]
    assert framings == ["content-length", "content-length", "newline", "newline"]


SERVER = r"""
import json, os, sys
ready = False
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message["method"] == "ready":
        ready = True
    elif message["method"] == "initialize":
        if os.path.exists("refuse"):
            answer = {"error": {"code": -32603, "message": "not today"}}
        else:
            answer = {"result": {}}
    elif not ready:
        answer = {"error": {"code": -32002, "message": "not initialized"}}
    elif message["method"] == "die":
        os._exit(7)
    else:
        answer = {"result": "well"}
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
"""

COMMAND = [sys.executable, "-I", "-S", "-c", SERVER]


async def test_every_new_process_gets_its_handshake(tmp_path: Any) -> None:
    restart = RestartPolicy(limit=3, initial=0.0)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(COMMAND, dialect=LINES, cwd=tmp_path, restart=restart) as peer:
            for _ in range(2):
                with pytest.raises(ConnectionFailed) as died:
                    await peer.call("die")
                assert (died.value.loss.status, died.value.sent) == (7, True)
                assert await peer.call("how") == "well"
            (tmp_path / "refuse").touch()
            with pytest.raises(ConnectionFailed):
                await peer.call("die")
            with pytest.raises(ConnectionFailed) as refused:
                await peer.call("how")
            assert (refused.value.sent, refused.value.loss.gave_up) == (False, False)
            assert refused.value.loss == ConnectionLoss("the handshake failed: initialize: INTERNAL: not today")
            with pytest.raises(ConnectionFailed) as over:
                await peer.call("how")
            assert over.value.loss.gave_up
