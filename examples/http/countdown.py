"""An agent that counts down, and says each number when its time has come."""

from __future__ import annotations

import os

import anyio

from discreet.agents import Agent, RequestContext, Skill, TaskEvents


class Countdown:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        text = context.text.strip()
        if not text.isdecimal() or int(text) > 1000:
            await events.reject("Send a number of at most 1000.")
            return
        pause = float(os.environ.get("COUNTDOWN_PAUSE", "1"))  # seconds
        counted = await events.artifact(text, name="countdown")
        for number in range(int(text) - 1, -1, -1):
            await anyio.sleep(pause)
            await events.artifact(f" {number}", artifact_id=counted, append=True)
        await events.complete("Lift-off.")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        await events.cancel("Held.")


agent = Agent(
    Countdown(),
    name="Countdown",
    description="Counts down from a number.",
    version="1.0.0",
    skills=[Skill(id="count", name="Count down", description="Counts from a number to 0.", tags=("time",))],
)
