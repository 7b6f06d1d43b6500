"""Hosts of MCP that others wrote use the shop of the examples: older official clients, and the protocol's Inspector.

`DISCREET_INTEROP_MCP_1` names a Python that has mcp 1.30 or later, but not 2, and `DISCREET_INTEROP_MCP_1_9` one that has mcp 1.9.
`DISCREET_MCP_INSPECTOR` names the program mcp-inspector.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import mcp_everything
from support.requirements import interop_python, missing

Place = Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp_shop" / "shop.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the clients are started by way of a POSIX shell")

PEN = '{"name":"pen","price":1.5,"left":10}'
SESSION = {
    "tools": "shop_look shop_order shop_restock",
    "look": f"False {PEN}",
    "unknown": "True The shop does not sell this item",
    "steal": "-32602",
    "resources": "shop://stock",
    "templates": "shop://items/{name}",
    "read": "paper: 3",
    "item": '{"name":"desk","price":120.0,"left":1}',
    "prompts": "shop_compare",
    "compare": "Look at the items pen and desk of the shop",
    "complete": "pen paper",
}
"""What every version of the client sees."""

ASKED = {
    "elicitation": "Hello, Alice!", "sampling": "Paris", "list_roots": '["file:///here"]',
    "multiple_inputs": "Paris Alice 1", "multi_round": "Alice likes blue", "capabilities": "Paris True",
    "prompt": "Mind the context: the sea", "resource": "it True",
}  # fmt: skip
"""What comes of the answers of a client that is asked."""


TASKS = {
    "slow_compute": "sum done ['completed']", "failing_job": "error ['completed']",
    "confirm_delete": "a.txt accept ['completed']", "multi_input": "both are answered ['completed']",
    "test_tool_with_task": "Hello, Alice! ['completed']", "greet": "Hello, Bob! []",
}  # fmt: skip
"""What comes of tools for a client that takes tasks, and the last status of each task."""


@pytest.fixture
def shop(place: Place) -> Place:
    shutil.copy(EXAMPLE, place.folder)
    return place


@pytest.mark.parametrize(
    ("variable", "revision", "order"),
    [
        ("DISCREET_INTEROP_MCP_1", "2025-11-25", "False 2 pen for 3.00 [(1.0, 2.0), (2.0, 2.0)]"),
        ("DISCREET_INTEROP_MCP_1_9", "2025-03-26", "True The tool has to ask the client, which can't answer []"),
    ],
)
def test_a_session_of_mcps_older_sdk_uses_all_that_the_shop_has(
    shop: Place, variable: str, revision: str, order: str
) -> None:
    python = os.environ.get(variable) or missing(f"{variable} names no Python that has mcp")
    done = shop.run([python, "-P", "session_mcp_1.py"])
    said = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert said == {**SESSION, "hello": f"shop {revision}", "order": order}, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_mcps_own_sdk_answers_all_that_a_server_asks(place: Place, mode: str) -> None:
    shutil.copy(mcp_everything.__file__, place.folder)
    done = place.run([interop_python("mcp", 2), "-P", "session_mcp_asking.py", mode])
    assert dict(line.split("=", 1) for line in done.stdout.decode().splitlines()) == ASKED, done.stderr
    assert done.returncode == 0


def test_tools_are_tasks_to_mcps_own_sdk(place: Place) -> None:
    shutil.copy(mcp_everything.__file__, place.folder)
    done = place.run([interop_python("mcp", 2), "-P", "session_mcp_tasks.py"])
    assert dict(line.split("=", 1) for line in done.stdout.decode().splitlines()) == TASKS, done.stderr
    assert done.returncode == 0


def inspect(shop: Place, *words: str) -> subprocess.CompletedProcess[bytes]:
    inspector = os.environ.get("DISCREET_MCP_INSPECTOR") or missing("DISCREET_MCP_INSPECTOR names no mcp-inspector")
    path = f"PYTHONPATH={shop.environment['PYTHONPATH']}"  # the Inspector hands on no more than HOME, PATH and the like
    serve = ["env", path, "discreet", "serve", "./shop.py:shop", "--dialect", "mcp"]
    done: subprocess.CompletedProcess[bytes] = shop.run([inspector, "--cli", *serve, "--method", *words])
    return done


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tools/list"], ["tools", 0, "name", "shop_look"]),
        (["tools/call", "--tool-name", "shop_look", "--tool-arg", "name=pen"], ["content", 0, "text", PEN]),
        (["resources/read", "--uri", "shop://items/pen"], ["contents", 0, "text", PEN]),
    ],
)
def test_the_inspector_shows_what_the_shop_offers(shop: Place, words: list[str], part: list[Any]) -> None:
    done = inspect(shop, *words)
    assert done.stdout, done.stderr
    found: Any = json.loads(done.stdout)
    for step in part[:-1]:
        found = found[step]
    assert (found, done.returncode) == (part[-1], 0), done.stderr


def test_the_inspector_fills_a_prompt(shop: Place) -> None:
    arguments = ["--prompt-args", "one=pen", "--prompt-args", "other=desk"]
    done = inspect(shop, "prompts/get", "--prompt-name", "shop_compare", *arguments)
    assert b"the items pen and desk" in done.stdout, done.stderr


def test_the_inspector_shows_the_error_of_a_tool_that_has_a_schema_for_its_result(shop: Place) -> None:
    done = inspect(shop, "tools/call", "--tool-name", "shop_look", "--tool-arg", "name=lamp")
    shown, _ = json.JSONDecoder().raw_decode(done.stdout.decode())
    assert shown["structuredContent"]["details"]["known"] == ["desk", "paper", "pen"], done.stderr
