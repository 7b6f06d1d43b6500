"""Messages that were acknowledged for a busy task, whose daemon then ends: another one, or the next, executes them in order."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.waits import wait_until

Spawn = Callable[..., Any]

AGENT = """
import os
import anyio
from discreet.agents import Agent

class Works:
    def note(self, call, context):
        with open("calls", "a") as calls:
            calls.write(f"{context.text}:{call}\\n")

    async def execute(self, context, events):
        self.note("execute", context)
        await events.working()
        if context.text == "A":
            await anyio.sleep_forever()
        await events.require_input("more?")

    async def cancel(self, context, events):
        pass

class Resumes(Works):
    async def resume(self, context, events):
        self.note("resume", context)
        await events.require_input("more?")

works = Agent(Works(), name="Works", description="Fails where it was cut off.")
resumes = Agent(Resumes(), name="Resumes", description="Goes on.")
"""
ORPHANED = "The process that worked on this task has ended."


@pytest.fixture
def serve(spawn: Spawn, app_directory: Path) -> Callable[..., Any]:
    """A daemon on the test's file."""
    (app_directory / "agent.py").write_text(AGENT)
    return lambda agent: spawn("serve", f"./agent.py:{agent}", "--store", "sqlite:tasks.db", "--drain-timeout", "1")


def send(child: Any, text: str, task_id: str | None = None) -> dict[str, Any]:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    if task_id:
        message["taskId"] = task_id
    params = {"message": message, "configuration": {"returnImmediately": True}}
    task: dict[str, Any] = child.call(1, "SendMessage", params)["result"]["task"]
    return task


def get(child: Any, task_id: str) -> dict[str, Any]:
    task: dict[str, Any] = child.call(2, "GetTask", {"id": task_id})["result"]
    return task


def sent_a_b_and_c(child: Any) -> str:
    """The task of the three messages, all acknowledged. The first is executed."""
    task_id: str = send(child, "A")["id"]
    for text in "BC":
        sent = send(child, text, task_id)
    assert [each["messageId"] for each in sent["history"]] == ["A", "B", "C"]
    return task_id


def end(child: Any, how: signal.Signals) -> None:
    child.signal(how)
    child.wait()


@pytest.mark.parametrize(
    ("how", "waits"),
    [(signal.SIGTERM, False), (signal.SIGKILL, True)],
    ids=["ended, the next daemon", "killed, another"],
)
def test_what_waits_for_a_busy_task_is_executed_in_order_when_its_daemon_has_ended(
    serve: Spawn, app_directory: Path, how: signal.Signals, waits: bool
) -> None:
    def calls() -> list[str]:
        return (app_directory / "calls").read_text().split()

    child = serve("resumes")
    heir = serve("resumes") if waits else None
    task_id = sent_a_b_and_c(child)
    wait_until(lambda: (app_directory / "calls").exists() and calls() == ["A:execute"])
    end(child, how)
    heir = heir or serve("resumes")
    wait_until(lambda: len(calls()) == 4 and get(heir, task_id)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED")
    assert calls() == ["A:execute", "A:resume", "B:execute", "C:execute"]
    assert [each["messageId"] for each in get(heir, task_id)["history"] if each["role"] == "ROLE_USER"] == [*"ABC"]
    assert send(heir, "D", task_id)["id"] == task_id
    wait_until(lambda: calls()[4:] == ["D:execute"])
    assert heir.end() == 0


def test_where_an_agent_can_not_resume_the_task_says_that_the_others_were_not_executed(serve: Spawn) -> None:
    child = serve("works")
    task_id = sent_a_b_and_c(child)
    end(child, signal.SIGKILL)
    child = serve("works")
    wait_until(lambda: get(child, task_id)["status"]["state"] == "TASK_STATE_FAILED")
    task = get(child, task_id)
    texts = [part["text"] for part in task["status"]["message"]["parts"]]
    assert texts == [ORPHANED, "2 messages were not executed: the task ended before."]
    metadata = {each["messageId"]: each.get("metadata") for each in task["history"]}
    not_executed = {"notExecuted": "The task ended before this message was executed."}
    cut_off = {"notExecuted": "The agent's process ended before this message was executed to its end."}
    assert metadata == {"A": cut_off, "B": not_executed, "C": not_executed}
    assert child.end() == 0
