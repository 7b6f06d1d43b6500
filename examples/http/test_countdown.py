"""The agent as a client on the network sees it, without a network: httpx calls the app itself."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from countdown import agent

import discreet.http


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def client(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("COUNTDOWN_PAUSE", "0")
    app = discreet.http.asgi(agent, isolated=True)
    async with (
        app.lifespan(),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost", headers={"A2A-Version": "1.0"}
        ) as made,
    ):
        yield made


async def sent(client: httpx.AsyncClient, text: str) -> Any:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
    reply = await client.post("/message:send", json={"message": message})
    assert reply.status_code == 200
    return reply.json()["task"]


@pytest.mark.anyio
async def test_it_counts_down_to_0(client: httpx.AsyncClient) -> None:
    task = await sent(client, "3")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "".join(part["text"] for part in task["artifacts"][0]["parts"]) == "3 2 1 0"


@pytest.mark.anyio
async def test_what_is_no_number_is_rejected(client: httpx.AsyncClient) -> None:
    assert (await sent(client, "soon"))["status"]["state"] == "TASK_STATE_REJECTED"


@pytest.mark.anyio
async def test_the_card_says_where_it_is(client: httpx.AsyncClient) -> None:
    card = (await client.get("/.well-known/agent-card.json")).json()
    assert {each["url"] for each in card["supportedInterfaces"]} == {"http://localhost/"}
