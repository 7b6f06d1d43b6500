"""What waits for one HTTP client: bounded, counted, and in order."""

from __future__ import annotations

import anyio
import pytest

from discreet.daemon.memory import MemoryBudget
from discreet.errors.exceptions import FailureError
from discreet.gateway.event_queue import MAX_UNDELIVERED, TURN_BYTES, EventQueue
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


def queue(limit: int = 64 * MIB) -> tuple[EventQueue, MemoryBudget]:
    memory = MemoryBudget(limit)
    return EventQueue(memory, lambda: None), memory


def test_no_more_is_taken_than_goes_out_at_once_and_nothing_is_lost() -> None:
    events, memory = queue()
    values = [b"%d" % n + b"x" * (TURN_BYTES // 3) for n in range(10)]
    for number, value in enumerate(values):
        events.put(value, number)
    taken = []
    while batch := events.take():
        assert sum(len(each.value) for each in batch) < TURN_BYTES + len(values[0])
        events.delivered(batch)
        taken += batch
    assert [(each.value, each.number) for each in taken] == [(value, n) for n, value in enumerate(values)]
    assert memory.used == 0


async def test_a_producer_waits_until_the_client_has_taken_something() -> None:
    events, _ = queue()
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
            batch = events.take()
            assert not went_on.is_set()
            events.delivered(batch)
            await went_on.wait()


async def test_a_client_that_goes_frees_what_waited_and_its_producer() -> None:
    events, memory = queue()
    for _ in range(MAX_UNDELIVERED):
        events.put(b"x" * 1000)
    batch = events.take()
    events.discard()
    with anyio.fail_after(DEADLINE_SECONDS):
        await events.wait_for_room()
    events.delivered(batch)
    events.put(b"late")
    assert (memory.used, events.take()) == (0, [])


def test_an_event_that_does_not_fit_is_refused() -> None:
    events, memory = queue(limit=MIB)
    with pytest.raises(FailureError):
        events.put(b"x" * 2 * MIB)
    assert memory.used == 0
