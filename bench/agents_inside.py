"""What contestants in this process have in common: how they are asked side by side, and what they cost."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod

from agents_requests import Requests


class Inside(ABC):
    requests: Requests
    pid = os.getpid()

    @abstractmethod
    async def answer(self, request: bytes) -> bytes: ...

    @abstractmethod
    async def stream(self, request: bytes) -> int: ...

    async def ask(self, requests: list[bytes], window: int) -> list[bytes]:
        replies: list[bytes] = []
        waiting = iter(requests)

        async def one_by_one() -> None:
            for request in waiting:
                reply = await self.answer(request)
                replies.append(reply)

        if window == 1:
            await one_by_one()
        else:
            await asyncio.gather(*(one_by_one() for _ in range(window)))
        return replies

    async def ready(self) -> None:
        """It is: everything is imported and made."""
        await asyncio.sleep(0)

    def cpu(self) -> float:
        return time.process_time()
