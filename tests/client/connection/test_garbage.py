"""Servers that end, write garbage, fall silent, or answer requests that were never sent: pending calls fail."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from discreet.client import (
    PLAIN,
    ConnectionFailed,
    ConnectionLoss,
    InvalidReply,
    InvalidRequest,
    Peer,
)
from discreet.client import connection as limits
from discreet.client.connection import Connection
from discreet.client.connector import FixedConnector
from discreet.client.incoming import Handlers
from discreet.client.task_group import background_tasks
from discreet.framing.transports.memory import memory_pair

pytestmark = pytest.mark.anyio

NOT_FOUND = {"code": -32601, "message": "Method not found"}


async def test_calls_fail_when_the_server_ends(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            server.transport.close()

        tasks.start_soon(serve)
        with pytest.raises(ConnectionFailed) as during:
            await peer.call("m", timeout=None)
        assert during.value.sent
        with pytest.raises(ConnectionFailed) as after:
            await peer.call("m", timeout=None)
        assert not after.value.sent
        with pytest.raises(ConnectionFailed):
            await peer.notify("m")


async def test_calls_fail_when_the_server_ends_within_a_frame(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            await server.transport.send(b'Content-Length: 100\r\n\r\n{"jsonrpc":')
            server.transport.close()

        tasks.start_soon(serve)
        with pytest.raises(ConnectionFailed):
            await peer.call("m", timeout=None)


async def test_answers_to_other_ids_are_ignored(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            request = await server.read()
            for alien in (99, "1", 1.0, "x", 10**30, -1):
                await server.write({"jsonrpc": "2.0", "id": alien, "result": "wrong"})
            await server.reply(request, "right")

        tasks.start_soon(serve)
        assert await peer.call("m") == "right"


@pytest.mark.parametrize(
    "garbage",
    [
        b"Traceback (most recent call last):\n  oops\n",
        b"\x00\xff" * 100,
        b"Content-Length: ten\r\n\r\n",
        b"Content-Length: 3\r\n\r\n{x}",
        b"Content-Length: 2\r\n\r\n[]",
        b'Content-Length: 7\r\n\r\n{"a":1}',
        b'Content-Length: 3\r\n\r\n"\xff"',
    ],
)
async def test_garbage_fails_the_pending_calls(wired: Any, garbage: bytes) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            await server.transport.send(garbage)

        tasks.start_soon(serve)
        with pytest.raises(InvalidReply):
            await peer.call("m", timeout=None)


@pytest.mark.parametrize(
    ("body", "why"), [(b"{x}", "no JSON"), (b'{"id":1,"result":NaN}', "no JSON"), (None, "no frame")]
)
async def test_a_frame_without_json_is_told_from_bytes_that_are_no_frame(
    wired: Any, body: bytes | None, why: str
) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            await (server.transport.send(b"junk\n") if body is None else server.write_body(body))

        tasks.start_soon(serve)
        with pytest.raises(InvalidReply, match=why):
            await peer.call("m", timeout=None)


@pytest.mark.parametrize(
    ("framing", "written", "said"),
    [
        ("content-length", b"Starting \x1b[1mup\n", r"no frame: Starting \\x1b\[1mup$"),
        ("content-length", b"password=hunter2secret\n", "no frame: password=<redacted>$"),
        ("content-length", b'{"jsonrpc":"2.0"}\n', "newline"),
        ("newline", b"Content-Length: 2\r\n\r\n{}", "framing content-length"),
    ],
)
async def test_what_a_server_writes_instead_of_messages_is_shown(
    wired: Any, framing: str, written: bytes, said: str
) -> None:
    async with wired(framing=framing) as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.transport.receive()
            await server.transport.send(written)

        tasks.start_soon(serve)
        with pytest.raises(InvalidReply, match=said):
            await peer.call("m", timeout=None)


async def test_a_message_that_is_too_large_is_told_as_such(wired: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MESSAGE_BYTES", 100)
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.reply(await server.read(), "x" * 200)

        tasks.start_soon(serve)
        with pytest.raises(InvalidReply, match="a message of more than"):
            await peer.call("m", timeout=None)


async def test_what_follows_a_message_is_not_shown(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.reply(await server.read(), 1)
            await server.read()
            await server.transport.send(b"a customer's name\n")

        tasks.start_soon(serve)
        assert await peer.call("m", timeout=None) == 1
        with pytest.raises(InvalidReply, match="no frame$"):
            await peer.call("m", timeout=None)


async def test_a_server_that_ends_without_a_message_is_told_with_what_it_wrote(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            await server.transport.send(b"usage: server FILE\n")
            server.transport.send_eof()

        tasks.start_soon(serve)
        with pytest.raises(ConnectionFailed, match="it wrote no message: usage: server FILE$"):
            await peer.call("m", timeout=None)


async def test_a_request_with_an_id_of_this_side_is_answered(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            request = await server.read()
            await server.write({**request, "params": {"b": 1}})
            assert (await server.read())["error"]["code"] == -32601
            peer.on_request("m", lambda _: "pong")
            await server.write(request)
            assert (await server.read())["result"] == "pong"
            await server.reply(request, "ping")

        tasks.start_soon(serve)
        assert await peer.call("m", {"a": 1}, timeout=None) == "ping"


async def test_a_raw_result_that_is_no_utf8_is_an_invalid_reply(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            for _ in range(2):
                await server.write_body(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % (await server.read())["id"])

        tasks.start_soon(serve)
        for kind in (msgspec.Raw, str):
            with pytest.raises(InvalidReply):
                await peer.call("m", type=kind, timeout=None)


async def test_messages_that_reach_no_caller_are_logged(wired: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "discreet.client")
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            request = await server.read()
            await server.write({"jsonrpc": "2.0", "id": None, "error": {"code": 7, "message": "Seven"}})
            await server.write({"jsonrpc": "2.0", "id": 99, "result": "wrong"})
            await server.reply(request, "right")

        tasks.start_soon(serve)
        assert await peer.call("m", timeout=None) == "right"
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
    assert "Seven" in caplog.records[0].getMessage()


async def test_garbage_after_an_answer_fails_and_cancels_the_other_calls(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def answered() -> None:
            assert await peer.call("m", timeout=None) == "well"

        async def lost() -> None:
            with pytest.raises(InvalidReply):
                await peer.call("m", timeout=None)

        tasks.start_soon(answered)
        first = await server.read()
        tasks.start_soon(lost)
        second = await server.read()
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": first["id"], "result": "well"})
        await server.transport.send(b"Content-Length: %d\r\n\r\n%bjunk\n" % (len(body), body))
        assert (await server.read())["params"] == {"id": second["id"]}


@pytest.mark.parametrize("beginning", [b"junk", b"Content-Length: 100\r\n\r\n{"])
async def test_silence_within_a_frame_fails_the_pending_calls(beginning: bytes) -> None:
    ours, theirs = memory_pair()
    handlers = Handlers(PLAIN)

    async def explain() -> ConnectionLoss:
        return ConnectionLoss("never asked")

    with anyio.fail_after(20):
        async with background_tasks() as tasks:
            connection = Connection(
                ours, tasks, handlers=handlers, framing="content-length", explain=explain, stall_seconds=0.01
            )
            await theirs.send(beginning)
            with pytest.raises(InvalidReply):
                await Peer(FixedConnector(connection), handlers).call("m", timeout=None)


async def test_endless_junk_fails_the_pending_calls() -> None:
    ours, theirs = memory_pair()
    handlers = Handlers(PLAIN)

    async def explain() -> ConnectionLoss:
        return ConnectionLoss("never asked")

    async def flood() -> None:
        while True:
            await theirs.send(b"y\n" * 1000)

    with anyio.fail_after(20):
        async with background_tasks() as tasks:
            connection = Connection(
                ours, tasks, handlers=handlers, framing="content-length", explain=explain, junk_seconds=0.01
            )
            tasks.start_soon(flood)
            with pytest.raises(InvalidReply):
                await Peer(FixedConnector(connection), handlers).call("m", timeout=None)


async def test_after_garbage_the_next_call_is_answered(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.read()
            await server.transport.send(b"hello from print\n")
            assert (await server.read())["method"] == "$/cancelRequest"
            await server.reply(await server.read(), "well")

        tasks.start_soon(serve)
        with pytest.raises(InvalidReply):
            await peer.call("m", timeout=None)
        assert await peer.call("m") == "well"


@pytest.mark.parametrize("members", [{}, {"result": 1, "error": NOT_FOUND}])
async def test_a_reply_that_is_neither_result_nor_error_fails_its_own_call(wired: Any, members: dict[str, Any]) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            broken, good = await server.read(), await server.read()
            await server.write({"jsonrpc": "2.0", "id": broken["id"], **members})
            await server.reply(good, "good")

        async def broken_call() -> None:
            with pytest.raises(InvalidReply):
                await peer.call("m", timeout=None)

        tasks.start_soon(serve)
        tasks.start_soon(broken_call)
        await anyio.wait_all_tasks_blocked()
        assert await peer.call("m") == "good"


async def test_the_largest_call_fails_when_the_server_refuses_an_oversized_one(wired: Any) -> None:
    refusal = {"code": -32600, "message": "Invalid Request", "data": {"reason": "oversize"}}
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            small, _large = await server.read(), await server.read()
            await server.write({"jsonrpc": "2.0", "id": None, "error": refusal})
            await server.reply(small, "fine")

        async def small_call() -> None:
            assert await peer.call("small") == "fine"

        tasks.start_soon(serve)
        tasks.start_soon(small_call)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(InvalidRequest):
            await peer.call("large", ["x" * 1000], timeout=None)
