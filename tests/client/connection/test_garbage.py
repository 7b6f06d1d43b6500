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
    RequestTimeout,
)
from discreet.client import connection as limits
from discreet.client.connection import Connection
from discreet.client.connector import FixedConnector
from discreet.client.incoming import Handlers
from discreet.client.task_group import background_tasks
from discreet.framing.transports.memory import memory_pair

from ..conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio

NOT_FOUND = {"code": -32601, "message": "Method not found"}


async def test_calls_fail_when_the_server_ends(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.read()
        server.transport.close()

    async with answering(serve) as peer:
        with pytest.raises(ConnectionFailed) as during:
            await peer.call("m", timeout=None)
        assert during.value.sent
        with pytest.raises(ConnectionFailed) as after:
            await peer.call("m", timeout=None)
        assert not after.value.sent
        with pytest.raises(ConnectionFailed):
            await peer.notify("m")


async def test_answers_to_other_ids_are_ignored(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        for alien in (99, "1", 1.0, "x", 10**30, -1):
            await server.write({"jsonrpc": "2.0", "id": alien, "result": "wrong"})
        await server.reply(request, "right")

    async with answering(serve) as peer:
        assert await peer.call("m") == "right"


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize(
    ("framing", "written", "said"),
    [
        (None, b"Traceback (most recent call last):\n  oops\n", "no frame: Traceback"),
        (None, b"\x00\xff" * 100, "no frame"),
        (None, b"Content-Length: ten\r\n\r\n", "no frame"),
        (None, framed(b"{x}"), "no JSON"),
        (None, framed(b'{"id":1,"result":NaN}'), "no JSON"),
        (None, framed(b'"\xff"'), "JSON"),
        (None, framed(b"[]"), "JSON"),
        (None, framed(b'{"a":1}'), "JSON"),
        (None, framed(b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (b"x" * 2000)), "a message of more than"),
        ("content-length", b"Starting \x1b[1mup\n", r"no frame: Starting \\x1b\[1mup$"),
        ("content-length", b"password=hunter2secret\n", "no frame: password=<redacted>$"),
        ("content-length", b'{"jsonrpc":"2.0"}\n', "newline"),
        ("newline", framed(b"{}"), "framing content-length"),
    ],
)
async def test_garbage_fails_the_pending_calls_and_is_shown(
    scripted: Any, framing: str | None, written: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_MESSAGE_BYTES", 1000)
    async with scripted(("raw", written), framing=framing) as peer:
        with pytest.raises(InvalidReply, match=said):
            await peer.call("m", timeout=None)


async def test_what_follows_a_message_is_not_shown(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.reply(await server.read(), 1)
        await server.read()
        await server.transport.send(b"a customer's name\n")

    async with answering(serve) as peer:
        assert await peer.call("m", timeout=None) == 1
        with pytest.raises(InvalidReply, match="no frame$"):
            await peer.call("m", timeout=None)


async def test_a_server_that_ends_without_a_message_is_told_with_what_it_wrote(scripted: Any) -> None:
    async with scripted(("raw", b"usage: server FILE\n"), ("end",)) as peer:
        with pytest.raises(ConnectionFailed, match="it wrote no message: usage: server FILE$"):
            await peer.call("m", timeout=None)


async def test_a_request_with_an_id_of_this_side_is_answered(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            request = await server.read()
            await server.write({**request, "method": "another"})
            assert (await server.read())["error"]["code"] == -32601
            peer.on_request("m", lambda _: "pong")
            await server.write(request)
            assert (await server.read())["result"] == "pong"
            await server.reply(request, "ping")

        tasks.start_soon(serve)
        assert await peer.call("m", {"a": 1}, timeout=None) == "ping"


async def test_a_raw_result_that_is_no_utf8_is_an_invalid_reply(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        for _ in range(2):
            await server.write_body(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % (await server.read())["id"])

    async with answering(serve) as peer:
        for kind in (msgspec.Raw, str):
            with pytest.raises(InvalidReply):
                await peer.call("m", type=kind, timeout=None)


async def test_messages_that_reach_no_caller_are_logged(answering: Answering, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "discreet.client")

    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.write({"jsonrpc": "2.0", "id": None, "error": {"code": 7, "message": "Seven"}})
        await server.write({"jsonrpc": "2.0", "id": 99, "result": "wrong"})
        await server.reply(request, "right")

    async with answering(serve) as peer:
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


@pytest.mark.parametrize("beginning", [b"junk", b"Content-Length: 100\r\n\r\n{", None])
async def test_silence_within_a_frame_and_endless_junk_fail_the_pending_calls(beginning: bytes | None) -> None:
    ours, theirs = memory_pair()
    handlers = Handlers(PLAIN)

    async def explain() -> ConnectionLoss:
        return ConnectionLoss("never asked")

    async def write() -> None:
        await theirs.send(beginning or b"y\n")
        while beginning is None:
            await theirs.send(b"y\n" * 1000)

    options: dict[str, Any] = {"framing": "content-length", "stall_seconds": 0.01, "junk_seconds": 0.01}
    with anyio.fail_after(20):
        async with background_tasks() as tasks:
            connection = Connection(ours, tasks, handlers=handlers, explain=explain, **options)
            tasks.start_soon(write)
            with pytest.raises(InvalidReply):
                await Peer(FixedConnector(connection), handlers).call("m", timeout=None)


async def test_after_garbage_the_next_call_is_answered(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.read()
        await server.transport.send(b"hello from print\n")
        assert (await server.read())["method"] == "$/cancelRequest"
        await server.reply(await server.read(), "well")

    async with answering(serve) as peer:
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


async def test_a_refused_notification_or_late_call_is_not_taken_for_the_open_call(wired: Any) -> None:
    refusal = {"code": -32600, "message": "Invalid Request", "data": {"reason": "oversize"}}
    told: list[object] = []
    async with wired() as (peer, server), anyio.create_task_group() as tasks:
        peer.on_unidentified_error(told.append)

        async def serve() -> None:
            for _ in range(2):
                await server.read()  # the large one
                if (message := await server.read())["method"] == "$/cancelRequest":
                    message = await server.read()
                await server.write({"jsonrpc": "2.0", "id": None, "error": refusal})
                await server.reply(message, "fine")
            for _ in range(2):  # a call that is too large itself
                await server.read()
                await server.write({"jsonrpc": "2.0", "id": None, "error": refusal})

        tasks.start_soon(serve)
        await peer.notify("large", ["x" * 1000])
        assert await peer.call("small") == "fine"
        with pytest.raises(RequestTimeout):
            await peer.call("late", ["x" * 1000], timeout=0.01)
        assert await peer.call("small") == "fine"
        assert len(told) == 2
        for size in (2000, 500):
            with pytest.raises(InvalidRequest):
                await peer.call("large", ["x" * size], timeout=None)


async def test_a_server_that_sends_the_request_back_has_not_answered(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def echo() -> None:
            while True:
                await server.write(await server.read())

        tasks.start_soon(echo)
        with pytest.raises(InvalidReply, match="sent the request back"):
            await peer.call("m", [1])
        with pytest.raises(InvalidReply, match="sent the request back"):
            await anext(peer.subscribe("m"))
        tasks.cancel_scope.cancel()
