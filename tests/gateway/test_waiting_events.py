"""What waits for one HTTP client: bounded, counted, in order, and gone when the request is answered."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import pytest

from discreet.daemon.memory import MemoryBudget
from discreet.errors.exceptions import FailureError
from discreet.gateway.calls import Exchange
from discreet.gateway.streams import MAX_UNDELIVERED, TURN_BYTES, Events, MessageStream
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


def queue(limit: int = 64 * MIB) -> tuple[Events, MessageStream, MemoryBudget]:
    memory = MemoryBudget(limit)
    stream = MessageStream(memory, kind="events")
    return Events(stream, memory, lambda _, value, number: b"%d:%b" % (number or 0, value)), stream, memory


async def test_no_more_is_taken_than_goes_out_at_once_and_nothing_is_lost() -> None:
    events, stream, memory = queue()
    values = [b"x" * (TURN_BYTES // 3) for _ in range(10)]
    for number, value in enumerate(values):
        events.put(value, number)
    stream.end()
    token, taken = stream.begin_response(), []
    while batch := await stream.take(token, DEADLINE_SECONDS):
        assert sum(each.size for each in batch) < TURN_BYTES + len(values[0])
        stream.taken(batch)
        taken += batch
    assert [each.text for each in taken] == [b"%d:%b" % each for each in enumerate(values)]
    assert memory.used == 0


async def test_a_producer_waits_until_the_client_has_taken_something() -> None:
    events, stream, _ = queue()
    token = stream.begin_response()
    for _ in range(MAX_UNDELIVERED):
        events.put(b"1")
    assert events.full
    went_on = anyio.Event()

    async def produce() -> None:
        await events.wait_for_room()
        went_on.set()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            await anyio.wait_all_tasks_blocked()
            batch = await stream.take(token, DEADLINE_SECONDS)
            assert batch
            assert not went_on.is_set()
            stream.taken(batch)
            await went_on.wait()


async def test_a_client_that_goes_frees_what_waited_and_its_producer() -> None:
    events, stream, memory = queue()
    for _ in range(MAX_UNDELIVERED):
        events.put(b"x" * 1000)
    stream.close()
    with anyio.fail_after(DEADLINE_SECONDS):
        await events.wait_for_room()
    events.put(b"late")
    assert (memory.used, stream.text()) == (0, [])


def test_an_event_that_does_not_fit_is_refused() -> None:
    events, _, memory = queue(limit=MIB)
    with pytest.raises(FailureError):
        events.put(b"x" * 2 * MIB)
    assert memory.used == 0


SAID = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Ada"}]}}


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask"])
async def test_an_answered_request_is_freed_without_the_collector(serve: Any, method: str) -> None:
    async with serve() as client:
        params = {"id": "none"} if method == "GetTask" else SAID
        gc.collect()
        gc.disable()
        try:
            async with client.stream(method, params, a2a_version="1.0") as reply:
                assert reply.status == 200
                await reply.body()
            assert [each for each in gc.get_objects() if isinstance(each, Exchange)] == []
        finally:
            gc.enable()
