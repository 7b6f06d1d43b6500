"""Executions when the daemon shuts down."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

AT_ONCE = {
    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
    "configuration": {"returnImmediately": True},
}


async def test_an_execution_that_nobody_waits_for_has_the_drain_window_to_finish(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.ending = anyio.Event()
            self.done = False

        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            await self.ending.wait()
            await anyio.lowlevel.checkpoint()
            await events.complete()
            self.done = True

        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            """There is nothing to clean up."""

    slow = Slow()
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with in_memory(Agent(slow, name="slow", description="Takes its time."), store=store) as peer:
        task = (await peer.call("SendMessage", AT_ONCE))["task"]
        assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
        slow.ending.set()
    assert slow.done
    async with in_memory(Agent(slow, name="slow", description="Takes its time."), store=store) as peer:
        kept = await peer.call("GetTask", {"id": task["id"]})
        assert kept["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_one_that_does_not_end_is_cancelled_when_the_window_closes() -> None:
    class Endless:
        def __init__(self) -> None:
            self.cancelled = False

        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled = True

        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            """There is nothing to clean up."""

    endless = Endless()
    agent = Agent(endless, name="endless", description="Never ends.")
    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(agent, drain_timeout=0.1) as peer:
            await peer.call("SendMessage", AT_ONCE)
    assert endless.cancelled
