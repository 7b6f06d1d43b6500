"""Imports of servers that are processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from discreet import Service
from discreet.imports.archive import pack
from discreet.imports.from_mcp import mcp_service
from discreet.imports.mcp.session import read_mcp
from discreet.imports.service import ImportOptions
from discreet.imports.targets import Command

TESTS = Path(__file__).parents[2]
SHOP = TESTS.parent / "examples" / "mcp_shop" / "shop.py"
ODD = TESTS / "lib" / "support" / "odd_mcp_server.py"

Import: TypeAlias = Callable[..., Service]


def odd(*modes: str) -> Command:
    """The odd server, as it is told."""
    return Command((sys.executable, "-I", "-S", str(ODD), *modes))


def daemon(app: str) -> Command:
    """A daemon of ours that serves this app to clients of MCP."""
    return Command((sys.executable, "-P", "-m", "discreet", "serve", "--dialect", "mcp", app))


def imported(command: Command, namespace: str = "odd", **options: Any) -> Service:
    """The service of what a command offers, for all callers."""
    data = pack(read_mcp(command, namespace))
    return mcp_service(namespace, command, data, ImportOptions(expose=True, **options))


@pytest.fixture
def import_odd() -> Import:
    return lambda *modes, **options: imported(odd(*modes), **options)


@pytest.fixture
def import_shop() -> Import:
    return lambda **options: imported(daemon(f"{SHOP}:shop"), "shop", **options)


@pytest.fixture
def import_app() -> Import:
    """Of a file with a service: `import_app("./app.py:service")`."""
    return lambda app, namespace, **options: imported(daemon(app), namespace, **options)
