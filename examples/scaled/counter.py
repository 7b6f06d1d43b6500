"""An agent that counts to a number. A worker that takes a task over goes on where the one before it stopped."""

from __future__ import annotations

import os

import anyio

from discreet.agents import Agent, RequestContext, Role, Skill, Task, TaskEvents

ARTIFACT = "numbers"


class Counter:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await self._count(context.task, events)

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        await self._count(context.task, events)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        await events.cancel("Stopped.")

    async def _count(self, task: Task, events: TaskEvents) -> None:
        *_, asked = (message for message in task.history if message.role is Role.USER)
        text = (asked.parts[0].text or "").strip()
        if not text.isdecimal() or not 0 < int(text) <= 1000:
            await events.reject("Send a number from 1 to 1000.")
            return
        pause = float(os.environ.get("COUNTER_PAUSE", "1"))  # seconds
        counted = len(task.artifacts[0].parts) if task.artifacts else 0
        await events.working()
        for number in range(counted + 1, int(text) + 1):
            await anyio.sleep(pause)
            await events.artifact(f"{number} ", artifact_id=ARTIFACT, append=number > 1, last_chunk=number == int(text))
        await events.complete("Done.")


agent = Agent(
    Counter(),
    name="Counter",
    description="Counts to a number.",
    version="1.0.0",
    skills=[Skill(id="count", name="Count", description="Counts from 1 to a number.", tags=("time",))],
)
