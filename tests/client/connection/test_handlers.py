"""The server's requests and notifications, their handlers, and cancellation."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet.client import ConnectionFailed, InvalidReply, incoming
from discreet.errors import FailureError, InvalidParams, OperationError

from ..conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio


class Refused(OperationError, code="REFUSED"):
    """The user said no."""

    why: str


def request(method: str, request_id: Any = "s-1", params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


async def test_a_request_without_a_handler_is_method_not_found_and_its_id_is_echoed(wired: Any) -> None:
    async with wired() as (_, server):
        await server.write(request("ask", 1.5))
        reply = await server.read()
    assert (reply["id"], reply["error"]["code"]) == (1.5, -32601)


async def test_a_plain_function_may_answer_too(wired: Any) -> None:
    async with wired() as (peer, server):
        peer.on_request("double", lambda params: params["x"] * 2)
        await server.write({"jsonrpc": "2.0", "id": 1, "method": "double", "params": {"x": 4}})
        assert (await server.read())["result"] == 8


class Listener:
    async def __call__(self, params: object) -> None: ...


@pytest.mark.parametrize("register", ["on_notification", "on_request", "on_unidentified_error", "on_progress"])
async def test_what_nobody_would_await_or_can_call_is_no_handler(wired: Any, register: str) -> None:
    async with wired() as (peer, _):
        if register == "on_progress":
            with pytest.raises(TypeError, match="on_progress must be a function"):
                await peer.call("m", on_progress=5)
        else:
            given = () if register == "on_unidentified_error" else ("m",)
            with pytest.raises(TypeError, match="handler must be a function"):
                getattr(peer, register)(*given, 5)


@pytest.mark.parametrize("handler", [Listener().__call__, Listener()])
async def test_a_coroutine_function_is_no_handler_of_notifications(wired: Any, handler: Any) -> None:
    async with wired() as (peer, _):
        with pytest.raises(TypeError, match="plain function"):
            peer.on_notification("told", handler)
        with pytest.raises(TypeError, match="plain function"):
            await peer.call("m", on_progress=handler)


async def test_a_handler_may_call_back(wired: Any) -> None:
    async with wired() as (peer, server):

        async def ask_back(_: Any) -> Any:
            return await peer.call("back")

        peer.on_request("ask", ask_back)
        await server.write(request("ask"))
        call = await server.read()
        await server.reply(call, "deep")
        assert (await server.read())["result"] == "deep"


async def test_a_handlers_typed_errors_are_error_replies(wired: Any) -> None:
    async def refuse(_: Any) -> None:
        raise Refused(why="no")

    async def complain(_: Any) -> None:
        raise FailureError(InvalidParams("n", "integer", "missing"))

    async with wired() as (peer, server):
        peer.on_request("refuse", refuse)
        peer.on_request("complain", complain)
        await server.write(request("refuse"))
        refused = (await server.read())["error"]
        await server.write(request("complain"))
        invalid = (await server.read())["error"]
    assert (refused["code"], refused["data"]) == (
        -32000,
        {"code": "REFUSED", "retryable": False, "details": {"why": "no"}},
    )
    assert (invalid["code"], invalid["data"]["param"]) == (-32602, "n")


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, type[BaseException] | None]]:
    """Logger, level and exception of what was logged."""
    return [
        (record.name, record.levelname, record.exc_info[0] if record.exc_info else None) for record in caplog.records
    ]


async def test_any_other_exception_of_a_handler_is_internal_to_the_server_and_logged(
    answering: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(params: Any) -> object:
        if params == "unsendable":
            return object()
        raise ZeroDivisionError

    async def serve(server: FakeServer) -> None:
        call = await server.read()
        for params in (None, "unsendable"):
            await server.write(request("ask", 7, params))
            assert (await server.read())["error"] == {"code": -32603, "message": "Internal error"}
        await server.reply(call, "unharmed")

    async with answering(serve) as peer:
        peer.on_request("ask", broken)

        assert await peer.call("m", timeout=None) == "unharmed"
    assert logged(caplog) == [
        ("discreet.client", "ERROR", ZeroDivisionError),
        ("discreet.client", "ERROR", TypeError),
    ]


async def test_an_exception_of_a_notification_handler_is_logged_and_the_connection_goes_on(
    answering: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> None:
        raise ZeroDivisionError

    async def serve(server: FakeServer) -> None:
        call = await server.read()
        await server.notify("told")
        await server.write({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "?"}})
        await server.reply(call, "unharmed")

    async with answering(serve) as peer:
        peer.on_notification("told", broken)
        peer.on_unidentified_error(broken)

        assert await peer.call("m", timeout=None) == "unharmed"
    assert logged(caplog) == [("discreet.client", "ERROR", ZeroDivisionError)] * 2


async def test_the_server_may_cancel_its_request(wired: Any) -> None:
    async def forever(_: Any) -> None:
        await anyio.sleep_forever()

    async with wired() as (peer, server):
        peer.on_request("ask", forever)
        await server.write(request("ask", 7))
        await server.write({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 8}})
        await server.write({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}})
        reply = await server.read()
    assert (reply["id"], reply["error"]["code"]) == (7, -32800)


async def test_notifications_reach_their_handlers_in_order_and_others_are_ignored(answering: Answering) -> None:
    heard: list[Any] = []

    async def serve(server: FakeServer) -> None:
        call = await server.read()
        for value in (1, 2, 3):
            await server.write({"jsonrpc": "2.0", "method": "$/progress", "params": [value]})
            await server.write({"jsonrpc": "2.0", "method": "other", "params": [value]})
        await server.reply(call, None)

    async with answering(serve) as peer:
        peer.on_notification("$/progress", heard.append)

        await peer.call("m")
    assert heard == [[1], [2], [3]]


async def test_requests_are_answered_while_the_server_does_not_read(answering: Answering) -> None:
    async def serve(server: FakeServer) -> None:
        call = await server.read()
        for number in range(50):
            await server.write(request("ask", number))
        replies = [await server.read() for _ in range(50)]
        assert sorted(reply["id"] for reply in replies) == list(range(50))
        await server.reply(call, "done")

    async with answering(serve, capacity=64) as peer:
        assert await peer.call("m", timeout=None) == "done"


@pytest.mark.parametrize(
    ("most", "count", "method", "size"),
    [
        (None, incoming.MAX_SERVER_REQUESTS + 1, "ask", 0),  # too many open requests
        (10_000, 3, "ask", 4000),  # too many bytes of them
        (3_000_000, 6, "large", 0),  # too many bytes of replies that it leaves unread
    ],
)
async def test_a_server_that_asks_for_too_much_loses_the_connection(
    answering: Answering, monkeypatch: pytest.MonkeyPatch, most: int | None, count: int, method: str, size: int
) -> None:
    monkeypatch.setattr(incoming, "MAX_OPEN_BYTES", most or incoming.MAX_OPEN_BYTES)

    async def forever(_: Any) -> None:
        await anyio.sleep_forever()

    async def serve(server: FakeServer) -> None:
        await server.read()
        for number in range(count):
            await server.write(request(method, number, ["x" * size]))

    async with answering(serve) as peer:
        peer.on_request("ask", forever)
        peer.on_request("large", lambda _: "x" * 1_000_000)

        with pytest.raises(ConnectionFailed):
            await peer.call("m", timeout=None)


async def test_one_large_request_is_answered(wired: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "MAX_OPEN_BYTES", 100)

    async def echo(params: Any) -> Any:
        return params

    async with wired() as (peer, server):
        peer.on_request("echo", echo)
        for number in range(3):
            await server.write(request("echo", number, ["x" * 1000]))
            assert (await server.read())["result"] == ["x" * 1000]


async def test_what_nobody_handles_is_refused_without_being_kept(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "MAX_OPEN_BYTES", 1000)

    async def serve(server: FakeServer) -> None:
        call = await server.read()
        for number in range(20):
            await server.write(request("ask", number, ["x" * 900]))
        assert {(await server.read())["error"]["code"] for _ in range(20)} == {-32601}
        await server.reply(call, "done")

    async with answering(serve) as peer:
        assert await peer.call("m", timeout=None) == "done"


@pytest.mark.parametrize("size", [100, 2000])
async def test_a_request_under_a_huge_id_is_no_request(answering: Answering, size: int) -> None:
    async def serve(server: FakeServer) -> None:
        call = await server.read()
        await server.write(request("ask", "x" * size))
        answer = await server.read()
        assert (answer.get("id") == "x" * size) == (size == 100)
        await server.reply(call, "done")

    async with answering(serve) as peer:
        try:
            assert await peer.call("m", timeout=None) == "done"
            assert size == 100
        except InvalidReply:
            assert size == 2000


async def test_errors_that_name_no_request_are_logged_a_few_times(
    answering: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(server: FakeServer) -> None:
        call = await server.read()
        for _ in range(50):
            await server.write({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x" * 100_000}})
        await server.reply(call, "done")

    async with answering(serve) as peer:
        assert await peer.call("m", timeout=None) == "done"
    assert len(caplog.records) == incoming.MAX_WARNINGS
    assert all(len(record.getMessage()) < 2000 for record in caplog.records)
