"""Streams by HTTP: events in order, and streams of tasks that go on after a loss without an event lost or doubled."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from discreet.client import (
    ConnectionFailed,
    InvalidReply,
    OperationTypeMismatch,
    Peer,
    RequestTimeout,
    Subscription,
    TaskNotFound,
    Unavailable,
    connect,
    pending,
)
from discreet.client.connector import FixedConnector
from discreet.client.dialects import PLAIN
from discreet.client.http.a2a import A2A
from discreet.client.http.connection import open_http
from discreet.client.http.wire import parse_address
from discreet.client.incoming import Handlers
from discreet.client.retry import MAX_RECONNECTIONS, RECONNECT_CAP, RECONNECT_INITIAL
from support.http_server import HttpRequest, HttpServer, http_server
from support.timing import FakeTiming

pytestmark = pytest.mark.anyio

TASK = {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}}


def status(state: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}}


def artifact(number: int) -> dict[str, Any]:
    return {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": str(number)}}}


async def taken(events: Subscription[Any], into: list[Any]) -> None:
    async for event in events:
        into.append(event)  # noqa: PERF401 - it may raise, and what came before counts


class Sends:
    """Answers with these events, each with its number; then ends, or cuts the connection."""

    def __init__(self, *events: tuple[object, int | str | None], cut: bool = False) -> None:
        self._events = events
        self._cut = cut

    async def __call__(self, request: HttpRequest) -> None:
        await request.begin_events()
        for event, number in self._events:
            await request.event(event, number)
        await (request.cut() if self._cut else request.end_events())


async def all_of(server: HttpServer, method: str = "SendStreamingMessage", params: object = None) -> list[Any]:
    async with connect(server.url) as peer:
        return [event async for event in peer.subscribe(method, params or {"message": {}})]


# -- one stretch -------------------------------------------------------------------------------------------------------


async def test_events_come_in_order_until_the_stream_ends() -> None:
    async with http_server(Sends((1, None), (2, None), (3, None))) as server:
        assert await all_of(server, "numbers") == [1, 2, 3]
        assert server.methods == ["numbers"]  # and nothing before it
        assert server.requests[0].headers["accept"].startswith("text/event-stream")


async def test_an_error_event_ends_the_stream_after_what_came_before() -> None:
    async def answer(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event(1)
        await request.event_of({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}})
        await request.until_gone()

    got: list[Any] = []
    async with http_server(answer) as server, connect(server.url) as peer:
        with pytest.raises(TaskNotFound):
            await taken(peer.subscribe("SubscribeToTask", {"id": "t"}), got)
        assert got == [1]
        await server.gone.wait()


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: 5\n\n", b'data: {"id":9,"result":1}\n\n'])
async def test_an_event_that_is_no_response_is_an_invalid_reply(data: bytes) -> None:
    async def answer(request: HttpRequest) -> None:
        await request.begin_events()
        await request.raw(data)
        await request.until_gone()

    async with http_server(answer) as server:
        with pytest.raises(InvalidReply):
            await all_of(server)


async def test_a_plain_error_is_raised_and_a_plain_result_is_none_of_a_subscription() -> None:
    async def fail(request: HttpRequest) -> None:
        await request.error({"code": -32001, "message": "Task not found"})

    async def succeed(request: HttpRequest) -> None:
        await request.result({"done": True})

    async with http_server(fail, succeed) as server:
        with pytest.raises(TaskNotFound):
            await all_of(server)
        with pytest.raises(OperationTypeMismatch) as caught:
            await all_of(server)
        assert bytes(caught.value.result or b"") == b'{"done":true}'


async def test_leaving_a_stream_closes_its_request() -> None:
    async def answer(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event(1)
        await request.until_gone()

    async with http_server(answer) as server, connect(server.url) as peer:
        async with peer.subscribe("numbers") as events:
            assert await anext(events) == 1
        await server.gone.wait()


async def test_no_event_in_time_is_a_time_out() -> None:
    async def answer(request: HttpRequest) -> None:
        await request.begin_events()
        await request.raw(b": keep-alive\n\n")
        await request.until_gone()

    async with http_server(answer) as server, connect(server.url) as peer:
        with pytest.raises(RequestTimeout):
            await anext(peer.subscribe("numbers", timeout=0.1))
        if server.requests:  # on a busy machine the time may be over before one is sent
            await server.gone.wait()


async def test_a_slow_consumer_holds_up_the_server_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the client buffers: over a pipe shared with others this would end in `StreamOverrun`."""
    monkeypatch.setattr(pending, "MAX_BUFFERED_BYTES", 10_000)
    texts = [f"{number}" * 1000 for number in range(100)]
    async with http_server(Sends(*((text, None) for text in texts))) as server, connect(server.url) as peer:
        got: list[str] = []
        async for text in peer.subscribe("texts", type=str):
            got.append(text)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
        assert got == texts


async def test_a_stream_that_nobody_holds_any_more_is_closed() -> None:
    let_go = anyio.Event()

    async def answer(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event(1)
        await let_go.wait()
        await request.event(2)
        await request.until_gone()

    async with http_server(answer) as server, connect(server.url) as peer:
        async for _ in peer.subscribe("numbers"):
            break
        gc.collect()
        let_go.set()
        await server.gone.wait()


# -- after a loss ------------------------------------------------------------------------------------------------------


async def test_after_a_loss_the_task_is_subscribed_to_and_the_message_not_sent_again() -> None:
    first = Sends((TASK, 1), (status("WORKING"), 2), cut=True)
    second = Sends((artifact(3), 3), cut=True)
    third = Sends((artifact(3), 3), (status("COMPLETED"), 4))
    async with http_server(first, second, third) as server, connect(server.url) as peer:
        sent = {"message": {}, "tenant": "ann"}
        stream = peer.subscribe("SendStreamingMessage", sent, service_params={"authorization": "Bearer s3"})
        got: list[Any] = []
        await taken(stream, got)
        assert got == [TASK, status("WORKING"), artifact(3), status("COMPLETED")]
        assert server.methods == ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]
        assert server.requests[1].message["params"] == {"id": "t", "tenant": "ann"}
        asked = [(each.headers.get("last-event-id"), each.headers["authorization"]) for each in server.requests]
        assert asked == [(None, "Bearer s3"), ("2", "Bearer s3"), ("3", "Bearer s3")]


async def test_streams_of_0_3_go_on_too() -> None:
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}}
    working = {"kind": "status-update", "taskId": "t", "contextId": "c", "final": False, "status": {"state": "working"}}
    done = {**working, "final": True, "status": {"state": "completed"}}
    async with http_server(Sends((task, 1), (working, 2), cut=True), Sends((done, 3))) as server:
        assert await all_of(server, "message/stream") == [task, working, done]
        assert server.methods == ["message/stream", "tasks/resubscribe"]
        assert server.requests[1].headers["a2a-version"] == "0.3"


async def test_a_stream_that_was_ended_in_the_middle_of_a_task_goes_on() -> None:
    first, second = Sends((TASK, 1), (status("WORKING"), 2)), Sends((status("COMPLETED"), 3))
    async with http_server(first, second) as server:
        assert await all_of(server) == [TASK, status("WORKING"), status("COMPLETED")]


async def test_a_server_that_says_twice_that_this_is_all_is_believed() -> None:
    async with http_server(Sends((TASK, 1)), Sends()) as server:
        assert await all_of(server) == [TASK]


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED"])
async def test_nothing_follows_the_event_that_ends_the_answer(state: str) -> None:
    async with http_server(Sends((TASK, 1), (status(state), 2), cut=True)) as server:
        assert await all_of(server) == [TASK, status(state)]
        assert len(server.requests) == 1


async def test_a_stream_that_goes_on_ends_where_the_answer_to_the_message_would() -> None:
    async def subscribed(request: HttpRequest) -> None:
        await request.begin_events()
        await request.event(status("INPUT_REQUIRED"), 2)
        await request.until_gone()

    async with http_server(Sends((TASK, 1), cut=True), subscribed) as server:
        assert await all_of(server) == [TASK, status("INPUT_REQUIRED")]


async def test_a_subscription_goes_on_past_a_question() -> None:
    asked, done = status("INPUT_REQUIRED"), status("COMPLETED")
    async with http_server(Sends((TASK, None), (asked, 2), cut=True), Sends((done, 3))) as server:
        assert await all_of(server, "SubscribeToTask", {"id": "t"}) == [TASK, asked, done]


async def test_without_numbers_a_loss_is_told() -> None:
    async with http_server(Sends((TASK, None), (status("WORKING"), None), cut=True)) as server:
        with pytest.raises(ConnectionFailed) as caught:
            await all_of(server)
        assert (caught.value.last_seq, len(server.requests)) == (2, 1)


async def test_a_message_whose_task_is_not_known_is_not_sent_again() -> None:
    async with http_server(Sends(cut=True)) as server:
        with pytest.raises(ConnectionFailed):
            await all_of(server)
        assert len(server.requests) == 1


async def test_a_subscription_without_an_event_yet_is_made_again() -> None:
    async with http_server(Sends(cut=True), Sends((TASK, None), (status("COMPLETED"), 2))) as server:
        assert await all_of(server, "SubscribeToTask", {"id": "t"}) == [TASK, status("COMPLETED")]


async def test_a_server_that_can_not_be_reached_at_first_is_not_tried_again() -> None:
    async def down(request: HttpRequest) -> None:
        await request.answer(503, b"")

    async with http_server(down) as server:
        with pytest.raises(Unavailable):
            await all_of(server, "SubscribeToTask", {"id": "t"})
        assert len(server.requests) == 1


async def test_an_error_that_does_not_pass_ends_the_stream() -> None:
    async def gone(request: HttpRequest) -> None:
        await request.error({"code": -32001, "message": "Task not found"})

    async with http_server(Sends((TASK, 1), cut=True), gone) as server:
        with pytest.raises(TaskNotFound):
            await all_of(server)


@asynccontextmanager
async def timed(url: str, timing: FakeTiming) -> AsyncIterator[Peer]:
    async with open_http(parse_address(url), A2A(), timing=timing) as connection:
        yield Peer(FixedConnector(connection), Handlers(PLAIN))


async def test_a_restart_is_waited_out_as_long_as_the_server_asks() -> None:
    async def down(request: HttpRequest) -> None:
        await request.answer(503, b"", retry_after="9")

    timing = FakeTiming()
    script = Sends((TASK, 1), cut=True), down, down, Sends((status("COMPLETED"), 2))
    async with http_server(*script) as server, timed(server.url, timing) as peer:
        got: list[Any] = []
        await taken(peer.subscribe("SendStreamingMessage"), got)
        assert got == [TASK, status("COMPLETED")]
        assert timing.slept == [0.0, 9.0, 9.0]


async def test_in_the_end_a_lost_server_is_given_up() -> None:
    async def cut(request: HttpRequest) -> None:
        await request.cut()

    timing = FakeTiming()
    async with http_server(Sends((TASK, 1), cut=True), cut) as server, timed(server.url, timing) as peer:
        with pytest.raises(ConnectionFailed) as caught:
            await taken(peer.subscribe("SendStreamingMessage"), [])
        assert caught.value.last_seq == 1
        assert len(server.requests) == 1 + MAX_RECONNECTIONS
        assert max(timing.slept) <= RECONNECT_CAP


async def test_a_server_that_cuts_after_every_event_is_not_pressed() -> None:
    timing = FakeTiming()
    working = [Sends((status("WORKING"), number), cut=True) for number in range(2, 7)]
    script = Sends((TASK, 1), cut=True), *working, Sends((status("COMPLETED"), 7))
    async with http_server(*script) as server, timed(server.url, timing) as peer:
        got: list[Any] = []
        await taken(peer.subscribe("SendStreamingMessage"), got)
        assert got == [TASK, *[status("WORKING")] * 5, status("COMPLETED")]
        first, *later = timing.slept
        assert (first, len(later)) == (0.0, 5)
        assert min(later) >= RECONNECT_INITIAL / 2
