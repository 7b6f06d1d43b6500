"""Much at once: quick messages are all answered, messages whose tasks never end do not block others, and large tasks are read
as fast as their reader takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.agents.methods import MAX_WAITING
from discreet.client import Overloaded, Peer
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


MIB = 1024 * 1024


class Patient:
    """Completes its tasks at once, with a large artifact where it is asked to, or never."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        if context.text == "stay":
            await events.working()
            await anyio.sleep_forever()
        if context.text == "large":
            await events.artifact("x" * MIB)
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


def agent() -> Agent:
    return Agent(Patient(), name="patient", description="Waits.")


def message(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


async def test_a_burst_of_quick_messages_is_answered_whatever_its_size() -> None:
    states: list[str] = []

    async def send(peer: Peer) -> None:
        result = await peer.call("SendMessage", message("go"))
        states.append(result["task"]["status"]["state"])

    async with in_memory(agent(), timeout=DEADLINE_SECONDS) as peer, anyio.create_task_group() as senders:
        for _ in range(2 * MAX_WAITING):
            senders.start_soon(send, peer)
    assert states == ["TASK_STATE_COMPLETED"] * (2 * MAX_WAITING)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
async def test_messages_beyond_a_thousand_that_never_end_are_refused_and_other_methods_go_on() -> None:
    refused: list[int] = []
    extra = 20

    async def send(peer: Peer) -> None:
        try:
            await peer.call("SendMessage", message("stay"))
        except Overloaded:
            refused.append(1)

    async with (
        in_memory(agent(), timeout=DEADLINE_SECONDS, drain_timeout=0.1) as peer,
        anyio.create_task_group() as senders,
    ):
        for _ in range(MAX_WAITING + extra):
            senders.start_soon(send, peer)
        listed: dict[str, Any] = {"totalSize": 0}
        with anyio.fail_after(DEADLINE_SECONDS):
            while listed["totalSize"] < MAX_WAITING:
                listed = await peer.call("ListTasks", {"pageSize": 1})
            while len(refused) < extra:
                await peer.call("GetTask", {"id": listed["tasks"][0]["id"]})
        assert len(refused) == extra
        canceled = await peer.call("CancelTask", {"id": listed["tasks"][0]["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        senders.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
@pytest.mark.parametrize(
    ("method", "params"), [("GetTask", {}), ("tasks/get", {}), ("ListTasks", {"includeArtifacts": True})]
)
async def test_many_reads_of_large_stored_tasks_wait_for_their_reader_and_none_is_refused(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    sizes: list[int] = []
    count, budget = 64, 16 * MIB

    async def read(peer: Peer, task: str) -> None:
        result = await peer.call(method, params or {"id": task}, type=Raw)
        sizes.append(len(bytes(result)))

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with in_memory(agent(), timeout=DEADLINE_SECONDS, max_memory=budget, store=store) as peer:
        task = (await peer.call("SendMessage", message("large")))["task"]["id"]
        async with anyio.create_task_group() as readers:
            for _ in range(count):
                readers.start_soon(read, peer, task)
    assert len(sizes) == count
    assert sum(sizes) >= 4 * budget
