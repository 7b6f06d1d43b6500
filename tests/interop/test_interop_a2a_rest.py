"""The HTTP+JSON clients of a2a-sdk complete a session with the gateway.

`DISCREET_A2A_V1` and `DISCREET_A2A_V03` name Python interpreters that have `a2a-sdk` of 1.x and of 0.3.x.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateways import http_daemon
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

HERE = Path(__file__).parent

APP = """
import asyncio
from discreet.agents import Agent

class Words:
    async def execute(self, context, events):
        for word in context.text.split():
            if word == "wait":
                await asyncio.sleep(3600)
            elif word == "say":
                await events.artifact("said", artifact_id="a")
            else:
                await events.complete("done")

    async def cancel(self, context, events):
        pass

agent = Agent(Words(), name="Words", description="Does as it is told.", input_modes=["*/*"])
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Of a gateway, which runs until the test ends."""
    pytest.importorskip("uvicorn")
    (tmp_path / "app.py").write_text(APP)
    with http_daemon(tmp_path, "./app.py:agent") as found:
        yield found


def session(variable: str, script: str, *arguments: str) -> dict[str, str]:
    python = os.environ.get(variable) or missing(f"{variable} names no interpreter with a2a-sdk")
    done = subprocess.run(
        [python, HERE / script, *arguments],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: value for name, _, value in (line.partition("=") for line in done.stdout.splitlines())}


def test_the_client_of_1_0_completes_a_session(url: str) -> None:
    assert session("DISCREET_A2A_V1", "session_a2a_rest.py", url) == {
        "send": "TASK_STATE_COMPLETED",
        "file": "00ff",
        "stream": "task artifact_update status_update",
        "subscribe": "task",
        "get": "True",
        "push": "c https://example.com/hook t",
        "cancel": "TASK_STATE_CANCELED",
        "rest": "status_update",
        "again": "TaskNotCancelableError",
        "unknown": "TaskNotFoundError",
        "list": "1 3",
        "wrong": "InvalidParamsError",
        "client": "task status_update",
    }


def test_the_client_of_1_0_completes_a_session_in_0_3(url: str) -> None:
    assert session("DISCREET_A2A_V1", "session_a2a_rest.py", url, "old") == {
        "send": "TASK_STATE_COMPLETED",
        "file": "00ff",
        "stream": "task artifact_update status_update",
        "subscribe": "task",
        "get": "True",
        "push": "c https://example.com/hook t",
        "cancel": "TASK_STATE_CANCELED",
        "rest": "status_update",
        "again": "TaskNotCancelableError",
        "unknown": "TaskNotFoundError",
    }


def test_the_client_of_0_3_completes_a_session(url: str) -> None:
    assert session("DISCREET_A2A_V03", "session_a2a_rest_0_3.py", url) == {
        "send": "completed",
        "file": "00ff",
        "stream": "Task TaskArtifactUpdateEvent TaskStatusUpdateEvent",
        "subscribe": "Task",
        "get": "True",
        "push": "c https://example.com/hook t",
        "kept": "https://example.com/hook",
        "cancel": "canceled",
        "rest": "TaskStatusUpdateEvent",
        "again": "400",
        "unknown": "404",
    }
