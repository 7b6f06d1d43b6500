"""Fronts and workers as processes on one file: how they begin, and how they end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.waits import DEADLINE_SECONDS

Spawn = Callable[..., Any]

AGENT = """
import os
import anyio
from discreet.agents import Agent

class Works:
    async def execute(self, context, events):
        await events.working(str(os.getpid()))
        if context.text == "stay":
            await anyio.sleep_forever()
        await events.complete()

    async def resume(self, context, events):
        await events.artifact("resumed")
        await events.complete()

    async def cancel(self, context, events):
        pass

agent = Agent(Works(), name="works", description="Works.")
"""


@pytest.fixture
def serve(spawn: Spawn, app_directory: Path) -> Spawn:
    (app_directory / "agent.py").write_text(AGENT)
    return lambda *flags: spawn("serve", "./agent.py:agent", "--store", "sqlite:tasks.db", *flags)


def send(front: Any, text: str) -> str:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": said, "configuration": {"returnImmediately": True}}
    task_id: str = front.call(1, "SendMessage", params)["result"]["task"]["id"]
    return task_id


def until_state(front: Any, task_id: str, state: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        task: dict[str, Any] = front.call(2, "GetTask", {"id": task_id})["result"]
        if task["status"]["state"] == f"TASK_STATE_{state}":
            return task
        time.sleep(0.02)
    raise AssertionError(f"the task never was {state}")


def test_a_worker_without_any_client_works_until_it_is_told_to_end(serve: Spawn) -> None:
    front, worker = serve("--role", "front"), serve("--role", "worker", "--no-stdio")
    for _ in range(3):
        task = until_state(front, send(front, "work"), "COMPLETED")
        assert [message["parts"][0]["text"] for message in task["history"][1:]] == [str(worker.process.pid)]
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert front.end() == 0
    assert "error" not in worker.stderr()


def test_what_a_worker_has_not_done_when_it_ends_another_one_does(serve: Spawn) -> None:
    front = serve("--role", "front")
    flags = ("--role", "worker", "--no-stdio", "--max-runs", "1", "--drain-timeout", "0.2")
    first = serve(*flags)
    begun = send(front, "stay")
    until_state(front, begun, "WORKING")
    waiting = send(front, "work")
    second = serve(*flags)
    until_state(front, waiting, "COMPLETED")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    task = until_state(front, begun, "COMPLETED")
    assert [artifact["parts"] for artifact in task["artifacts"]] == [[{"text": "resumed"}]]
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert front.end() == 0


@pytest.mark.parametrize("role", ["front", "worker"])
def test_a_role_without_a_shared_store_is_refused_in_one_line(spawn: Spawn, role: str) -> None:
    child = spawn("serve", "--role", role)
    assert child.wait() == 2
    (line,) = child.stderr().splitlines()
    assert line.startswith(f"discreet: --role {role} needs a store that other daemons share")
