"""Executors and stores for tests of daemons with roles."""

from __future__ import annotations

from typing import Any

from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.runtime import Role
from discreet.agents.stores.interface import TaskStore

from .executors import Scripted, echo

FRONT = Role(executes=False, queues=True)
WORKER = Role(queues=True)


class Idle:
    """The executor of a front, which is never asked to execute anything."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        raise AssertionError("a front executes nothing")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Counting(Scripted):
    """Remembers the texts that it was asked to execute, in order."""

    def __init__(self, execute: Any = echo) -> None:
        super().__init__(execute)
        self.texts: list[str] = []

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.texts.append(context.text)
        await super().execute(context, events)


class AlteredStore:
    """A store of which a test changes some methods."""

    def __init__(self, inner: TaskStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
