"""A daemon over HTTP whose PostgreSQL server goes away and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from discreet.gateway.monitoring import health
from support.asgi_client import AsgiClient
from support.executors import for_ever
from support.postgres import Server, running_server
from support.waits import until

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that a test may stop."""
    with running_server() as server:
        yield server


async def is_ready(client: AsgiClient) -> bool:
    status, _, body = await client.request("GET", "/readyz")
    assert (status, body) in ((200, b"ok\n"), (503, b"not ready: store\n"))
    return status == 200


async def test_while_the_server_is_away_the_daemon_is_not_ready_and_says_when_to_try_again(
    serve: Serve, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores import server_store

    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    at_once = {**hello(), "configuration": {"returnImmediately": True}}
    async with serve(agent_of(for_ever), store=server.new_database()) as client:
        task: Any = (await client.call("SendMessage", at_once, **V1))["result"]["task"]
        assert await is_ready(client)
        await anyio.to_thread.run_sync(server.stop)
        try:
            await until(lambda: _not_ready(client))
            for method, params in (("SendMessage", at_once), ("ListTasks", {})):
                error = (await client.call(method, params, **V1))["error"]
                assert error["code"] == -32000
                details = {each["@type"].rpartition(".")[2]: each for each in error["data"]}
                assert details["ErrorInfo"]["reason"] == "UNAVAILABLE", details
                assert float(details["RetryInfo"]["retryDelay"].removesuffix("s")) > 0
            status, _, _ = await client.request("GET", "/healthz")
            assert status == 200
        finally:
            await anyio.to_thread.run_sync(server.start)
        await until(lambda: is_ready(client))
        assert "result" in await client.call("SendMessage", at_once, **V1)
        again = await client.call("GetTask", {"id": task["id"]}, **V1)
        assert again["result"]["id"] == task["id"]


async def _not_ready(client: AsgiClient) -> bool:
    return not await is_ready(client)
