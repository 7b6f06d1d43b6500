"""Operations that wait until a test lets them through, and one in every way to run a handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from discreet import Service


class Gate:
    """Handlers that wait until the test lets them go, and tell when they have started."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self._open: dict[str, anyio.Event] = {}
        self.service = Service("gate")

        @self.service.query(timeout=None)
        async def wait(name: str) -> str:
            return await self._hold(name)

        @self.service.query(timeout=None, serial=True)
        async def serial(name: str) -> str:
            return await self._hold(name)

        @self.service.query(timeout=None, keyed="key")
        async def keyed(name: str, key: str) -> str:
            return await self._hold(name)

        @self.service.query(inline=True)
        def note(name: str) -> str:
            self.started.append(name)
            return name

    async def _hold(self, name: str) -> str:
        self.started.append(name)
        try:
            await self._gate(name).wait()
        finally:
            self.ended.append(name)
        return name

    def _gate(self, name: str) -> anyio.Event:
        return self._open.setdefault(name, anyio.Event())

    def open(self, *names: str) -> None:
        for name in names:
            self._gate(name).set()


def modes(note: Callable[[dict[str, Any]], None] = lambda params: None) -> Service:
    """The same operation in each of the three ways to run; `note` hears of each call."""
    service = Service("echo")

    @service.query(inline=True)
    def inline(**params: Any) -> dict[str, Any]:
        note(params)
        return params

    @service.query()
    async def coroutine(**params: Any) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        note(params)
        return params

    @service.query()
    def thread(**params: Any) -> dict[str, Any]:
        note(params)
        return params

    return service
