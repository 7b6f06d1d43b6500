"""How a subscription is asked for: through `services/subscribe`, or directly where the server does not have it."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from discreet.client import InvalidParams

pytestmark = pytest.mark.anyio


class Tick(msgspec.Struct):
    at: int


async def test_a_server_without_services_subscribe_gets_the_request_as_it_is(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.fail(await server.read(), {"code": -32601, "message": "Method not found"})
            request = await server.read()
            assert (request["id"], request["method"], request["params"]) == (2, "clock/ticks", [3])
            await server.event(request, 1, {"at": 1})
            await server.complete(request, 1)

        tasks.start_soon(serve)
        assert [tick async for tick in peer.subscribe("clock/ticks", [3], type=Tick)] == [Tick(1)]


@pytest.mark.parametrize(
    ("named", "param"), [("input.n", "n"), ("input.a.b", "a.b"), ("input", "$"), ("operationId", "operationId")]
)
async def test_wrong_params_of_a_subscription_have_their_own_names(wired: Any, named: str, param: str) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:

        async def serve() -> None:
            data = {"param": named, "expected": "integer", "received": "string"}
            await server.fail(await server.read(), {"code": -32602, "message": "Invalid params", "data": data})

        tasks.start_soon(serve)
        with pytest.raises(InvalidParams) as wrong:
            await anext(peer.subscribe("clock/ticks", {"n": "x"}))
        assert (wrong.value.failure.param, wrong.value.failure.expected) == (param, "integer")
        assert wrong.value.data["param"] == param
