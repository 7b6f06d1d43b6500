"""Clients of the Agent Client Protocol that others wrote drive the agent of the examples.

`DISCREET_ACP_SDK` names a Python that has agent-client-protocol, `DISCREET_ACPX` the program acpx.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from support.programs import DISCREET, finished
from support.requirements import missing

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "acp_agent"
SERVE = (*DISCREET, "serve", str(EXAMPLE / "tidy.py:agent"), "--dialect", "acp")
MESSY = "a  \nb\t\n"
TIDY = "a\nb\n"


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(MESSY)
    return tmp_path


@pytest.fixture
def sdk() -> str:
    named = os.environ.get("DISCREET_ACP_SDK")
    if named:
        return named
    return sys.executable if importlib.util.find_spec("acp") else missing("agent-client-protocol is not installed")


@pytest.mark.parametrize("whose", ["ours", "the SDK's"])
def test_the_sdks_client_sees_the_same_of_the_agent_and_of_its_twin_on_the_sdk(
    whose: str, sdk: str, messy: Path
) -> None:
    agent = SERVE if whose == "ours" else (sdk, "-P", str(HERE / "acp_sdk_twin.py"))
    done = finished([sdk, "-P", str(HERE / "session_acp_sdk.py"), str(messy), *agent])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "version": 1,
        "agent": "Tidier",
        "stopped": ["end_turn", "cancelled"],
        "seen": ["tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk"],
        "refused": -32002,
    }
    assert (messy / "a.txt").read_text() == TIDY


def test_the_sdks_client_is_asked_and_has_its_sessions_listed_loaded_and_deleted(sdk: str, tmp_path: Path) -> None:
    announcements = f"{EXAMPLE / 'announcements.py'}:announcements"
    server = [*DISCREET, "serve", announcements, "--dialect", "mcp"]
    agent = [*DISCREET, "serve", f"{EXAMPLE / 'deploy.py'}:agent", "--dialect", "acp"]
    session = str(HERE / "session_acp_sdk_asking.py")
    store = f"--store=sqlite:{tmp_path / 'tasks.db'}"
    done = finished([sdk, "-P", session, str(tmp_path), server[0], json.dumps(server[1:]), *agent, store])
    assert done.returncode == 0, done.stderr
    updates = ["session_info_update", "tool_call", "tool_call_update", "usage_update", "agent_message_chunk"]
    assert json.loads(done.stdout) == {
        "can": ["additional_directories", "close", "delete", "list", "resume"],
        "switch": ["select", "off"],
        "stopped": "end_turn",
        "asked": [
            ["Where shall shop go?", ["replicas", "target"]],
            ["Approve the deployment.", "https://deployments.example/approve"],
        ],
        "completed": 1,
        "seen": updates,
        "costs": [0.02],
        "listed": [["Deploy shop", ["/more"]]],
        "loaded": ["user_message_chunk", *updates],
        "left": 0,
        "refused": -32601,
    }
    assert (tmp_path / "announced.txt").read_text() == "shop is deployed to production\n"


def test_acpx_runs_a_prompt_from_its_handshake_to_its_end(messy: Path) -> None:
    acpx = os.environ.get("DISCREET_ACPX") or shutil.which("acpx") or missing("acpx is not installed")
    home = messy / "home"
    home.mkdir()
    command = [acpx, "--cwd", str(messy), "--approve-all", "--agent", " ".join(SERVE), "exec", "a.txt"]
    done = finished(command, messy, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "a.txt is tidy." in done.stdout
    assert "end_turn" in done.stdout
    assert (messy / "a.txt").read_text() == TIDY
