"""The agent that discreet hosts for the measurements: does what the first word of a message says."""

from __future__ import annotations

import os
import time
from base64 import b64encode

import anyio

from discreet.agents import Agent, RequestContext, TaskEvents


class Worker:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        match context.text.split():
            case ["do"]:
                await events.artifact("Done.")
                await events.complete()
            case ["park"]:
                await events.require_input("Which one?")
            case ["stream", count, size]:
                chunk = "x" * int(size)
                artifact = await events.artifact(chunk)
                for _ in range(int(count) - 1):
                    await events.artifact(chunk, artifact_id=artifact, append=True)
                await events.complete()
            case ["random", count, size]:
                artifact = await events.artifact(_random(int(size)))
                for _ in range(int(count) - 1):
                    await events.artifact(_random(int(size)), artifact_id=artifact, append=True)
                await events.complete()

            case ["tick", count, milliseconds, after]:
                await anyio.sleep(float(after))  # until those who follow the task are there
                began = time.monotonic()
                for number in range(int(count)):
                    await anyio.sleep(max(0.0, began + number * int(milliseconds) / 1000 - time.monotonic()))
                    await events.artifact(f"@{time.time_ns()}@", artifact_id="ticks", append=number > 0)
                await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Nothing to let go of."""


def _random(size: int) -> str:
    """Text that nothing compresses."""
    return b64encode(os.urandom(size)).decode()[:size]


agent = Agent(Worker(), name="Worker", description="Does what it is told.", version="1")
