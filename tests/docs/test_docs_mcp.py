"""The page on MCP: its programs work, and its tables name what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from discreet import Service
from discreet.daemon.settings.table import OPTIONS
from discreet.dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_REVISION
from discreet.mcp_hosts.table import HOSTS, Machine, Server
from support.gateways import http_daemon
from support.pages import played

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
PROGRAMS = {
    name: text
    for block in re.findall(r"^ *```python\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    if (text := dedent(block)) and (name := text.partition("\n")[0].removeprefix("# "))
}


@pytest.mark.parametrize(
    ("file", "tools"),
    [
        ("shop.py", ["shop_look"]),
        ("notes.py", ["notes_write"]),
        ("danger.py", ["danger_erase"]),
        ("rates.py", ["rates_rate"]),
    ],
)
def test_a_program_of_the_page_is_a_server(tmp_path: Path, file: str, tools: list[str]) -> None:
    (tmp_path / file).write_text(PROGRAMS[file], encoding="utf-8")
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    app = f"./{file}:{file.removesuffix('.py')}"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", "serve", app, "--dialect", "mcp"],
        input=json.dumps(request).encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    assert [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]] == tools
    assert done.stderr == b""


@pytest.mark.parametrize("file", PROGRAMS)
def test_whatever_a_program_declares_is_described(file: str) -> None:
    declared: dict[str, object] = {}
    exec(PROGRAMS[file], declared)
    services = [each for each in declared.values() if isinstance(each, Service)]
    assert [spec.name for service in services for spec in service.operations if not spec.description] == []


@pytest.mark.skipif(sys.platform == "win32", reason="the console block is for a POSIX shell")
def test_the_session_with_curl_prints_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("httptools")
    (tmp_path / "shop.py").write_text(PROGRAMS["shop.py"], encoding="utf-8")
    block = PAGE.partition("\n## By HTTP\n")[2].partition("```console\n")[2].partition("```")[0]
    lines = block.splitlines()
    typed = "\n".join(line[2:] for line in lines if line.startswith(("$ ", "> ")))
    shown = [line for line in lines if not line.startswith(("$ ", "> "))]
    assert len(shown) == 4
    with http_daemon(tmp_path, "./shop.py:shop", "--http-mcp") as url:
        told = played(f"shopt -s expand_aliases 2>/dev/null\n{typed}", url, tmp_path)
    assert told.splitlines() == shown


def test_the_limits_by_http_are_those_of_the_settings() -> None:
    defaults = {option.flag: option.default for option in OPTIONS}
    table = PAGE.partition("\n## By HTTP\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|[^|]+\| ([\d,]+) \| `(--[\w-]+)` \|", table, re.MULTILINE)
    assert [(flag, float(number.replace(",", ""))) for number, flag in rows] == [
        (flag, defaults[flag]) for flag in ("--http-max-sessions", "--http-session-timeout", "--http-max-requests")
    ]


def test_the_page_names_every_revision() -> None:
    assert all(revision in PAGE for revision in (*LEGACY_REVISIONS, MODERN_REVISION))


SHOP = Server("shop", ("discreet", "serve", "/path/to/shop.py:shop", "--dialect", "mcp"))
RUNNING = Server("shop", url="http://127.0.0.1:8000/mcp")
HERE = Machine("linux", {}, "~", ".", ".")


def row_of(key: str) -> str:
    """The row of a host in the table of the page."""
    host = HOSTS[key]
    files = [host.path(scope, HERE).removeprefix("./") for scope in host.files if scope != "local"]
    keys = host.keys[-1]
    entry: object = host.entry(SHOP)
    if host.format == "toml":
        members = ", ".join(f"{name} = {json.dumps(value)}" for name, value in host.entry(SHOP).items())
        entry = f"{keys[0]}.shop = {{{members}}}"
        assert tomllib.loads(entry) == {keys[0]: {"shop": host.entry(SHOP)}}
    else:
        entry = json.dumps({keys[0]: {"shop": entry}})
    env = f"`{host.env}`" if host.env else "its value"
    by_http = f"`{json.dumps(host.entry(RUNNING))}`" if host.http else "no"
    where = ", ".join(f"`{file}`" for file in files)
    return f"| `{key}` | [{host.title}]({host.source}) | {where} | `{entry}` | {by_http} | {env} |"


def test_the_table_of_hosts_is_that_of_the_verb() -> None:
    table = PAGE.partition("| `--host` |")[2].partition("\n\n")[0]
    assert table.splitlines()[2:] == [row_of(key) for key in HOSTS]
