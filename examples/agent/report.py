"""An agent that writes reports: asks for what it has to know, gives out its text as it comes, and can be stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import anyio

from discreet.agents import Agent, RequestContext, Role, Skill, TaskEvents


class Writer:
    """Keeps nothing between two messages: what was said stands in the task."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        topic, *answers = _said_by_user(context)
        if not answers:
            await events.require_input("Who will read it?")
            return
        pause = float(os.environ.get("REPORT_PAUSE", "0.3"))  # seconds: there is no model here that would take its time
        await events.working("Writing.")
        report = await events.artifact(f"# {topic}\n", name="report", description=f"For {answers[-1]}.")
        for paragraph in _paragraphs(topic, answers[-1]):
            await anyio.sleep(pause)
            await events.artifact(f"\n{paragraph}\n", artifact_id=report, append=True)
        await events.complete("Done.")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """The paragraph that is being written is lost, those before it stay."""
        await events.cancel("Stopped.")


def _said_by_user(context: RequestContext) -> list[str]:
    """One text a message. This one is in the history already, as its last."""
    messages = [message for message in context.task.history if message.role is Role.USER]
    return ["\n".join(part.text or "" for part in message.parts) for message in messages]


def _paragraphs(topic: str, reader: str) -> Iterator[str]:
    yield f"{reader} asked about {topic.lower()}."
    yield "Much has been written about it, and little of that was read."
    yield "This report changes neither."


agent = Agent(
    Writer(),
    name="Report writer",
    description="Writes short reports.",
    version="1.0.0",
    skills=[
        Skill(
            id="report",
            name="Write a report",
            description="Writes a report on a topic. Asks who will read it.",
            tags=("writing",),
            examples=("The tides",),
        )
    ],
)
