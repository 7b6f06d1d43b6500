"""The program as an agent of editors: what becomes of it when its client goes away in the middle of a prompt."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS

AGENT = """
import sys
import anyio
from discreet import OperationError, Service
from discreet.agents import Agent

class Waiter:
    async def execute(self, context, events):
        await events.working("on")
        if context.editor is not None and context.text == "ask":
            await context.editor.permit("Go on?")
        await anyio.sleep_forever()

    async def cancel(self, context, events):
        pass

class Taken(OperationError, code="TAKEN", number=-32000):
    "Taken."

agent = Agent(Waiter(), name="Waiter", description="Waits.")
wrong = Service("wrong")

@wrong.query(errors=[Taken])
def call() -> None: ...
"""


@contextmanager
def started(folder: Path, app: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*DISCREET, "serve", app, "--dialect", "acp", *flags],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "waiter.py").write_text(AGENT)
    with started(tmp_path, "./waiter.py:agent", "--drain-timeout", "0.3") as process:
        yield process


def say(agent: subprocess.Popen[str], call_id: int, method: str, params: dict[str, Any]) -> None:
    assert agent.stdin is not None
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}) + "\n")
    agent.stdin.flush()


def read(agent: subprocess.Popen[str]) -> dict[str, Any]:
    assert agent.stdout is not None
    message: dict[str, Any] = json.loads(agent.stdout.readline())
    return message


def prompt(agent: subprocess.Popen[str], text: str) -> str:
    """A prompt that has begun; returns its session."""
    say(agent, 1, "initialize", {"protocolVersion": 1})
    assert read(agent)["result"]["protocolVersion"] == 1
    say(agent, 2, "session/new", {"cwd": "/", "mcpServers": []})
    session: str = read(agent)["result"]["sessionId"]
    say(agent, 3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
    assert read(agent)["params"]["update"]["content"]["text"] == "on"
    return session


@pytest.mark.parametrize("text", ["wait", "ask"])
def test_a_client_that_closes_its_end_in_the_middle_of_a_prompt_ends_the_agent(
    agent: subprocess.Popen[str], text: str
) -> None:
    prompt(agent, text)
    if text == "ask":
        assert read(agent)["method"] == "session/request_permission"
    rest, _ = agent.communicate(timeout=DEADLINE_SECONDS)
    assert agent.returncode == 0
    answers = [message for message in map(json.loads, rest.splitlines()) if message.get("id") == 3]
    assert [message["error"]["data"]["code"] for message in answers] == ["UNAVAILABLE"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_in_the_middle_of_a_prompt_ends_the_agent_with_an_answer(agent: subprocess.Popen[str]) -> None:
    prompt(agent, "wait")
    agent.send_signal(signal.SIGTERM)
    assert read(agent)["error"]["code"] == -32010
    agent.wait(DEADLINE_SECONDS)
    assert agent.returncode == 0


def test_a_session_goes_on_in_the_code_that_a_reload_brings(tmp_path: Path) -> None:
    code = """
from discreet.agents import Agent

class Asker:
    async def execute(self, context, events):
        await events.require_input(f"VALUE {context.editor.cwd} {context.editor.client.name} {len(context.task.history)}")

    async def cancel(self, context, events):
        pass

agent = Agent(Asker(), name="Asker", description="Asks.")
"""
    app = tmp_path / "asker.py"
    app.write_text(code.replace("VALUE", "one"))
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    with started(tmp_path, "./asker.py:agent", "--reload", "--store", store, "--log-level", "info") as agent:
        say(agent, 1, "initialize", {"protocolVersion": 1, "clientInfo": {"name": "me", "version": "1"}})
        read(agent)
        say(agent, 2, "session/new", {"cwd": "/project", "mcpServers": []})
        session = read(agent)["result"]["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        say(agent, 3, "session/prompt", prompt)
        assert read(agent)["params"]["update"]["content"]["text"] == "one /project me 1"
        assert read(agent)["result"]["stopReason"] == "end_turn"
        app.write_text(code.replace("VALUE", "two"))
        assert agent.stderr is not None
        while "event=daemon.swapped" not in (line := agent.stderr.readline()):
            assert line, "the agent has ended"
        say(agent, 4, "session/prompt", prompt)
        assert read(agent)["params"]["update"]["content"]["text"] == "two /project me 3"
        assert read(agent)["result"]["stopReason"] == "end_turn"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_agent_that_is_killed_in_the_middle_of_a_prompt_leaves_a_session_that_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "waiter.py").write_text(AGENT)
    flags = ("--store", f"sqlite:{tmp_path / 'tasks.db'}")
    with started(tmp_path, "./waiter.py:agent", *flags) as agent:
        session = prompt(agent, "wait")
    with started(tmp_path, "./waiter.py:agent", *flags) as agent:
        say(agent, 1, "session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})
        kinds = []
        while "result" not in (message := read(agent)):
            kinds.append(message["params"]["update"]["sessionUpdate"])
        assert kinds[:2] == ["user_message_chunk", "agent_thought_chunk"]


def test_a_number_that_acp_has_given_away_is_one_line_and_status_2(
    agent: subprocess.Popen[str], tmp_path: Path
) -> None:
    done = finished([*DISCREET, "serve", "./waiter.py:wrong", "--dialect", "acp"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "wrong/call" in done.stderr
