"""The agent, in memory: it counts, and goes on from where a task stands."""

from typing import Any

import pytest
from counter import agent

from discreet.client import Peer
from discreet.testing import in_memory

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTER_PAUSE", "0")


async def sent(peer: Peer, text: str) -> Any:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    return (await peer.call("SendMessage", {"message": message}))["task"]


async def test_it_counts_to_the_number() -> None:
    async with in_memory(agent) as peer:
        task = await sent(peer, "3")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "".join(part["text"] for part in task["artifacts"][0]["parts"]) == "1 2 3 "


async def test_what_is_no_number_is_rejected() -> None:
    async with in_memory(agent) as peer:
        assert (await sent(peer, "many"))["status"]["state"] == "TASK_STATE_REJECTED"
