"""Bodies that have not come whole: bounded, counted, and nothing that anybody waits for at the end."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from discreet.agents import Agent
from discreet.daemon.memory import MemoryBudget
from discreet.daemon.operations.service import DeclarationError
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Overloaded
from discreet.gateway.requests import GatewayRequest, read_body
from discreet.http import asgi
from support.asgi_client import JSON
from support.executors import Scripted, echo
from support.waits import DEADLINE_SECONDS

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio

SCOPE: dict[str, Any] = {
    "type": "http",
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "path": "/",
    "raw_path": b"/",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    "client": ("127.0.0.1", 1),
    "server": ("localhost", 80),
}


async def test_a_body_counts_in_the_memory_budget_while_it_comes() -> None:
    memory = MemoryBudget(1000)
    held: list[int] = []
    pieces = [b"x" * 400] * 3

    async def receive() -> dict[str, Any]:
        held.append(memory.used)
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    with pytest.raises(FailureError) as refused:
        await read_body(GatewayRequest(SCOPE, receive), memory, limit=10_000)
    assert (refused.value.failure, held, memory.used) == (Overloaded(), [0, 400, 800], 0)


async def test_the_end_does_not_wait_for_the_rest_of_a_body() -> None:
    app = asgi(agent_of(), isolated=True)
    begun = anyio.Event()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks, app.lifespan():
            tasks.start_soon(app, SCOPE, receive, send)
            await begun.wait()
    assert sent[0]["status"] == 503


class Names:
    """A provider that gives what is no identity."""

    schemes = ("bearer",)
    realm = "test"

    def resolve(self, authorization: str) -> Any:
        return authorization


async def test_a_provider_that_gives_no_identity_is_a_fault_and_an_answer(serve: Serve) -> None:
    async with serve(provider=Names()) as client:
        answer = await client.call("GetTask", {"id": "no"}, authorization="Bearer x", **V1)
        assert answer["error"]["code"] == -32603


async def test_an_event_that_has_not_happened_is_none_to_resume_after(serve: Serve) -> None:
    async with serve() as client:
        task = (await client.call("SendMessage", hello(), **V1))["result"]["task"]
        answer = await client.call("SubscribeToTask", {"id": task["id"]}, last_event_id="99", **V1)
        assert answer["error"]["code"] == -32602
        assert "Last-Event-ID" in msgspec.json.encode(answer).decode()


@pytest.mark.parametrize("security", [[{"key": []}], [{"schemes": {}}], [{}]])
def test_requirements_in_another_form_are_refused(security: Any) -> None:
    with pytest.raises(DeclarationError, match="requires"):
        Agent(Scripted(echo), name="a", description="b", security=security)


@pytest.mark.parametrize(
    "settings", [{"http_origins": ["app.example"]}, {"http_hosts": ["https://app.example"]}], ids=["origin", "host"]
)
def test_names_that_fit_no_request_are_refused(settings: Any) -> None:
    with pytest.raises(DeclarationError):
        asgi(agent_of(), isolated=True, **settings)


async def test_bodies_that_are_whole_are_answered(serve: Serve) -> None:
    async with serve() as client:
        assert (await client.request("POST", "/", b"{}", JSON))[0] == 200


@pytest.mark.parametrize("path", ["/", "/message:send"])
async def test_an_empty_body_is_called_so(serve: Serve, path: str) -> None:
    async with serve() as client:
        headers = {"content-type": "application/json", "a2a-version": "1.0"}
        _, _, answer = await client.request("POST", path, b"", headers)
    assert b"the body is empty" in answer
