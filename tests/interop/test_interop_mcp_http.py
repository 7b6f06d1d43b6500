"""MCP's Streamable HTTP: the official clients complete whole sessions, and the protocol's own conformance suite finds nothing.

`DISCREET_MCP_CONFORMANCE` names a folder `node_modules` with node and @modelcontextprotocol/conformance. `DISCREET_INTEROP_PYTHON`,
`DISCREET_INTEROP_MCP_1` and `DISCREET_INTEROP_MCP_1_9` are as for the sessions over stdio.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import mcp_everything
from support.cutting_proxy import cutting_proxy
from support.gateways import http_daemon
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

from .test_interop_clients import MCP_SESSION, said
from .test_interop_mcp import ASKED, EXAMPLE, SESSION, TASKS

Place = Any

pytest.importorskip("httptools")

FIRST_PROGRESS = b'"progress":1'


def served(folder: Path, app: str) -> Any:
    """The URL of the endpoint, for the block."""
    return http_daemon(folder, app, "--http-mcp", "--isolated")


def newest() -> str:
    python = os.environ.get("DISCREET_INTEROP_PYTHON", sys.executable)
    if subprocess.run([python, "-P", "-c", "from mcp import Client"], capture_output=True).returncode:
        missing("mcp is not installed where DISCREET_INTEROP_PYTHON says")
    return python


def port_of(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])


def test_requests_of_mcps_own_sdk_are_those_over_stdio(place: Place) -> None:
    with served(place.folder, "./session_app.py:app") as url:
        done = place.run([newest(), "-P", "session_mcp.py", "2026-07-28", f"{url}mcp"])
    assert said(done) == {**MCP_SESSION, "revision": "2026-07-28"}, done.stderr
    assert done.returncode == 0


def test_a_session_of_mcps_own_sdk_outlives_a_cut_and_is_deleted_at_its_end(place: Place) -> None:
    with served(place.folder, "./session_app.py:app") as url, cutting_proxy(port_of(url), FIRST_PROGRESS) as proxy:
        there = f"http://127.0.0.1:{proxy.port}/mcp"
        done = place.run([newest(), "-P", "session_mcp.py", "legacy", there])
    assert said(done) == {**MCP_SESSION, "revision": "2025-11-25"}, done.stderr
    assert (proxy.cuts, proxy.requests[-1]) == (1, "DELETE /mcp HTTP/1.1")


def test_mcps_own_sdk_answers_all_that_a_server_asks_by_http(place: Place) -> None:
    shutil.copy(mcp_everything.__file__, place.folder)
    with served(place.folder, "./mcp_everything.py:server") as url:
        done = place.run([newest(), "-P", "session_mcp_asking.py", "legacy", f"{url}mcp"])
    assert said(done) == ASKED, done.stderr
    assert done.returncode == 0


def test_tools_are_tasks_to_mcps_own_sdk_by_http(place: Place) -> None:
    shutil.copy(mcp_everything.__file__, place.folder)
    with served(place.folder, "./mcp_everything.py:server") as url:
        done = place.run([newest(), "-P", "session_mcp_tasks.py", f"{url}mcp"])
    assert said(done) == TASKS, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("variable", "revision", "order", "cuts"),
    [
        ("DISCREET_INTEROP_MCP_1", "2025-11-25", "False 2 pen for 3.00 [(1.0, 2.0), (2.0, 2.0)]", 1),
        ("DISCREET_INTEROP_MCP_1_9", "2025-03-26", "True The tool has to ask the client, which can't answer []", 0),
    ],
)
def test_a_session_of_mcps_older_sdk_is_that_over_stdio(
    place: Place, variable: str, revision: str, order: str, cuts: int
) -> None:
    python = os.environ.get(variable) or missing(f"{variable} names no Python that has mcp")
    shutil.copy(EXAMPLE, place.folder)
    with served(place.folder, "./shop.py:shop") as url, cutting_proxy(port_of(url), FIRST_PROGRESS) as proxy:
        done = place.run([python, "-P", "session_mcp_1.py", f"http://127.0.0.1:{proxy.port}/mcp"])
    assert said(done) == {**SESSION, "hello": f"shop {revision}", "order": order}, done.stderr
    assert (proxy.cuts, proxy.requests[-1]) == (cuts, "DELETE /mcp HTTP/1.1")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("everything")
    shutil.copy(mcp_everything.__file__, folder)
    with served(folder, "./mcp_everything.py:server") as url:
        yield url


ALSO = {
    "2025-11-25": {"server-session-lifecycle"},
    "2026-07-28": {
        "http-header-validation",
        "http-custom-header-server-validation",
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-wire-fields",
    },
}
"""Scenarios that are not required, and that are passed nevertheless."""


@pytest.mark.parametrize("revision", ALSO)
def test_the_conformance_suite_passes_every_required_scenario(everything: str, revision: str, tmp_path: Path) -> None:
    modules = Path(os.environ.get("DISCREET_MCP_CONFORMANCE") or missing("DISCREET_MCP_CONFORMANCE names no folder"))
    suite = modules / "@modelcontextprotocol" / "conformance"
    list_of_server = (suite / "requirements" / f"{revision}.yaml").read_text().partition("\nserver:\n")[2]
    required = set(re.findall(r"^  - (\S+)$", list_of_server.partition("\n\n")[0], re.MULTILINE))
    assert len(required) >= 30
    suite_run = [modules / ".bin" / "node", suite / "dist" / "index.js", "server", "--requirements", revision]
    done = subprocess.run(
        [*suite_run, "--url", f"{everything}mcp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_SECONDS,
    )
    passed = set(re.findall(r"^✓ (\S+): \d+ passed, 0 failed$", done.stdout, re.MULTILINE))
    assert required | ALSO[revision] <= passed, done.stdout
    assert done.returncode == 0, done.stderr
