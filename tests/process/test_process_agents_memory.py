"""What agents take in memory in the real process, whatever their callers send and leave unread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.wire import request

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

Spawn = Callable[..., Any]

MIB = 1 << 20
LIMIT = 32 * MIB
ALLOWED_GROWTH = 3 * LIMIT
"""What is counted is about what is taken. Decoding, encoding and SQLite each copy a task for a moment."""

AGENT = """
import anyio
from discreet.agents import Agent, Part

class Works:
    async def execute(self, context, events):
        for word in context.text.split():
            match word.partition("="):
                case "fill", _, size:
                    await events.artifact("x" * int(size))
                case "stay", _, _:
                    await anyio.sleep_forever()
                case "end", _, _:
                    return await events.complete()
        await events.require_input()

    async def cancel(self, context, events):
        pass

works = Agent(Works(), name="Works", description="Does as it is told.", input_modes=("text/plain", "application/json"))
"""


@pytest.fixture(params=["memory", "sqlite:tasks.db"])
def store(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def child(store: str, spawn: Spawn, app_directory: Path) -> Any:
    """A daemon with little memory, on each kind of store."""
    (app_directory / "agent.py").write_text(AGENT)
    started = spawn("serve", "./agent.py:works", "--store", store, "--max-memory", str(LIMIT), stderr=None)
    started.call(0, "SendMessage", message({"text": "end"}))
    return started


def message(*parts: Any, task_id: str | None = None, **configuration: Any) -> dict[str, Any]:
    said = {
        "messageId": new_id(),
        "role": "ROLE_USER",
        "parts": list(parts),
        **({"taskId": task_id} if task_id else {}),
    }
    return {"message": said, "configuration": {"historyLength": 0, **configuration}}


def rss(child: Any, field: str = "VmHWM") -> int:
    with open(f"/proc/{child.process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def answers(child: Any, frames: list[bytes]) -> list[dict[str, Any]]:
    """Send everything, and read an answer to each."""
    writer = threading.Thread(target=lambda: [child.write(each) for each in frames], daemon=True)
    writer.start()
    found = [child.read() for _ in frames]
    writer.join(20)
    return found


def codes(found: list[dict[str, Any]]) -> set[str]:
    """`ok`, and the codes of errors."""
    return {each["error"]["data"][0]["reason"] if "error" in each else "ok" for each in found}


def test_many_large_follow_ups_to_one_task_are_bounded(child: Any) -> None:
    task = child.call("first", "SendMessage", message({"text": "ask"}))["result"]["task"]
    before = rss(child)
    frames = [request(n, "SendMessage", message({"text": "x" * (3 * MIB // 2)}, task_id=task["id"])) for n in range(40)]
    found = answers(child, frames)
    assert codes(found) == {"ok", "OVERLOADED"}
    assert rss(child) - before < ALLOWED_GROWTH
    assert child.call("last", "CancelTask", {"id": task["id"]})["result"]["status"]["state"] == "TASK_STATE_CANCELED"


def test_unfinished_tasks_are_bounded(child: Any) -> None:
    before = rss(child)
    frames = [
        request(n, "SendMessage", message({"text": "stay " + "x" * (MIB // 2)}, returnImmediately=True))
        for n in range(100)
    ]
    assert codes(answers(child, frames)) == {"ok", "OVERLOADED"}
    assert rss(child) - before < ALLOWED_GROWTH
    assert child.call("last", "GetTask", {"id": "none"})["error"]["code"] == -32001


def test_data_of_many_small_values_is_bounded(child: Any) -> None:
    before = rss(child)
    data = [[] for _ in range(50_000)]  # 0.2 MB of text, 6 MB of objects
    frames = [
        request(n, "SendMessage", message({"data": data}, {"text": "stay"}, returnImmediately=True)) for n in range(16)
    ]
    assert codes(answers(child, frames)) == {"ok", "OVERLOADED"}
    assert rss(child) - before < ALLOWED_GROWTH


def test_answers_that_nobody_reads_are_bounded(child: Any) -> None:
    task = child.call("first", "SendMessage", message({"text": f"fill={2 * MIB} end"}))["result"]["task"]
    before = rss(child)
    child.write(b"".join(request(n, "GetTask", {"id": task["id"]}) for n in range(60)))
    assert codes([child.read() for _ in range(60)]) <= {"ok", "OVERLOADED"}
    assert rss(child) - before < ALLOWED_GROWTH
