"""The service that `soak.py` calls."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel

from discreet import OperationError, Service

soak = Service("soak")


class Refused(OperationError, code="REFUSED"):
    """It was refused."""

    why: str


@soak.query(inline=True)
def inline(value: str) -> str:
    return value


@soak.query()
async def coroutine(value: str) -> str:
    await anyio.lowlevel.checkpoint()
    return value


@soak.query()
def thread(value: str) -> str:
    return value


@soak.query(timeout=None)
async def sleep(seconds: float) -> None:
    await anyio.sleep(seconds)


@soak.subscription()
async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


@soak.query(errors=[Refused])
async def fails(why: str) -> None:
    raise Refused(why=why)
