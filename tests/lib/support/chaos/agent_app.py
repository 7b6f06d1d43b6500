"""The agent of a chaos run: it publishes numbers, so that each that is lost, repeated or out of order can be seen.

A message's text is a `plan.Work` or a `plan.Mail` as JSON. Of work a chunk is `NUMBER RUN SECONDS`: the run that published it, and when; of
a mail it is `MESSAGE TICK RUN`. Each run is also noted in the file that `CHAOS_RUNS` names, outside of the store, with its message and every tick.
Where the agent takes steps, a number and a tick are one each; the effect of a step is noted, and that it is stored.
"""

from __future__ import annotations

import json
import os
import time
from itertools import count
from typing import Any

import anyio

from discreet.agents import Agent, RequestContext, Retry, Role, TaskEvents

_numbers = count()
_runs = os.open(os.environ["CHAOS_RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
STATUS_EVERY = 4


AGAIN = Retry(attempts=1000, first_pause=0.05)
NAP_SECONDS = 1.0


def note(kind: str, run: str, context: RequestContext, step: str = "") -> None:
    message = "-" if context.message is None else context.message.message_id
    os.write(_runs, f"{time.time():.4f} {kind} {os.getpid()} {run} {context.task.id} {message} {step}".encode() + b"\n")


class Counting:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await self._noted("execute", context, events)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""

    async def _noted(self, kind: str, context: RequestContext, events: TaskEvents) -> None:
        run = f"{os.getpid()}-{next(_numbers)}"
        note(kind, run, context)
        try:
            work = json.loads(context.task.history[0].parts[0].text or "")
            if "numbers" in work:
                await self._count(run, work, context, events)
            else:
                await self._take(run, context, events)
        finally:
            note("end", run, context)

    @staticmethod
    async def _take(run: str, context: RequestContext, events: TaskEvents) -> None:
        """The turn of one message. One that is resumed does all of it again."""
        assert context.message is not None, "every turn is that of a message"
        mail = json.loads(context.text)
        await events.working(f"begin {run} {mail['name']}")
        for tick in range(mail["ticks"]):
            await anyio.sleep(mail["pause"])
            note("tick", run, context)
            await events.artifact(f"{mail['name']} {tick} {run}", artifact_id="ticks", append=True)
        if mail["last"]:
            await events.complete(f"done {run}")
        else:
            await events.require_input(f"next {run} {mail['name']}")

    async def _count(self, run: str, work: dict[str, Any], context: RequestContext, events: TaskEvents) -> None:
        await events.working(f"begin {run}")
        chunks = [part.text or "" for artifact in context.task.artifacts for part in artifact.parts]
        last = float(chunks[-1].split()[2]) if chunks else time.time()
        for number in range(len(chunks) + 1, work["numbers"] + 1):
            if number > work["ask_at"] > 0 and not self._answered(events):
                return await events.require_input(f"Go on? {run}")
            pause = work["pause"] * (0.5 + number * 7 % 10 / 10) if chunks or number > 1 else 0.0
            await anyio.sleep(max(0.0, last + pause - time.time()))  # after a takeover no longer than without
            last = time.time()
            await events.artifact(f"{number} {run} {last:.4f}", artifact_id="numbers", append=True)
            if number % STATUS_EVERY == 0:
                await events.working(f"at {number} {run}")
        await events.complete(f"done {run}")

    @staticmethod
    def _answered(events: TaskEvents) -> bool:
        assert events.task is not None
        return sum(message.role is Role.USER for message in events.task.history) > 1


class Resuming(Counting):
    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        await self._noted("resume", context, events)


class Stepping(Counting):
    """Takes a step for each number and each tick. An execution that goes on asks for all of them again, and gets what is stored."""

    @staticmethod
    async def _step(name: str, run: str, context: RequestContext, events: TaskEvents, pause: float) -> None:
        async def effect() -> str:
            await anyio.sleep(pause)
            note("effect", run, context, name)
            if sum(name.encode()) % 5 == 0 and time.time_ns() % 3 == 0:  # any third time
                raise OSError
            return run

        await events.step(name, effect, retry=AGAIN)
        note("stored", run, context, name)

    @classmethod
    async def _take(cls, run: str, context: RequestContext, events: TaskEvents) -> None:
        assert context.message is not None, "every turn is that of a message"
        mail = json.loads(context.text)
        await events.working(f"begin {run} {mail['name']}")
        for tick in range(mail["ticks"]):
            await cls._step(f"tick-{tick}", run, context, events, mail["pause"])
            note("tick", run, context)
            await events.artifact(f"{mail['name']} {tick} {run}", artifact_id="ticks", append=True)
        if mail["last"]:
            await events.complete(f"done {run}")
        else:
            await events.require_input(f"next {run} {mail['name']}")

    async def _count(self, run: str, work: dict[str, Any], context: RequestContext, events: TaskEvents) -> None:
        if context.message is not None and context.message.message_id != context.task.history[0].message_id:
            return await events.complete(f"done {run}")  # what came while the task was at its end
        await events.working(f"begin {run}")
        chunks = sum(len(artifact.parts) for artifact in context.task.artifacts)
        for number in range(1, work["numbers"] + 1):
            await self._step(f"number-{number}", run, context, events, work["pause"] * (0.5 + number * 7 % 10 / 10))
            if number > chunks:
                await events.artifact(f"{number} {run} {time.time():.4f}", artifact_id="numbers", append=True)
            if number == work["nap_at"]:
                await events.sleep_for("nap", NAP_SECONDS)
            if number == work["ask_at"]:
                await events.ask("answer", f"Go on? {run}")
            if number % STATUS_EVERY == 0 and number > chunks:
                await events.working(f"at {number} {run}")
        await events.complete(f"done {run}")


agent = Agent(Resuming(), name="Counting", description="Counts.")
without_resume = Agent(Counting(), name="Counting", description="Counts, and can't go on after its daemon's death.")
stepping = Agent(Stepping(), name="Counting", description="Counts in steps.", steps=True)
