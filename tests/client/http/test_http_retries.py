"""What is called again by HTTP: never what may have had an effect, and never before the server says."""

from __future__ import annotations

import pytest

from discreet.agents.methods import _METHODS
from discreet.client import ConnectionFailed, RetryPolicy, Unavailable, connect
from discreet.client.http.a2a import QUERIES
from support.http_server import HttpRequest, http_server

pytestmark = pytest.mark.anyio

AT_ONCE = RetryPolicy(attempts=3, initial=0)


async def echo(request: HttpRequest) -> None:
    await request.result(request.message.get("params"))


async def cut(request: HttpRequest) -> None:
    await request.cut()


async def test_a_query_is_repeated_after_a_loss_without_a_question_what_it_is() -> None:
    async with http_server(cut, echo) as server, connect(server.url, retry=AT_ONCE) as peer:
        await peer.call("GetTask")
        assert server.methods == ["GetTask", "GetTask"]


async def test_a_message_is_never_repeated_after_a_loss() -> None:
    async with http_server(cut) as server, connect(server.url, retry=AT_ONCE) as peer:
        with pytest.raises(ConnectionFailed):
            await peer.call("SendMessage")
        assert server.methods == ["SendMessage"]


async def test_a_message_that_was_not_taken_is_sent_again() -> None:
    async def full(request: HttpRequest) -> None:
        await request.answer(429, b"", retry_after="0")

    async with http_server(full, echo) as server, connect(server.url, retry=AT_ONCE) as peer:
        await peer.call("SendMessage")
        assert server.methods == ["SendMessage", "SendMessage"]


async def test_an_attempt_that_retry_after_puts_behind_the_deadline_is_not_made() -> None:
    async def down(request: HttpRequest) -> None:
        await request.answer(503, b"", retry_after="3600")

    retry = RetryPolicy(attempts=3, initial=0, deadline=600)
    async with http_server(down) as server, connect(server.url, retry=retry) as peer:
        with pytest.raises(Unavailable):
            await peer.call("GetTask")
        assert len(server.requests) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_counts_as_a_query_is_what_the_daemon_declares_as_one(anyio_backend: str) -> None:
    assert {name for methods in _METHODS.values() for name, it in methods.items() if it.kind == "query"} == QUERIES
