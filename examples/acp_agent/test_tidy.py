"""The agent as an editor and as a caller of A2A see it, each with a real process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tidy import tidied

from discreet.testing import spawned

HERE = Path(__file__).parent
SERVE = [sys.executable, "-P", "-m", "discreet", "serve", "./tidy.py:agent", "--dialect", "acp"]


class Editor:
    """A client of ACP that answers at once. `allows` is what its user says."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.allows = True
        self.seen: list[str] = []

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._write({"id": method, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == method:
                result: dict[str, Any] = message["result"]
                return result
            if message["method"] == "session/update":
                self.seen.append(message["params"]["update"]["sessionUpdate"])
            else:
                self._write({"id": message["id"], "result": self._answer(message["method"], message["params"])})
        raise AssertionError("the agent has ended")

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "fs/read_text_file":
                return {"content": Path(params["path"]).read_text()}
            case "fs/write_text_file":
                Path(params["path"]).write_text(params["content"])
                return {}
            case _:
                return {"outcome": {"outcome": "selected", "optionId": "allow" if self.allows else "reject"}}

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def prompt(self, text: str) -> str:
        session = self.call("session/new", {"cwd": str(self.folder), "mcpServers": []})["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        reason: str = self.call("session/prompt", prompt)["stopReason"]
        return reason


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "a.txt").write_text("a  \nb\t\n")
    with subprocess.Popen(SERVE, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        talk = Editor(process, tmp_path)
        fs = {"readTextFile": True, "writeTextFile": True}
        talk.call("initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": fs}})
        yield talk


def test_a_file_is_tidied_where_the_user_allows_it(editor: Editor) -> None:
    assert editor.prompt("a.txt") == "end_turn"
    assert (editor.folder / "a.txt").read_text() == "a\nb\n"
    assert editor.seen == ["tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk"]


def test_a_file_stays_as_it_is_where_the_user_does_not(editor: Editor) -> None:
    editor.allows = False
    assert editor.prompt("a.txt") == "end_turn"
    assert (editor.folder / "a.txt").read_text() == "a  \nb\t\n"


@pytest.mark.anyio
async def test_a_caller_of_a2a_gets_the_tidied_text() -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a  \nb"}]}
    async with spawned("./tidy.py:agent", cwd=HERE) as peer:
        task = (await peer.call("SendMessage", {"message": message}))["task"]
    assert task["artifacts"][0]["parts"] == [{"text": tidied("a  \nb")}]
