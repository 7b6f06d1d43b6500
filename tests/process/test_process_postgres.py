"""Daemons on one database of PostgreSQL, as processes: refused at the start, and while their server is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.postgres import Server, running_server
from support.waits import DEADLINE_SECONDS

Spawn = Callable[..., Any]

AGENT = """
from discreet.agents import Agent

class Works:
    async def execute(self, context, events):
        await events.working()
        await events.complete()

    async def cancel(self, context, events):
        pass

agent = Agent(Works(), name="works", description="Works.")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that tests may stop."""
    with running_server() as server:
        yield server


@pytest.fixture
def serve(spawn: Spawn, server: Server, app_directory: Path) -> Spawn:
    """Daemons with the agent on one database."""
    (app_directory / "agent.py").write_text(AGENT)
    url = server.new_database()
    return lambda: spawn("serve", "./agent.py:agent", "--store", url)


def begin(child: Any, text: str) -> str:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": said, "configuration": {"returnImmediately": True}}
    task_id: str = child.call(1, "SendMessage", params)["result"]["task"]["id"]
    return task_id


def until_ended(child: Any, task_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        task: dict[str, Any] = child.call(2, "GetTask", {"id": task_id})["result"]
        if task["status"]["state"] != "TASK_STATE_WORKING":
            return task
    raise AssertionError("the task never ended")


def test_a_call_while_the_server_is_away_is_unavailable_and_later_ones_are_answered(
    serve: Spawn, server: Server
) -> None:
    child = serve()
    task_id = begin(child, "work")
    until_ended(child, task_id)
    server.stop()
    error = child.call(1, "ListTasks", {})["error"]
    server.start()
    assert error["message"] == "Store unavailable"
    deadline = time.monotonic() + DEADLINE_SECONDS
    while "error" in (answer := child.call(2, "GetTask", {"id": task_id})) and time.monotonic() < deadline:
        pass
    assert answer["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert child.end() == 0


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://me:hunter2-x@127.0.0.1:1/tasks",
        "postgres://me:hunter2-x@127.0.0.1:x/tasks",
        "postgresql://me:12/hunter2-x@127.0.0.1:1/tasks",
        "postgresql://hunter2-x/y@db-1,db-2/tasks",
    ],
)
def test_a_store_that_can_not_be_reached_is_one_line_and_status_2(
    spawn: Spawn, server: Server, app_directory: Path, store: str
) -> None:
    (app_directory / "agent.py").write_text(AGENT)
    child = spawn("serve", "./agent.py:agent", "--store", store)
    assert child.wait() == 2
    (line,) = child.stderr().splitlines()
    assert line.startswith("discreet: --store: ") and "hunter2" not in line
