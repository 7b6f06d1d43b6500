"""The deployer as an editor sees it, in this event loop; the server of MCP is a process."""

import sys
from pathlib import Path
from typing import Any

import pytest
from deploy import agent

from discreet.testing import in_memory

HERE = Path(__file__).parent
SERVE = ["-P", "-m", "discreet", "serve", str(HERE / "announcements.py:announcements"), "--dialect", "mcp"]
SERVER = {"name": "announcements", "command": sys.executable, "args": SERVE, "env": []}
CAN = {"elicitation": {"form": {}, "url": {}}, "session": {"configOptions": {"boolean": {}}}}


class Editor:
    """Answers what the agent asks: the form with `order`, the page with `approves`."""

    def __init__(self, order: dict[str, Any] | None, *, approves: bool = True) -> None:
        self.order = order
        self.approves = approves
        self.told: list[dict[str, Any]] = []
        self.reason = ""

    def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["mode"] == "url":
            return {"action": "accept" if self.approves else "decline"}
        return {"action": "decline"} if self.order is None else {"action": "accept", "content": self.order}

    async def prompt(self, cwd: Path, *, dry: bool = False) -> str:
        """The agent's messages."""
        async with in_memory(agent, dialect="acp") as peer:
            peer.on_request("elicitation/create", self.answer)
            peer.on_notification("session/update", lambda params: self.told.append(params["update"]))
            await peer.call("initialize", {"protocolVersion": 1, "clientCapabilities": CAN})
            session = (await peer.call("session/new", {"cwd": str(cwd), "mcpServers": [SERVER]}))["sessionId"]
            option = {"sessionId": session, "configId": "dry", "type": "boolean", "value": dry}
            await peer.call("session/set_config_option", option)
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "shop"}]}
            self.reason = (await peer.call("session/prompt", prompt))["stopReason"]
        said = [each["content"]["text"] for each in self.told if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(said)


@pytest.mark.anyio
async def test_what_the_user_orders_is_deployed_and_announced(tmp_path: Path) -> None:
    editor = Editor({"target": "production", "replicas": 3})
    assert await editor.prompt(tmp_path) == "shop runs 3 times in production."
    assert (tmp_path / "announced.txt").read_text() == "shop is deployed to production\n"
    kinds = [each["sessionUpdate"] for each in editor.told]
    assert kinds == ["session_info_update", "tool_call", "tool_call_update", "usage_update", "agent_message_chunk"]


@pytest.mark.anyio
async def test_production_that_is_not_approved_is_refused(tmp_path: Path) -> None:
    editor = Editor({"target": "production"}, approves=False)
    assert await editor.prompt(tmp_path) == "Production was not approved."
    assert editor.reason == "refusal"


@pytest.mark.anyio
async def test_nothing_is_done_without_an_order_or_in_a_dry_run(tmp_path: Path) -> None:
    assert await Editor(None).prompt(tmp_path) == "Nothing was deployed."
    assert await Editor({"target": "staging"}).prompt(tmp_path, dry=True) == "shop would run 2 times in staging."
    assert not (tmp_path / "announced.txt").exists()
