"""`discreet discover`: what hosts have, without what nobody should see."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from discreet.mcp_hosts.settings_file import MAX_BYTES
from support.in_process import in_process

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PASSWORD = "correct-horse-9-battery"
FILES = {
    ".claude.json": {
        "mcpServers": {
            "usr": {"type": "stdio", "command": "npx", "args": ["srv", "--token", TOKEN], "env": {"API_KEY": PASSWORD}},
            "remote": {"type": "http", "url": f"https://u:{PASSWORD}@h.example/mcp?api_key={TOKEN}", "headers": {"X": TOKEN}},
        },
        "projects": {"PROJECT": {"mcpServers": {"loc": {"command": "x", "args": [f"at-{PASSWORD}"], "env": {"API_KEY": PASSWORD}}}}},
    },
    ".codex/config.toml": '[mcp_servers.cdx]\ncommand = "y"\nenv_vars = ["A", "B"]\n',
    ".config/opencode/opencode.jsonc": '{"mcp": {"oc": {"type": "local", "command": ["a b", "c"]}, "off": {"enabled": false}, "servers": {"v2": {"type": "remote", "url": "http://h"}},} /* x */}',
    "p/.vscode/mcp.json": {"servers": {"prj": {"command": "z"}}},
    ".cursor/mcp.json": {"mcpServers": {"shop": {"command": "/v/bin/discreet", "args": ["serve", "/s.py:s", "--dialect", "mcp"]}}},
}  # fmt: skip


def home_with(folder: Path, files: dict[str, object]) -> dict[str, str]:
    (folder / "p" / ".git").mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text.replace("PROJECT", (folder / "p").as_posix()), encoding="utf-8")
    own = {
        "HOME": str(folder),
        "USERPROFILE": str(folder),
        "APPDATA": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
    }
    return {**own, "CODEX_HOME": "", "CLAUDE_CONFIG_DIR": ""}


def test_servers_of_all_hosts_are_listed_and_no_secret_is_shown(tmp_path: Path) -> None:
    variables = home_with(tmp_path, FILES)
    done = in_process("discover", "--json", folder=tmp_path / "p", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    rows = [(row["host"], row["scope"], row["name"], row["env"], row["discreet"]) for row in report["servers"]]
    assert rows == [
        ("claude-code", "user", "usr", ["API_KEY"], False),
        ("claude-code", "user", "remote", [], False),
        ("claude-code", "local", "loc", ["API_KEY"], False),
        ("cursor", "user", "shop", [], True),
        ("vscode", "project", "prj", [], False),
        ("codex", "user", "cdx", ["A", "B"], False),
        ("opencode", "user", "v2", [], False),
        ("opencode", "user", "oc", [], False),
    ]
    assert report["servers"][0]["command"][:3] == ["npx", "srv", "--token"]
    assert report["servers"][-1]["command"] == ["a b", "c"]
    assert report["servers"][1]["url"].startswith("https://")
    assert report["faults"] == []
    (tmp_path / "p" / "deep").mkdir()
    deep = json.loads(in_process("discover", "--json", folder=tmp_path / "p" / "deep", **variables).stdout)["servers"]
    assert deep == [row for row in report["servers"] if row["scope"] != "project"]
    text = in_process("discover", folder=tmp_path / "p", **variables).stdout
    assert f"Claude Code, local: {tmp_path / '.claude.json'}\n  loc " in text
    assert "\n  oc      'a b' c\n" in text
    for shown in (done.stdout, text):
        assert TOKEN not in shown
        assert PASSWORD not in shown


def test_settings_that_cannot_be_read_are_lines_and_the_others_are_listed(tmp_path: Path) -> None:
    variables = home_with(
        tmp_path,
        {**FILES, ".claude.json": "{", ".gemini/settings.json": '{"mcpServers": 1}', ".codex/config.toml": "= 1"},
    )
    done = in_process("discover", folder=tmp_path / "p", **variables)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\n  shop  " in done.stdout
    faults = done.stdout.splitlines()[-3:]
    assert [fault.partition(":")[0] for fault in faults] == ["Claude Code", "Codex", "Gemini CLI"]
    assert in_process("discover", "--json", folder=tmp_path, **variables).returncode == 1


def test_where_there_is_nothing_that_is_said(tmp_path: Path) -> None:
    variables = home_with(tmp_path, {})
    done = in_process("discover", folder=tmp_path / "p", **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no host has a server here\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no files with holes")
def test_a_file_that_is_too_large_is_a_line(tmp_path: Path) -> None:
    variables = home_with(tmp_path, {".cursor/mcp.json": ""})
    with (tmp_path / ".cursor" / "mcp.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    done = in_process("discover", folder=tmp_path / "p", **variables)
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert "bytes" in done.stdout


def test_names_and_words_cannot_move_the_cursor(tmp_path: Path) -> None:
    variables = home_with(tmp_path, {".cursor/mcp.json": {"mcpServers": {"a\x1b[2J": {"command": "b\x1b[31m\n"}}}})
    done = in_process("discover", folder=tmp_path / "p", **variables)
    assert "\x1b" not in done.stdout
    assert done.stdout.count("\n") == 2
