"""Bodies: what every endpoint refuses of one, and those that have not come whole: bounded, counted, and nothing that anybody waits for."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from discreet import Service
from discreet.daemon.memory import MemoryBudget
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Overloaded
from discreet.gateway.requests import GatewayRequest, read_body
from discreet.http import asgi
from support.asgi_client import JSON, AsgiClient
from support.waits import DEADLINE_SECONDS

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

A2A = {"json-rpc": "/", "http-json": "/message:send"}
PARSING = {**A2A, "operations": "/operations/shop/get"}
ENDPOINTS = {**PARSING, "mcp": "/mcp"}
LIMIT = 250_000


def shop() -> Service:
    service = Service("shop")

    @service.query
    def get(name: str) -> str:
        return name

    return service


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    """Of a daemon with every endpoint that takes bodies."""
    headers = {**JSON, "a2a-version": "1.0", "accept": "application/json, text/event-stream"}
    settings = {"http_operations": True, "http_mcp": True, "max_message_bytes": LIMIT}
    async with serve(agent_of(), shop(), headers=headers, **settings) as found:
        yield found


async def refusal(client: AsgiClient, path: str, body: bytes, **headers: str) -> tuple[int, str | None, bytes]:
    """The status, whether the connection ends, and the body of the answer."""
    status, told, answer = await client.request("POST", path, body, headers)
    return status, told.get("connection"), answer


@pytest.mark.parametrize("endpoint", PARSING)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "invalid-json"),
        (b'{"name": "pen"} x', "invalid-json"),
        (b'{"name": "\xff"}', "invalid-utf8"),
        (b'{"name": "\\ud800"}', "invalid-utf8"),
        (b'{"name": ' + b"[" * 100_000, "invalid-json"),
        (b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "malformed-envelope"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_body_that_is_no_json_is_refused_with_the_reason(
    client: AsgiClient, endpoint: str, body: bytes, reason: str
) -> None:
    status, connection, answer = await refusal(client, ENDPOINTS[endpoint], body)
    assert (status, connection) == (200 if endpoint == "json-rpc" else 400, None)
    assert re.findall(r'"reason":"([a-z0-9-]+)"', answer.decode()) == [reason]
    if endpoint in A2A:
        assert (b"the body is empty" in answer) is (not body)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"content-type": "text/plain"}, 415, "unsupported-content-type"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported-content-type"),
        ({"content-type": ""}, 415, "unsupported-content-type"),
        ({"content-type": "application/json; charset=latin-1"}, 415, "bad-charset"),
        ({"content-length": "99999999999999999999"}, 413, "oversize"),
        ({"content-length": "2", "body": "x" * (LIMIT + 1)}, 413, "oversize"),
    ],
    ids=["plain", "form", "none", "latin-1", "announced", "oversize"],
)
async def test_a_body_that_a_web_page_could_send_or_that_is_too_large_is_refused_and_the_connection_ends(
    client: AsgiClient, endpoint: str, headers: dict[str, str], status: int, reason: str
) -> None:
    given = dict(headers)
    found, connection, answer = await refusal(client, ENDPOINTS[endpoint], given.pop("body", "{}").encode(), **given)
    assert (found, connection) == (status, "close")
    assert re.findall(r'"reason":"([a-z0-9-]+)"', answer.decode()) == [reason]


@pytest.mark.parametrize("endpoint", A2A)
@pytest.mark.parametrize(
    "media_type", ["application/a2a+json", "application/JSON; charset=UTF-8", 'application/json; charset="utf-8"']
)
async def test_json_has_two_media_types_in_any_case(client: AsgiClient, endpoint: str, media_type: str) -> None:
    _, _, answer = await refusal(client, ENDPOINTS[endpoint], b"{}", **{"content-type": media_type})
    assert re.findall(r'"reason":"([A-Z_]+)"', answer.decode())[0] in ("INVALID_REQUEST", "INVALID_PARAMS")


# -- bodies that have not come whole --


SCOPE: dict[str, Any] = {
    "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/", "raw_path": b"/",
    "query_string": b"", "root_path": "", "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
}  # fmt: skip


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


@pytest.mark.parametrize("endpoint", PARSING)
async def test_a_body_that_comes_too_slowly_is_given_up(serve: Serve, endpoint: str) -> None:
    headers = {**JSON, "a2a-version": "1.0"}
    async with (
        serve(agent_of(), shop(), http_operations=True, frame_timeout=0.05) as client,
        client.open("POST", ENDPOINTS[endpoint], None, headers) as reply,
    ):
        assert (reply.status, b"TIMEOUT" in await reply.body()) == (408, True)
        assert reply.headers["connection"] == "close"
