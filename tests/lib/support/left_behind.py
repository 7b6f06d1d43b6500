"""Ways in which code leaves something in the task that runs it, and what makes that take effect later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import anyio

from discreet import Service

FINE = 6
"""Calls that must succeed afterwards: more than run in one task."""


_LEFT_ELSEWHERE = suppress(RuntimeError)
"""The event loop closes a generator that was dropped in a task of its own. What it raises there pytest would take for a failure."""


class LeftBehind:
    """`leave(way)` leaves something in the running task; `fire()` cancels whatever was kept of it, and `close()` closes it."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._generators: list[AsyncGenerator[int]] = []
        self._cancels: list[Callable[[], object]] = []

    async def leave(self, way: str) -> None:
        await getattr(self, f"_{way}")()

    def fire(self) -> None:
        while self._cancels:
            self._cancels.pop()()

    async def close(self) -> None:
        while self._generators:
            with suppress(BaseException):  # the task is not that which opened it
                await self._generators.pop().aclose()

    async def _kept_scope(self) -> None:
        self._kept.append(lines := self._in_scope())
        async for _ in lines:
            break

    async def _expired_scope(self) -> None:
        self._kept.append(lines := self._in_scope())
        async for _ in lines:
            self.fire()
            break

    async def _kept_task_group(self) -> None:
        self._kept.append(lines := self._in_group())
        async for _ in lines:
            break

    async def _closed_elsewhere(self) -> None:
        self._generators.append(lines := self._in_group())
        async for _ in lines:
            break

    async def _dropped_scope(self) -> None:
        async for _ in self._in_scope():
            break

    async def _dropped_task_group(self) -> None:
        async for _ in self._in_group():
            break

    async def _dropped_failing_group(self) -> None:
        async for _ in self._in_failing_group():
            break

    async def _inside_task_group(self) -> None:
        async with anyio.create_task_group():
            await self._kept_task_group()

    async def _by_child(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._dropped_task_group)

    async def _entered_scope(self) -> None:
        self.enter_scope()

    async def _kept_timeout(self) -> None:
        self._kept.append(lines := self._in_timeout())
        async for _ in lines:
            break

    async def _cancelled_task(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def _swallowed_cancellation(self) -> None:
        await self._cancelled_task()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            pass

    async def _kept_task(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._cancels.append(task.cancel)

    def enter_scope(self) -> None:
        self._kept.append(scope := anyio.CancelScope())
        scope.__enter__()
        self._cancels.append(scope.cancel)

    async def _in_scope(self) -> AsyncGenerator[int]:
        with _LEFT_ELSEWHERE, anyio.CancelScope() as scope:
            self._cancels.append(scope.cancel)
            await anyio.lowlevel.checkpoint()
            yield 1

    async def _in_group(self) -> AsyncGenerator[int]:
        with _LEFT_ELSEWHERE:
            async with anyio.create_task_group() as tasks:
                self._cancels.append(tasks.cancel_scope.cancel)
                tasks.start_soon(anyio.sleep_forever)
                await anyio.lowlevel.checkpoint()
                yield 1

    async def _in_failing_group(self) -> AsyncGenerator[int]:
        with _LEFT_ELSEWHERE:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._fail)
                yield 1

    @staticmethod
    async def _fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("failed")

    async def _in_timeout(self) -> AsyncGenerator[int]:
        async with asyncio.timeout(None) as limit:
            self._cancels.append(lambda: limit.reschedule(0))
            await anyio.lowlevel.checkpoint()
            yield 1


WAYS = (
    "kept_scope",
    "expired_scope",
    "kept_task_group",
    "closed_elsewhere",
    "dropped_scope",
    "dropped_task_group",
    "dropped_failing_group",
    "inside_task_group",
    "by_child",
    "entered_scope",
)
WAYS_OF_ASYNCIO = ("kept_timeout", "cancelled_task", "swallowed_cancellation", "kept_task")


def attackable(left: LeftBehind) -> Service:
    """Handlers of several kinds that leave something behind in the `way` of their param, and `app/wait`, which does not."""
    app = Service("app", uses=["app/query"])

    @app.query
    async def query(way: str) -> str:
        await left.leave(way)
        return "left"

    @app.subscription
    async def stream(way: str) -> AsyncGenerator[int]:
        yield 1
        await left.leave(way)
        yield 2

    @app.subscription
    async def goes_on(way: str) -> AsyncGenerator[int]:
        for _ in range(3):
            yield 1
            await left.leave(way)
            await anyio.lowlevel.checkpoint()

    @app.notification
    async def notified(way: str) -> None:
        await left.leave(way)

    @app.query
    async def fire() -> None:
        left.fire()
        await left.close()

    @app.query
    async def wait(number: int) -> int:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return number

    return app
