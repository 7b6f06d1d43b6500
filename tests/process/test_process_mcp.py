"""The program as a server of hosts of MCP, over its real pipes: what is cancelled, and what becomes of it at the end of input."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS, wait_until

TOOLS = """
from typing import Annotated
import anyio
from discreet import Context, Service, mcp

gate = anyio.Event()
tools = Service("tools")

@tools.query(timeout=None)
async def wait(ctx: Context) -> str:
    await ctx.log("info", "waiting")
    await gate.wait()
    return "opened"

@tools.mutation
async def open() -> str:
    gate.set()
    return "open"

@tools.mutation
async def erase(sure: Annotated[bool, mcp.Ask("Sure?")]) -> bool:
    return sure
"""
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}},
}
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
}


def call(call_id: str, tool: str, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": {"name": tool, **members}}


def cancel(call_id: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call_id}}


class Host:
    """The client's side of the pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def write(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.writelines(json.dumps(message) + "\n" for message in messages)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def end(self) -> list[dict[str, Any]]:
        """Close stdin; what still comes, by the time the program has ended with status 0."""
        stdout, stderr = self.process.communicate(timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0, stderr
        return [json.loads(line) for line in stdout.splitlines()]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    (tmp_path / "app.py").write_text(TOOLS)
    with subprocess.Popen(
        [*DISCREET, "serve", "./app.py:tools", "--dialect", "mcp", "--drain-timeout", str(DEADLINE_SECONDS * 2)],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield Host(process)
        process.kill()


@pytest.mark.parametrize("members", [{}, MODERN])
def test_two_requests_and_the_end_of_input_at_once_are_both_answered(host: Host, members: dict[str, Any]) -> None:
    host.write(call("slow", "tools_wait", **members), call("quick", "tools_open", **members))
    answers = {message["id"]: message["result"] for message in host.end() if "id" in message}
    assert {name: result["content"][0]["text"] for name, result in answers.items()} == {
        "slow": "opened",
        "quick": "open",
    }


def test_a_cancelled_request_is_not_answered_neither_then_nor_at_the_end(host: Host) -> None:
    host.write(HELLO, call("one", "tools_wait"), call("two", "tools_wait"))
    assert [host.read().get("id") for _ in range(3)] == ["hello", None, None]  # the others are log messages
    host.write(cancel("one"), cancel("nothing"))
    host.write(call("three", "tools_open"))
    assert {host.read()["id"], host.read()["id"]} == {"two", "three"}
    assert host.end() == []


def test_a_question_that_nobody_can_answer_any_more_does_not_hold_up_the_end(host: Host) -> None:
    host.write(HELLO, call("asks", "tools_erase"))
    assert host.read()["id"] == "hello"
    assert host.read()["method"] == "elicitation/create"
    answers = [message for message in host.end() if message.get("id") == "asks"]
    assert [answer["result"]["structuredContent"]["code"] for answer in answers] == ["NO_ANSWER"]


def test_a_modern_call_that_asks_is_answered_at_the_end_of_input(host: Host) -> None:
    host.write(call("asks", "tools_erase", **MODERN))
    (answer,) = host.end()
    assert answer["result"]["resultType"] == "input_required"


TASKS = """
import os, signal
from discreet import Service

tools = Service("", version="1")

def work(name):
    first = not os.path.exists(name)
    open(name, "a").close()
    if first:
        os.kill(os.getpid(), signal.SIGKILL)
    return name

@tools.query(task="optional")
def again(name: str) -> str:
    return work(name)

@tools.mutation(task="optional", idempotent=True)
def twice(name: str) -> str:
    return work(name)

@tools.mutation(task="optional")
def once(name: str) -> str:
    return work(name)
"""
ABLE = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


@pytest.mark.parametrize(
    ("tool", "status", "told"),
    [("again", "completed", "result"), ("twice", "completed", "result"), ("once", "failed", "error")],
)
def test_a_task_outlives_the_process_that_is_killed_within_it(
    tool: str, status: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TASKS)
    meta = MODERN["_meta"] | ABLE

    def started() -> subprocess.Popen[bytes]:
        command = [*DISCREET, "serve", "./tools.py:tools", "--dialect", "mcp", "--store", "sqlite:tasks"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes)

    def ask(process: subprocess.Popen[bytes], method: str, **params: Any) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        result: dict[str, Any] = json.loads(process.stdout.readline())["result"]
        return result

    with started() as first:
        task = ask(first, "tools/call", name=tool, arguments={"name": "begun"})["taskId"]
        assert first.wait(DEADLINE_SECONDS) == -signal.SIGKILL
    with started() as second:
        found: list[dict[str, Any]] = []
        wait_until(lambda: found.append(ask(second, "tasks/get", taskId=task)) or found[-1]["status"] != "working")
        assert (found[-1]["status"], told in found[-1]) == (status, True)
        second.kill()
