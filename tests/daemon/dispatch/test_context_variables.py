"""Context variables that a handler sets reach no other request."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from discreet import Context, Service

pytestmark = pytest.mark.anyio

WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def test_a_task_that_a_handlers_call_has_started_takes_nothing_of_it_to_other_requests(serving: Any) -> None:
    app = Service("app", uses=["app/tell"])

    @app.query
    async def tell() -> str:
        await anyio.lowlevel.checkpoint()  # so that others need tasks of their own
        return WHO.get()

    @app.query
    async def ask(ctx: Context) -> list[str]:
        WHO.set("a caller")
        return [await ctx.call("app/tell"), WHO.get()]

    async with serving(app) as wire:
        assert (await wire.call("app/ask"))["result"] == ["nobody", "a caller"]
        await wire.send(*(wire.request("app/tell") for _ in range(5)))
        assert [reply["result"] for reply in await wire.receive_all(5)] == ["nobody"] * 5
