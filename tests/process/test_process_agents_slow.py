"""A client that stops reading its pipe: the agent goes on, and the client misses nothing when it reads again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.encoder import encode_frame

Spawn = Callable[..., Any]

EVENTS, SIZE = 6000, 4096

AGENT = f"""
from pathlib import Path
from discreet.agents import Agent

class Talks:
    async def execute(self, context, events):
        await events.working()
        for number in range({EVENTS}):
            await events.artifact(f"{{number:06}}".ljust({SIZE}, "x"), artifact_id="a", append=True)
        await events.complete()
        Path("said").touch()

    async def cancel(self, context, events):
        pass

talks = Agent(Talks(), name="Talks", description="Says a lot.")
"""


@pytest.mark.parametrize("store", ["memory", "sqlite:tasks.db"])
def test_a_client_that_does_not_read_until_all_is_said_gets_all_of_it(
    spawn: Spawn, app_directory: Path, store: str
) -> None:
    (app_directory / "agent.py").write_text(AGENT)
    child = spawn("serve", "./agent.py:talks", "--store", store)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "talk"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    child.write(encode_frame(json.dumps(body).encode(), "content-length"))
    assert "task" in child.read()["params"]["value"]
    said = app_directory / "said"
    while not said.exists():  # the pipe is full long before
        assert child.process.poll() is None
    events = []
    while "params" in (got := child.read()):
        events.append(got["params"])
    assert got["result"] == {"completed": True, "events": EVENTS + 3}
    assert [event["seq"] for event in events] == [*range(2, EVENTS + 4)]
    values = [event["value"] for event in events]
    assert values[0]["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
    assert values[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    texts = [value["artifactUpdate"]["artifact"]["parts"][0]["text"] for value in values[1:-1]]
    assert texts == [f"{number:06}".ljust(SIZE, "x") for number in range(EVENTS)]
    assert child.end() == 0
