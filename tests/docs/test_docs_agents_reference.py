"""The reference names everything that `discreet.agents` exports, with what it has, and nothing that there is not."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

import discreet.agents
import discreet.client
from discreet.agents import Agent
from discreet.agents.agent import AgentOptions

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Agents\n")[2].partition("\n## ")[0]
CARDS = SECTION.partition("What a card is made of")[2]
ROWS: dict[str, str] = dict(re.findall(r"^\| (`.+?`) \| (.*) \|$", SECTION, re.MULTILINE))


def row_of(name: str) -> str:
    return next(rest for cell, rest in ROWS.items() if re.search(rf"`{name}[`(]", cell))


def test_everything_that_is_exported_is_named() -> None:
    named = set(re.findall(r"`(\w+)", " ".join(ROWS) + CARDS))
    exported = set(discreet.agents.__all__)
    assert exported <= named
    assert set(re.findall(r"`([A-Z]\w+)", " ".join(ROWS) + CARDS)) <= exported


def test_the_options_of_an_agent_have_their_rows() -> None:
    cells = [cell for cell in ROWS if not re.match(r"`[A-Z]", cell)]
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(AgentOptions.__annotations__)
    shown = next(cell for cell in ROWS if cell.startswith("`Agent("))
    assert re.findall(r"\w+", shown)[1:] == list(inspect.signature(Agent.__init__).parameters)[1:]


@pytest.mark.parametrize("name", ["Task", "TaskStatus", "Message", "Part", "Artifact", "AgentCall"])
def test_the_fields_of_a_struct_are_named(name: str) -> None:
    cls: Any = getattr(discreet.agents, name)
    assert issubclass(cls, msgspec.Struct)
    assert set(re.findall(r"`(\w+)`", row_of(name))) == set(cls.__struct_fields__)


@pytest.mark.parametrize("name", ["TaskState", "Role"])
def test_the_members_that_are_shown_exist(name: str) -> None:
    cls: Any = getattr(discreet.agents, name)
    assert issubclass(cls, Enum)
    shown = re.findall(rf"`{name}\.(\w+)`", row_of(name))
    assert shown
    assert set(shown) <= set(cls.__members__)


def test_the_dialects_of_the_client_are_named() -> None:
    clients = PAGE.partition("\n## Client\n")[2].partition("\n## ")[0]
    assert "`dialect=" in clients
    assert all(f"{name}`" in clients and hasattr(discreet.client, name) for name in ("LSP", "MCP", "ACP"))
