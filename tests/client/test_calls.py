"""Calls over a connection: answers, errors, time-outs, cancellation."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from discreet.client import (
    ConnectionFailed,
    InvalidReply,
    InvalidRequest,
    OperationFailed,
    RemoteError,
    RequestTimeout,
    RetryPolicy,
)
from discreet.errors import OperationError

from .conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio


class Point(msgspec.Struct):
    x: int


class FileNotFound(OperationError, code="FILE_NOT_FOUND", http_status=404):
    """The file does not exist."""

    path: str


FILE_NOT_FOUND = {
    "code": -32000,
    "message": "The file does not exist",
    "data": {"code": "FILE_NOT_FOUND", "retryable": True, "details": {"path": "a.txt"}},
}


async def test_a_call_is_a_request_with_an_id_and_its_result_is_decoded(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        assert request == {"jsonrpc": "2.0", "id": 1, "method": "points/get", "params": {"x": 3}}
        await server.reply(request, request["params"])

    async with answering(serve) as peer:
        assert await peer.call("points/get", Point(3), type=Point) == Point(3)


async def test_service_params_travel_beside_the_params(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        assert request["serviceParams"] == {"authorization": "Bearer x"}
        assert "params" not in request
        await server.reply(request, None)

    async with answering(serve) as peer:
        assert await peer.call("m", service_params={"authorization": "Bearer x"}) is None


async def test_answers_may_come_in_any_order(wired: Any) -> None:
    answers: dict[int, int] = {}
    async with wired() as (peer, server):

        async def ask(number: int) -> None:
            answers[number] = await peer.call("echo", [number], type=int)

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(ask, number)
            requests = [await server.read() for _ in range(50)]
            for request in reversed(requests):
                await server.reply(request, request["params"][0])
    assert answers == {number: number for number in range(50)}
    assert sorted(request["id"] for request in requests) == list(range(1, 51))


async def test_a_raw_result_is_the_undecoded_text(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.read()
        await server.write_body(b'{"jsonrpc":"2.0","id":1,"result":[1e400, 9007199254740993]}')

    async with answering(serve) as peer:
        assert bytes(await peer.call("m", type=Raw)) == b"[1e400, 9007199254740993]"


async def test_an_exception_of_the_block_is_raised_unwrapped(wired: Any) -> None:
    with pytest.raises(KeyError):
        async with wired():
            raise KeyError


async def test_a_declared_error_is_raised_as_its_class_if_the_caller_lists_it(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        for _ in range(3):
            await server.fail(await server.read(), FILE_NOT_FOUND)

    async with answering(serve) as peer:
        for known in (
            peer.call("files/read", errors=[FileNotFound]),
            anext(peer.subscribe("files/watch", errors=[FileNotFound])),
        ):
            with pytest.raises(FileNotFound) as raised:
                await known
            assert raised.value.path == "a.txt"
            failed = raised.value.__cause__
            assert isinstance(failed, OperationFailed)
            assert (failed.code, failed.retryable, failed.failure.http_status) == ("FILE_NOT_FOUND", True, 404)
            assert failed.details == FileNotFound.definition.details(path="a.txt")
        with pytest.raises(OperationFailed) as plain:
            await peer.call("files/read")
        assert (plain.value.details, plain.value.declared) == ({"path": "a.txt"}, None)


async def test_the_classes_of_the_connection_are_raised_too_after_the_last_attempt(answering: Answering) -> None:
    options = {"errors": [FileNotFound], "retry": RetryPolicy(attempts=2, initial=0.0)}

    async def serve(server: FakeServer) -> None:
        for _ in range(2):
            await server.fail(await server.read(), FILE_NOT_FOUND)

    async with answering(serve, **options) as peer:
        with pytest.raises(FileNotFound):
            await peer.call("files/read")


async def test_params_that_are_no_json_are_refused_before_anything_is_sent(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        assert request["method"] == "good"
        await server.reply(request, 1)

    async with answering(serve) as peer:
        with pytest.raises(TypeError):
            await peer.call("bad", {"x": object()})

        assert await peer.call("good") == 1


async def test_a_result_of_the_wrong_type_is_an_invalid_reply(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        await server.reply(await server.read(), {"x": "three"})

    async with answering(serve) as peer:
        with pytest.raises(InvalidReply):
            await peer.call("points/get", type=Point)


async def test_a_timeout_cancels_on_the_server_and_late_answers_are_ignored(wired: Any) -> None:
    async with wired() as (peer, server):
        with pytest.raises(RequestTimeout) as raised:
            await peer.call("slow", timeout=0.2)
        assert (raised.value.method, raised.value.seconds, raised.value.sent) == ("slow", 0.2, True)
        slow, cancel = await server.read(), await server.read()
        assert cancel == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": slow["id"]}}
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                request = await server.read()
                await server.reply(slow, "late")
                await server.reply(request, "in time")

            tasks.start_soon(serve)
            assert await peer.call("quick") == "in time"


async def test_the_default_timeout_applies_to_calls_that_set_none(wired: Any) -> None:
    async with wired(timeout=0.01) as (peer, _):
        with pytest.raises(RequestTimeout) as raised:
            await peer.call("slow")
        assert raised.value.seconds == 0.01


async def test_cancelling_the_awaiting_task_cancels_on_the_server_at_once(wired: Any) -> None:
    async with wired() as (peer, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.call, "slow")
            request = await server.read()
            tasks.cancel_scope.cancel()
        assert (await server.read())["params"] == {"id": request["id"]}


async def test_an_answered_call_is_not_cancelled(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        for _ in range(2):
            request = await server.read()
            assert request["method"] == "m"
            await server.reply(request, request["id"])

    async with answering(serve) as peer:
        assert [await peer.call("m"), await peer.call("m")] == [1, 2]


async def test_a_call_that_found_the_write_queue_full_was_not_sent(wired: Any) -> None:
    async with wired(capacity=100) as (peer, server):
        with pytest.raises(RequestTimeout) as first:
            await peer.call("m", ["x" * 1_000_000], timeout=0.2)
        with pytest.raises(RequestTimeout) as second:
            await peer.call("m", timeout=0.01)
        server.transport.close()
    assert (first.value.sent, second.value.sent) == (True, False)


async def test_notify_sends_no_id(wired: Any) -> None:
    async with wired() as (peer, server):
        await peer.notify("exit", {"now": True})
        assert await server.read() == {"jsonrpc": "2.0", "method": "exit", "params": {"now": True}}


async def test_the_last_message_still_arrives_after_the_block(wired: Any) -> None:
    async with wired() as (peer, server):
        await peer.notify("first")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await peer.call("never", timeout=None)
    assert (await server.read())["method"] == "first"


async def test_raw_bytes_go_out_between_frames_and_errors_without_an_id_reach_their_handler(wired: Any) -> None:
    heard: list[RemoteError] = []
    async with wired() as (peer, server), anyio.create_task_group() as tasks:
        peer.on_unidentified_error(heard.append)
        await peer.send_raw(b"junk")
        assert await server.transport.receive() == b"junk"

        async def serve() -> None:
            request = await server.read()
            error = {"code": -32600, "message": "Invalid Request", "data": {"reason": "malformed-header"}}
            await server.write({"jsonrpc": "2.0", "id": None, "error": error})
            await server.reply(request, 1)

        tasks.start_soon(serve)
        assert await peer.call("m") == 1
    assert [type(error) for error in heard] == [InvalidRequest]


async def test_leaving_ends_the_calls_of_other_tasks(wired: Any) -> None:
    raised: list[ConnectionFailed] = []

    async def call(peer: Any) -> None:
        try:
            await peer.call("never", timeout=None)
        except ConnectionFailed as error:
            raised.append(error)

    async with anyio.create_task_group() as tasks, wired() as (peer, _):
        tasks.start_soon(call, peer)
        await anyio.wait_all_tasks_blocked()
    assert len(raised) == 1
