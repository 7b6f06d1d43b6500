"""The reference names everything that is public, and nothing that there is not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import discreet
import discreet.client
import discreet.testing
from discreet import Context, Identity, OperationError, Service
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
