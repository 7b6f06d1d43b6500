"""The order of the checks before a handler: id in flight, lookup, access, kind, input."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from discreet import Context, Identity, Service
from discreet.daemon.operations.access import Access

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

DUPLICATE = {"code": -32600, "message": "Invalid Request", "data": {"reason": "duplicate-id"}}
NOBODY = Access(Identity("parent", frozenset()))


def guarded() -> tuple[Service, anyio.Event]:
    service, hold = Service("app", uses=["app/who"], authority=["who:read"]), anyio.Event()

    @service.query(timeout=None)
    async def wait() -> None:
        await hold.wait()

    @service.query(limit=1)
    async def one() -> None: ...

    @service.query(scopes=["secret"])
    async def secret() -> None: ...

    @service.subscription(scopes=["secret"])
    async def ticks() -> AsyncIterator[int]:
        yield 1

    @service.query(scopes=["who:read"])
    async def who(ctx: Context) -> Any:
        assert ctx.identity is not None
        return [ctx.identity.subject, sorted(ctx.identity.scopes or ())]

    @service.query()
    async def ask_who(ctx: Context) -> Any:
        return await ctx.call("app/who")

    return service, hold


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("app/wait", None),
        ("app/secret", None),
        ("no/such", None),
        ("app/one", {"surplus": 1}),
        ("version", None),
        ("shutdown", None),
        ("$/cancelRequest", {"id": 7}),
        ("services/call", {"operationId": "no/such"}),
    ],
)
async def test_an_id_in_flight_is_a_duplicate_whatever_else_is_wrong(
    serving: Serving, method: str, params: Any
) -> None:
    service, hold = guarded()
    async with serving(service, access=NOBODY) as wire:
        await wire.send(wire.request("app/wait", id=7))
        assert await wire.call(method, params, id=7) == {"jsonrpc": "2.0", "id": 7, "error": DUPLICATE}
        hold.set()
        assert (await wire.receive()) == {"jsonrpc": "2.0", "id": 7, "result": None}


async def test_who_may_not_call_an_operation_does_not_learn_its_kind(serving: Serving) -> None:
    service, _ = guarded()
    async with serving(service, access=NOBODY) as wire:
        for method in ("services/call", "services/subscribe"):
            for name in ("app/ticks", "app/secret"):
                reply = await wire.call(method, {"operationId": name})
                assert reply["error"]["data"]["code"] == "FORBIDDEN", (method, name)
        reply = await wire.call("services/subscribe", {"operationId": "app/one"})
        assert reply["error"]["data"] == {"reason": "invalid-operation-type"}


async def test_methods_are_listed_for_those_who_may_call_them(serving: Serving) -> None:
    service, _ = guarded()
    async with serving(service, access=NOBODY) as wire:
        for method in ("listMethods", "describeMethods"):
            names = {each["name"] for each in (await wire.call(method))["result"]}
            assert names & {"app/one", "app/wait", "app/secret", "app/ticks"} == {"app/one", "app/wait"}
            assert {"initialize", "listMethods"} <= names
    async with serving(service) as wire:
        names = {each["name"] for each in (await wire.call("listMethods"))["result"]}
        assert {"app/secret", "app/ticks"} <= names


async def test_inside_a_call_the_identity_is_that_of_the_calling_service(serving: Serving) -> None:
    service, _ = guarded()
    async with serving(service, access=NOBODY) as wire:
        assert (await wire.call("app/ask_who"))["result"] == ["app", ["who:read"]]
