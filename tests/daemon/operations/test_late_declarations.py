"""What is declared while a service is served is served from then on."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("place", ["inline", "coroutine", "thread"])
async def test_an_operation_that_a_handler_declares_is_called_and_listed(serving: Any, place: str) -> None:
    app = Service("app")

    def declare() -> None:
        @app.query("app/late")
        async def late() -> str:
            return "late"

    @app.query(inline=True)
    def inline() -> None:
        declare()

    @app.query
    async def coroutine() -> None:
        declare()

    @app.query
    def thread() -> None:
        declare()

    async with serving(app) as wire:
        assert (await wire.call("app/late"))["error"]["code"] == -32601
        assert "result" in await wire.call(f"app/{place}")
        assert (await wire.call("app/late"))["result"] == "late"
        listed = (await wire.call("services/list"))["result"]
        assert "app/late" in str(listed)


async def test_a_name_that_is_taken_is_refused_and_the_author_told(serving: Any, logged: Any) -> None:
    app = Service("app")

    @app.query
    async def again(ctx: Context) -> str:
        @app.query("app/again")
        async def other() -> str:
            return "other"

        return "first"

    async with serving(app) as wire:
        assert [(await wire.call("app/again"))["result"] for _ in range(2)] == ["first"] * 2
        assert "operations.declared_twice" in logged.names()
