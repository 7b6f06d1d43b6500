"""A talk with the agent, in memory and with a real process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from report import agent

from discreet.client import Peer
from discreet.testing import in_memory, spawned

HERE = Path(__file__).parent
Serving = Callable[[], AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["in memory", "spawned"])
def serving(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Serving:
    monkeypatch.setenv("REPORT_PAUSE", "0")
    return (
        (lambda: in_memory(agent)) if request.param == "in memory" else (lambda: spawned("./report.py:agent", cwd=HERE))
    )


def saying(text: str, task: str = "") -> dict[str, Any]:
    return {"message": {"messageId": text, "role": "ROLE_USER", "taskId": task, "parts": [{"text": text}]}}


async def asked(peer: Peer, topic: str) -> str:
    """A task of which the agent has asked its question."""
    task = (await peer.call("SendMessage", saying(topic)))["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert task["status"]["message"]["parts"] == [{"text": "Who will read it?"}]
    return str(task["id"])


@pytest.mark.anyio
async def test_the_pieces_of_the_stream_are_the_report(serving: Serving) -> None:
    async with serving() as peer:
        task = await asked(peer, "The tides")
        events = [event async for event in peer.subscribe("SendStreamingMessage", saying("Sailors", task))]
        pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
        assert [piece.get("append", False) for piece in pieces] == [False, True, True, True]
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"

        (report,) = (await peer.call("GetTask", {"id": task}))["artifacts"]
        assert report["parts"] == [part for piece in pieces for part in piece["artifact"]["parts"]]
        assert report["parts"][0]["text"] == "# The tides\n"
        assert "Sailors" in report["parts"][1]["text"]


@pytest.mark.anyio
async def test_what_was_written_before_a_cancel_stays(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPORT_PAUSE", "60")
    async with serving() as peer:
        task = await asked(peer, "The moon")
        states = []
        async for event in peer.subscribe("SendStreamingMessage", saying("Poets", task)):
            if "artifactUpdate" in event:
                await peer.call("CancelTask", {"id": task})
            elif "statusUpdate" in event:
                states.append(event["statusUpdate"]["status"]["state"])
        assert states[-1] == "TASK_STATE_CANCELED"
        (report,) = (await peer.call("GetTask", {"id": task}))["artifacts"]
        assert report["parts"] == [{"text": "# The moon\n"}]
