"""A task store: the one in memory, which writes to a file that it was opened and closed."""

from __future__ import annotations

import os
from typing import Any

from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import StoreError
from discreet.agents.stores.memory import MemoryStore, StoreLimits


class MineStore:
    def __init__(self, path: str, retention: Retention) -> None:
        self._path = path
        self._tasks = MemoryStore(StoreLimits(retention=retention))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    def open_early(self) -> None:
        if not os.path.isdir(os.path.dirname(self._path)):
            raise StoreError("its folder does not exist")

    def close_early(self) -> None: ...

    async def open(self) -> None:
        self._note("open")
        await self._tasks.open()

    async def close(self) -> None:
        await self._tasks.close()
        self._note("close")

    def _note(self, event: str) -> None:
        with open(self._path, "a") as file:
            file.write(event + "\n")


def open_mine(address: str, retention: Retention) -> MineStore:
    return MineStore(address.removeprefix("mine:"), retention)
