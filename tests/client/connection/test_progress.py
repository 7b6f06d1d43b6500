"""`on_progress`: the token goes out, what the server tells comes back in order, and only to the call that asked."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from discreet.client import LSP, MCP, PLAIN, Dialect

from ..conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio


def notified(dialect: Dialect, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": dialect.progress, "params": params}


async def test_progress_reaches_its_call_in_order_and_before_the_result(wired: Any) -> None:
    heard: list[object] = []
    others: list[object] = []
    async with wired() as (peer, server), anyio.create_task_group() as tasks:
        peer.on_notification("$/progress", others.append)

        async def serve() -> None:
            request = await server.read()
            token = request["params"]["_meta"]["progressToken"]
            assert request["params"] == {"a": 1, "_meta": {"x": 2, "progressToken": token}}
            for value in (1, {"half": True}, None):
                await server.write(notified(PLAIN, token=token, value=value))
            await server.write(notified(PLAIN, token="of another", value=3))
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": "done"}
            await server.write(answer, notified(PLAIN, token=token, value="late"))
            await server.reply(await server.read(), "then")

        tasks.start_soon(serve)
        params = {"a": 1, "_meta": {"x": 2}}
        assert await peer.call("work", params, on_progress=heard.append) == "done"
        assert heard == [1, {"half": True}, None]
        assert await peer.call("next") == "then"
    assert heard == [1, {"half": True}, None]
    assert others == [{"token": "of another", "value": 3}, {"token": "discreet-1", "value": "late"}]


async def test_an_exception_of_the_function_is_logged_and_the_call_goes_on(
    answering: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.write(notified(PLAIN, token=request["params"]["_meta"]["progressToken"], value=0))
        await server.reply(request, "done")

    async with answering(serve) as peer:
        assert await peer.call("work", on_progress=lambda value: 1 / value) == "done"
    assert [record.name for record in caplog.records] == ["discreet.client"]


@pytest.mark.parametrize(
    ("dialect", "asked", "sent", "heard"),
    [
        (LSP, lambda params: params["workDoneToken"], {"value": {"kind": "end"}}, {"kind": "end"}),
        (
            MCP,
            lambda params: params["_meta"]["progressToken"],
            {"progress": 1, "total": 2},
            {"progress": 1, "total": 2},
        ),
    ],
)
async def test_other_protocols_have_it_in_their_own_form(
    answering: Answering, dialect: Dialect, asked: Any, sent: dict[str, object], heard: object
) -> None:
    found: list[object] = []
    spoken = replace(dialect, handshake=None, framing="content-length")

    async def serve(server: FakeServer) -> None:
        request = await server.read()
        await server.write(notified(dialect, **{dialect.progress_member: asked(request["params"]), **sent}))
        await server.reply(request, None)

    async with answering(serve, dialect=spoken) as peer:
        await peer.call("work", on_progress=found.append)
    assert found == [heard]


@pytest.mark.parametrize("params", [[1], {"_meta": 5}])
async def test_params_without_a_place_for_the_token_are_refused(wired: Any, params: object) -> None:
    async with wired() as (peer, server):
        with pytest.raises(TypeError, match="on_progress"):
            await peer.call("work", params, on_progress=print)
        await peer.notify("first")
        assert (await server.read())["method"] == "first"
