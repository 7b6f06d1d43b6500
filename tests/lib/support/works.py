"""An agent that does what a message names, word by word, and its messages in both versions."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import anyio
import msgspec
import pytest

from discreet.a2a.types import new_id
from discreet.agents import Agent, NotCancelable, RequestContext, TaskEvents
from discreet.client import RemoteError
from discreet.errors.wire import encode_error, error_object

UNKNOWN = "00000000-0000-4000-8000-000000000000"
"""The id of a task that there is not."""


class Works:
    """Does what the message names."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.waiting = 0

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        for word in context.text.split():
            await self._do(word, events)

    async def _do(self, word: str, events: TaskEvents) -> None:
        match word:
            case "work":
                await events.working("on it")
            case "say":
                await events.artifact("said", artifact_id="a", name="words", append=True)
            case "wait":
                self.waiting += 1
                await self.go.wait()
            case "ask":
                await events.require_input("more?")
            case "reply":
                await events.reply("pong")
            case "print":
                print("from the agent")
            case "end":
                await events.complete("done")
            case _:
                await self._do_wrong(word, events)

    @staticmethod
    async def _do_wrong(word: str, events: TaskEvents) -> None:
        match word:
            case "exit":
                raise SystemExit(3)
            case "numbers":
                await events.artifact([1, 2])  # type: ignore[list-item]
            case "tuples":
                await events.working(metadata={(1, 2): 3})  # type: ignore[dict-item]
            case "nothing":
                await events.complete(())
            case "state":
                await events.status("done")  # type: ignore[arg-type]
            case _:
                raise RuntimeError(word)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        if context.metadata == {"keep": True}:
            raise NotCancelable


def agent(works: Works | None = None, **options: Any) -> Agent:
    return Agent(works or Works(), name="Works", description="Does as it is told.", **options)


def replying(works: Works | None = None, **options: Any) -> Agent:
    """An agent that may answer a message with a message."""
    return agent(works, replies_without_task=True, **options)


def v1(text: str = "end", task_id: str | None = None, **configuration: Any) -> dict[str, Any]:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": {**said, **({"taskId": task_id} if task_id else {})}, "configuration": configuration}


def v03(text: str = "end", task_id: str | None = None, **configuration: Any) -> dict[str, Any]:
    parts = [{"kind": "text", "text": text}]
    said = {"kind": "message", "messageId": new_id(), "role": "user", "parts": parts}
    return {"message": {**said, **({"taskId": task_id} if task_id else {})}, "configuration": configuration}


async def code_of(work: Any) -> int:
    """The JSON-RPC code of the error that is the answer."""
    with pytest.raises(RemoteError) as caught:
        await work
    return error_object(caught.value.failure).code


async def refused(work: Awaitable[object]) -> dict[str, Any]:
    """The error object of the answer, unchanged."""
    with pytest.raises(RemoteError) as caught:
        await work
    return as_json(caught.value)


def as_json(error: RemoteError) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode_error(error.failure))
    return decoded
