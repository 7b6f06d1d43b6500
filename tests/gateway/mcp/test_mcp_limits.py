"""What clients may not cost others: floods, readers that do not read, garbage; and the end of the daemon."""

from __future__ import annotations

import gc
import random
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import TaskStatus

from discreet import DeclarationError, Service
from discreet.dialects.mcp.state import McpState
from discreet.gateway.mcp.conversation import Conversation
from discreet.http import asgi
from support.asgi_client import AsgiClient
from support.mcp_http import MODERN, McpHttp, begun, budget, first, messages
from support.waits import until

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio


async def test_a_caller_has_so_many_requests_under_way_and_streams_are_among_them(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_requests=2, **SERVED) as client:
        ours = await begun(client)
        async with ours.listen(), ours.open("tools/call", {"name": "work_wait"}, "slow") as reply:
            refused = [await ours.post("ping"), await ours.get(), await McpHttp(client, MODERN).post("tools/list")]
            for answer in refused:
                assert (answer.status, answer.headers["retry-after"]) == (429, "1")
                assert answer.json.get("id") == (None if answer is refused[1] else 1)
            works.going.set()
            assert len(await messages(reply)) == 1
        assert (await ours.post("ping")).status == 200


async def test_a_request_counts_until_it_is_answered_although_its_client_has_gone(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_requests=1, **SERVED) as client:
        ours = await begun(client)
        async with ours.open("tools/call", {"name": "work_wait"}, "slow") as reply:
            await reply.chunk()
        assert (await ours.post("ping")).status == 429
        works.going.set()
        await until(lambda: works.done)
        assert (await ours.post("ping")).status == 200


async def test_a_reader_that_does_not_read_stalls_nobody_else(client: AsgiClient, works: Works) -> None:
    ours, others = await begun(client), await begun(client)
    for each in (ours, others):
        await each.post("resources/subscribe", {"uri": "work://one"})
    params = {"name": "work_count", "arguments": {"to": 10_000, "size": 1000}, "_meta": {"progressToken": "t"}}
    async with ours.open("tools/call", params, "slow") as slow, ours.listen() as deaf, others.listen() as reply:
        slow.stalls = deaf.stalls = True
        for number in range(40):
            assert (await ours.call("work_touch", number)).status == 200
            [(_, told)] = await first(reply)
            assert told["method"] == "notifications/resources/updated"
        assert (await others.call("work_add", a=1, b=1)).status == 200
        assert budget(client).used < 4 * 1024 * 1024
        assert len(works.done) < 5_000


async def test_garbage_is_refused_and_nothing_breaks(client: AsgiClient) -> None:
    chance = random.Random(14)
    parts = [
        "jsonrpc",
        "2.0",
        "id",
        1,
        None,
        "method",
        "tools/call",
        "params",
        {},
        [],
        "initialize",
        "_meta",
        -1.5,
        True,
    ]

    def value(depth: int) -> Any:
        match chance.randrange(4 if depth else 1):
            case 0:
                return chance.choice(parts)
            case 1:
                return [value(depth - 1) for _ in range(chance.randrange(3))]
            case _:
                keys = "jsonrpc id method params result error _meta name uri protocolVersion".split()
                return {key: value(depth - 1) for key in chance.sample(keys, chance.randrange(6))} | {"jsonrpc": "2.0"}

    for revision in ("2025-03-26", "2025-11-25", MODERN):
        ours = McpHttp(client, revision)
        if revision != MODERN:
            await ours.begin()
        for _ in range(75):
            body = msgspec.json.encode(value(4))
            body = body[: chance.randrange(1, len(body) + 1)] if chance.random() < 0.3 else body
            version = {} if revision != MODERN else {"mcp_protocol_version": MODERN}
            answer = await ours.send(body, **version)
            assert answer.status in (200, 202, 400, 404), (body, answer)
        assert (await ours.call("work_add", "last", a=1, b=2)).result["content"][0]["text"] == "3"
    await until(lambda: budget(client).by_kind()["requests"] == 0)


async def test_at_the_end_streams_end_and_what_runs_is_answered(works: Works) -> None:
    app = asgi(works.service, isolated=True, drain_timeout=60, **SERVED)
    leaving = anyio.Event()

    async def serve_until_then(*, task_status: TaskStatus[None]) -> None:
        async with app.lifespan():
            task_status.started()
            await leaving.wait()

    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_until_then)
        client = AsgiClient(app)
        ours, modern = await begun(client), McpHttp(client, MODERN)
        async with (
            ours.listen() as listening,
            ours.open("tools/call", {"name": "work_wait"}, "w") as waiting,
            modern.open("subscriptions/listen", {"notifications": {}}, "l") as subscribed,
        ):
            await works.began.wait()
            await first(subscribed)
            leaving.set()
            assert await messages(listening) == []
            assert [each["id"] for each in await messages(subscribed)] == ["l"]
            late = (ours.post("ping"), ours.get(), modern.post("tools/list"), McpHttp(client).begin())
            for answer in [await each for each in late]:
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            works.going.set()
            assert [each["id"] for each in await messages(waiting)] == ["w"]
    assert works.done == ["waited"]


async def test_what_a_session_held_goes_with_it_and_waits_for_no_collector(serve: Serve, works: Works) -> None:
    def alive() -> int:
        return sum(isinstance(each, Conversation | McpState) for each in gc.get_objects())

    async with serve(works.service, http_max_sessions=1, **SERVED) as client:
        gc.collect()
        gc.disable()
        try:
            before = alive()
            for _ in range(3):  # each of which ends the session before it
                ours = await begun(client)
                assert (await ours.call("work_add", a=1, b=2)).status == 200
                async with ours.listen():
                    assert (await ours.call("work_touch")).status == 200
            assert (await ours.delete()).status == 204
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert alive() == before
        finally:
            gc.enable()


# -- What can't be offered to clients of MCP is said at the start --


def twins() -> Service:
    service = Service("")

    @service.query("a/b")
    async def first() -> None: ...

    @service.query("a_b")
    async def second() -> None: ...

    return service


def test_operations_of_one_tool_name_can_not_be_served() -> None:
    with pytest.raises(DeclarationError, match="operations a/b and a_b are both the tool a_b"):
        asgi(twins(), isolated=True, http_mcp=True)
    asgi(twins(), isolated=True)


# -- What is counted of the requests of MCP by HTTP --


@pytest.mark.parametrize("modern", [True, False])
async def test_requests_are_counted_when_they_are_answered_and_not_when_somebody_asks(
    client: AsgiClient, modern: bool
) -> None:
    ours = McpHttp(client, MODERN) if modern else await begun(client)
    await ours.post("tools/list")
    await ours.post("tools/call", {"name": "work_add", "arguments": {"a": 1, "b": 2}})
    methods = client._app._gateway._host.request_metrics["http"].methods  # type: ignore[attr-defined]
    await until(lambda: methods["work/add"].durations.count == 1)
    assert methods["tools/list"].durations.count == 1
