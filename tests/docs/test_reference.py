"""The reference names everything that is public, and nothing that there is not."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

import discreet
import discreet.agents
import discreet.client
import discreet.testing
from discreet import Context, Identity, OperationError, Service
from discreet.agents import Agent
from discreet.agents.agent import AgentOptions
from discreet.client import Peer
from discreet.daemon.operations.access import IdentityProvider
from discreet.daemon.operations.service import OperationOptions

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def section(title: str) -> str:
    """From a heading to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", PAGE, re.MULTILINE)
    assert found is not None, title
    rest = PAGE[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> dict[str, list[str]]:
    """What the tables are about: the last word before the parenthesis, and the names in it."""
    found: dict[str, list[str]] = {}
    for cell in ROW.findall(text):
        name, _, arguments = cell.partition("(")
        found[name.rpartition(".")[2]] = re.findall(r"[a-z_]+(?==|,|\)| )", re.sub(r"=[^,)]+", "", arguments))
    return found


def public(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def params(func: Any) -> set[str]:
    return {name for name in inspect.signature(func).parameters if name != "self"}


@pytest.mark.parametrize(("title", "cls"), [("Context", Context), ("Client", Peer)])
def test_every_public_attribute_has_its_row_and_no_row_is_of_another(title: str, cls: type) -> None:
    named = {cell.partition("(")[0] for cell in ROW.findall(section(title))}
    prefix = {"Context": "ctx.", "Client": "peer."}[title]
    assert {name.removeprefix(prefix) for name in named if name.startswith(prefix)} == public(cls)


def test_every_option_of_the_decorators_has_its_row() -> None:
    assert rows(section("Options of the decorators")).keys() == set(OperationOptions.__annotations__)


def test_every_param_of_a_service_has_its_row() -> None:
    table = section("Service").partition("### ")[0]
    assert rows(table).keys() == params(Service.__init__)
    assert all(f"@service.{name}(" in table for name in public(Service))


def test_every_keyword_of_an_error_class_has_its_row() -> None:
    keywords = params(OperationError.__init_subclass__) - {"kwargs"}
    assert rows(section("OperationError")).keys() == keywords


def test_everything_of_an_identity_provider_has_its_row() -> None:
    members = set(IdentityProvider.__annotations__) | public(IdentityProvider)
    assert rows(section("Identity")).keys() == members
    assert all(f"`{field}`" in section("Identity") for field in Identity.__struct_fields__)


def test_all_that_is_exported_is_named() -> None:
    exported = {*discreet.__all__, *discreet.testing.__all__} - {"__version__"}
    assert {name for name in exported if f"`{name}" not in PAGE and f"import {name}" not in PAGE} == set()


@pytest.mark.parametrize("name", discreet.testing.__all__)
def test_every_name_for_tests_has_its_row_with_its_params(name: str) -> None:
    named = rows(section("Testing"))
    assert name in named
    found = getattr(discreet.testing, name)
    if named[name]:
        assert set(named[name]) == params(found)


def test_the_params_of_a_call_are_those_that_are_shown() -> None:
    shown = rows(section("Client"))
    assert set(shown["call"]) == params(Peer.call) >= params(Peer.subscribe) - {"window"}
    assert set(shown["notify"]) == params(Peer.notify)
    context = rows(section("Context"))
    assert set(context["call"]) == params(Context.call) == params(Context.call_blocking)
    assert set(context["request"]) == params(Context.request) == params(Context.request_blocking)


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_code_that_is_shown_can_be_run(code: str) -> None:
    namespace: dict[str, Any] = {"__name__": "shown"}
    exec(code, namespace)
    assert any(inspect.isclass(found) or inspect.isfunction(found) for found in namespace.values())


# -- agents -------------------------------------------------------------------------------------------------------------

AGENTS = section("Agents")
CARDS = AGENTS.partition("What a card is made of")[2]
AGENT_ROWS: dict[str, str] = dict(re.findall(r"^\| (`.+?`) \| (.*) \|$", AGENTS, re.MULTILINE))


def row_of(name: str) -> str:
    return next(rest for cell, rest in AGENT_ROWS.items() if re.search(rf"`{name}[`(]", cell))


def test_everything_that_agents_export_is_named() -> None:
    named = set(re.findall(r"`(\w+)", " ".join(AGENT_ROWS) + CARDS))
    exported = set(discreet.agents.__all__)
    assert exported <= named
    assert set(re.findall(r"`([A-Z]\w+)", " ".join(AGENT_ROWS) + CARDS)) <= exported


def test_the_options_of_an_agent_have_their_rows() -> None:
    cells = [cell for cell in AGENT_ROWS if not re.match(r"`[A-Z]", cell)]
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(AgentOptions.__annotations__)
    shown = next(cell for cell in AGENT_ROWS if cell.startswith("`Agent("))
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
    clients = section("Client")
    assert "`dialect=" in clients
    assert all(f"{name}`" in clients and hasattr(discreet.client, name) for name in ("LSP", "MCP", "ACP"))
