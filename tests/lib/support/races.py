"""Senders that race: each sends messages to one task, at several daemons on one store; and what became of the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import anyio
import msgspec

from discreet.a2a.errors import TaskConflict
from discreet.a2a.types import Role, Task, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.errors import FailureError

from .executors import request, task_of, until_state


class Asking:
    """Asks after each message. Keeps the texts in the order in which it was asked to work on them."""

    def __init__(self, *, works: bool) -> None:
        self.texts: list[str] = []
        self._works = works

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.texts.append(context.text)
        if self._works:
            await events.working()
            await events.artifact(context.text)
        await events.require_input(f"about {context.text}")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Outcome(msgspec.Struct):
    """What a race came to, by the texts of the messages. `came` has them for each daemon in the order in which they came there,
    `refused` the reasons. `astray` were answered by another turn."""

    came: dict[int, list[str]] = {}

    accepted: list[str] = []
    refused: dict[str, str] = {}
    astray: list[str] = []
    history: list[str] = []

    def faults(self, executed: Sequence[str]) -> dict[str, object]:
        """What was promised and is not so."""
        counts = Counter(executed)
        found: dict[str, object] = {
            "refused": Counter(self.refused.values()),
            "executed though refused": [text for text in self.refused if counts[text]],
            "lost": [text for text in self.accepted if not counts[text]],
            "executed twice": [text for text, count in counts.items() if count > 1],
            "out of order": [] if [*executed] == self.history else [*zip(executed, self.history, strict=False)],
            "not as they came to one daemon": self._out_of_order(),
            "answered by another turn": self.astray,
        }
        return {name: value for name, value in found.items() if value}

    def _out_of_order(self) -> list[tuple[list[str], list[str]]]:
        """For each daemon the messages as they came, and as they are in the history, where that differs."""
        ordered = [(came, [text for text in self.history if text in came]) for came in self.came.values()]
        return [(came, history) for came, history in ordered if came != history]


async def race(
    handlers: Sequence[RequestHandler], *, senders: int, messages: int, at_once: bool | None = None
) -> Outcome:
    """Have each sender send its messages one after the other, all of them to one task, which waits for its caller at first.

    They wait for what comes of each, or `at_once` for its place in the queue only; None: half of the senders do.
    """
    outcome = Outcome()
    asked = await task_of(handlers[0], request("begin"))
    assert asked.status.state is TaskState.INPUT_REQUIRED

    async def send(number: int) -> None:
        hurries = bool(number // len(handlers) % 2) if at_once is None else at_once
        for count in range(messages):
            text = f"{number}.{count}"
            sent = request(text, task_id=asked.id, at_once=hurries)
            daemon = number % len(handlers)
            outcome.came.setdefault(daemon, []).append(text)
            try:
                task = await task_of(handlers[daemon], sent)
            except TaskConflict:
                outcome.refused[text] = "TASK_CONFLICT"
            except FailureError as exc:
                outcome.refused[text] = type(exc.failure).__name__
            else:
                outcome.accepted.append(text)
                if text not in texts_of(task) or not (hurries or said(task) == f"about {text}"):
                    outcome.astray.append(text)

    async with anyio.create_task_group() as group:
        for number in range(senders):
            group.start_soon(send, number)
    ended = await until_state(handlers[0], asked.id, TaskState.INPUT_REQUIRED)
    outcome.history = texts_of(ended)
    return outcome


def texts_of(task: Task) -> list[str]:
    """The texts of the callers' messages."""
    return [str(each.parts[0].text) for each in task.history if each.role is Role.USER]


def said(task: Task) -> str | None:
    """What the task's status says."""
    return None if task.status.message is None else task.status.message.parts[0].text
