"""`discreet install`: each host's file from nothing, with what was in it, and as it was before; and all that can be in the way."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.cli.commands import SERVE, verbs
from discreet.mcp_hosts.json_text import read_json
from discreet.mcp_hosts.settings_file import BACKUP, edited, read_settings
from discreet.mcp_hosts.table import HOSTS, Machine, Server
from support.in_process import in_process
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS

APP = """
from discreet import Service
shop = Service("shop", description="Sells stationery.", version="1.0.0")
@shop.query()
async def look(name: str) -> float:
    return 1.5
"""

needs_tomlkit = pytest.mark.needs("tomlkit")
every_host = pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[needs_tomlkit] if host.format == "toml" else []) for key, host in HOSTS.items()]
)
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes, links and pipes")


class Desk:
    """A user's home and a project with an app, and a machine as the table takes it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "projekt ä"
        for each in (self.home, self.project, self.project / ".git"):
            each.mkdir()
        (self.project / "shop.py").write_text(APP, encoding="utf-8")
        self.variables = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "APPDATA": str(self.home / "AppData"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "CODEX_HOME": "",
            "CLAUDE_CONFIG_DIR": "",
        }
        system: Any = sys.platform if sys.platform in ("darwin", "win32") else "linux"
        self.machine = Machine(system, self.variables, str(self.home), str(self.project), self.project.as_posix())

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return in_process(*words, folder=self.project, **(self.variables | more))

    def install(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run("install", "./shop.py:shop", *words, **more)

    def file(self, key: str, scope: Any = "user") -> Path:
        """The settings file of a host, whose folder is there as if the host were."""
        Path(HOSTS[key].folder_on(self.machine)).mkdir(parents=True, exist_ok=True)
        return Path(HOSTS[key].path(scope, self.machine))

    def entries(self, key: str, scope: Any = "user") -> Any:
        text = self.file(key, scope).read_text(encoding="utf-8")
        if HOSTS[key].format == "jsonc":
            text = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or "", text)
            text = re.sub(r",(?=\s*[}\]])", "", text)
        found: Any = tomllib.loads(text) if HOSTS[key].format == "toml" else json.loads(text)
        for name in HOSTS[key].keys_of(scope, self.machine)[-1]:
            found = found[name]
        return found

    @property
    def words(self) -> list[str]:
        """The command line that an entry must have."""
        return [*SERVE, f"{self.project / 'shop.py'}:shop", "--dialect", "mcp"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def written(path: Path, text: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return text.encode()


def words_of(entry: Any) -> list[str]:
    return [*entry["command"]] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]


# -- what is written -------------------------------------------------------------------------------------------------------------


def test_the_verb_offers_the_hosts_and_the_scopes_of_the_table() -> None:
    rows = {row.flag: row for row in verbs()["install"].arguments}
    assert rows["--host"].choices == tuple(HOSTS)
    assert set(rows["--scope"].choices or ()) == {scope for host in HOSTS.values() for scope in host.files}
    assert all(host.source.startswith("https://") for host in HOSTS.values())
    named = {name for host in HOSTS.values() for name in re.findall(r"\{([A-Z]\w+)\|", repr(host))}
    assert named == set(verbs()["install"].environment) == set(verbs()["discover"].environment)


@every_host
def test_a_server_is_written_into_no_file_and_starts(desk: Desk, key: str) -> None:
    file = desk.file(key)
    done = desk.install("--host", key)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{HOSTS[key].title}: wrote shop to {file}\n"
    entry = desk.entries(key)["shop"]
    assert words_of(entry) == desk.words
    assert not {"env", "environment", "env_vars"} & set(entry)
    assert [each.name for each in file.parent.iterdir() if each.is_file()] == [file.name]
    asked = subprocess.run(
        words_of(entry),
        input=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n',
        capture_output=True,
        cwd=desk.home,
        env=environment(),
        check=True,
        timeout=DEADLINE_SECONDS,
    )
    assert [tool["name"] for tool in json.loads(asked.stdout)["result"]["tools"]] == ["shop_look"]


JSON = '{\n    "über": "größe",\n    "KEYS": {\n        "other": {"command": "x", "args": []}\n    },\n    "last": [1, 2.0]\n}\n'
JSONC = (
    '// mine\n{\n\t"über": 1, // größe\n\t"KEYS": {\n\t\t/* first */ "other": {"url": "http://x"}, // kept\n\t},\n}\n'
)
TOML = '# mine\nmodel = "größe" # kept\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.other.env]\nA = "1"\n\n[[more]]\nx = 1\n'
BEFORE = {"json": JSON, "jsonc": JSONC, "toml": TOML}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@every_host
def test_all_that_was_in_a_file_stays_and_the_file_is_as_before_without_the_server(
    desk: Desk, key: str, line_end: str
) -> None:
    host, file = HOSTS[key], desk.file(key)
    text = BEFORE[host.format].replace("KEYS", host.keys[-1][0]).replace("\n", line_end)
    before = written(file, text)
    done = desk.install("--host", key)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{host.title}: wrote shop to {file} (backup: {file}{BACKUP})\n"
    assert Path(f"{file}{BACKUP}").read_bytes() == before
    assert list(desk.entries(key)) == ["other", "shop"]
    kept = [line for line in text.split(line_end) if line.strip(" \t}],")]
    now = file.read_bytes().decode()
    assert [line for line in kept if line.rstrip(",") not in now] == []
    assert line_end == "\n" or host.format == "toml" or now.count("\n") == now.count("\r\n")

    after = file.read_bytes()
    again = desk.install("--host", key)
    assert (again.returncode, again.stdout) == (0, f"{host.title}: shop is already in {file}\n")
    assert (file.read_bytes(), Path(f"{file}{BACKUP}").read_bytes()) == (after, before)

    gone = desk.install("--host", key, "--remove")
    assert (gone.returncode, gone.stderr) == (0, "")
    assert file.read_bytes() == before
    assert Path(f"{file}{BACKUP}").read_bytes() == after


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": 1}',
        '{"a":1,"servers":{}}',
        '{"servers": {"x": {}}}',
        "{\n}\n",
        "// only this\n",
        '\ufeff{\n  "servers": {}\n}',
        '{\n  "servers": {\n    // none yet\n  }\n}\n',
        '{\n  "servers": {\n    "x": {}, // a note\n  },\n}',
        '{\n  "servers": {\n    "x": {} // a note\n  }\n}',
        '{\n  "servers": {"x": {"y": "\\ud83d \\" // no comment {"}}, "z": 1}',
    ],
)
def test_a_server_comes_into_a_document_of_any_layout_and_leaves_it_as_it_was(desk: Desk, text: str) -> None:
    file = desk.file("vscode")
    before = written(file, text)
    assert desk.install("--host", "vscode").returncode == 0
    now = file.read_bytes().decode()
    assert all(note in now for note in re.findall(r"// [a-z ]+", text))
    listed = json.loads(desk.run("discover", "--json").stdout)["servers"]
    assert [server["name"] for server in listed if server["discreet"]] == ["shop"]
    assert desk.run("install", "--remove", "--name", "shop", "--host", "vscode").returncode == 0
    assert file.read_bytes() == before


def test_a_server_goes_out_from_between_others_without_the_backup(desk: Desk) -> None:
    file = desk.file("vscode")
    others = ['"a": {}', '"z": {"url": "http://z"}']
    shop = '"shop": {"command": "discreet", "args": ["serve"]}'
    for place in range(3):
        members = ", ".join([*others[:place], shop, *others[place:]])
        written(file, f'{{"servers": {{{members}}}}}')
        assert desk.install("--host", "vscode", "--remove").returncode == 0
        assert json.loads(file.read_text()) == {"servers": {"a": {}, "z": {"url": "http://z"}}}
    written(file, '{"servers": {\n  // above\n  ' + shop + ', "z": {}\n}}')
    assert desk.install("--host", "vscode", "--remove").returncode == 0
    assert file.read_text() == '{"servers": {\n  // above\n "z": {}\n}}'


def test_a_file_of_the_second_name_is_the_one_that_is_changed(desk: Desk) -> None:
    second = desk.file("opencode").with_suffix(".jsonc")
    written(second, '{"mcp": {"servers": {"x": {"type": "local", "command": ["x"]}}}} // as version 2 has it')
    assert desk.install("--host", "opencode").returncode == 0
    assert '"x"' in second.read_text()
    assert list(json.loads(second.read_text().partition(" //")[0])["mcp"]["servers"]) == ["x", "shop"]
    assert not second.with_suffix(".json").exists()


@pytest.mark.parametrize(
    ("key", "scope"), [(key, scope) for key, host in HOSTS.items() for scope in host.files if scope != "user"]
)
def test_other_scopes_have_files_of_their_own_or_an_object_of_their_own(desk: Desk, key: str, scope: str) -> None:
    if HOSTS[key].format == "toml":
        pytest.importorskip("tomlkit")
    desk.file("claude-code")
    assert desk.install("--host", key, "--scope", scope).returncode == 0
    assert words_of(desk.entries(key, scope)["shop"]) == desk.words
    assert (desk.home in desk.file(key, scope).parents) is (scope == "local")


@needs_tomlkit
def test_several_hosts_are_written_at_once_and_one_that_fails_stops_no_other(desk: Desk) -> None:
    written(desk.file("cursor"), "{")
    desk.file("zed")
    done = desk.install("--host", "cursor", "--host", "codex", "--host", "zed", "--host", "zed")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert done.stderr.startswith(f"discreet: Cursor: {desk.file('cursor')}: ")
    assert "Codex: is not here: there is no folder" in done.stderr
    assert done.stdout == f"Zed: wrote shop to {desk.file('zed')}\n"


def test_a_server_of_ours_is_replaced_and_what_the_user_added_to_it_stays(desk: Desk) -> None:
    old = {"command": "/old/bin/discreet", "args": ["serve", "./x.py:x"], "env": {"A": "1"}, "trust": True}
    written(desk.file("gemini"), json.dumps({"mcpServers": {"shop": old}}))
    done = desk.install("--host", "gemini")
    assert (done.returncode, done.stdout.partition(" (")[0]) == (
        0,
        f"Gemini CLI: replaced shop in {desk.file('gemini')}",
    )
    entry = desk.entries("gemini")["shop"]
    assert words_of(entry) == desk.words
    assert set(entry) == {"command", "args", "trust"}


GAPS = st.sampled_from(["", " ", "\n", "\r\n\t", " /* , } */ ", " // , {\n", "\n  // x\n  "])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """A value of JSONC in any layout."""
    kind = draw(st.sampled_from(["leaf", "list", "object"] if depth else ["leaf"]))
    gap = lambda: draw(GAPS)  # noqa: E731 - each is another one
    if kind == "leaf":
        return json.dumps(draw(LEAVES), ensure_ascii=draw(st.booleans()))
    items = draw(st.lists(documents(depth - 1), max_size=3))
    if kind == "object":
        names = draw(st.lists(st.text(max_size=3), min_size=len(items), max_size=len(items), unique=True))
        items = [f"{json.dumps(name)}{gap()}:{gap()}{item}" for name, item in zip(names, items, strict=True)]
    inner = ",".join(f"{gap()}{item}{gap()}" for item in items) + (
        f",{gap()}" if items and draw(st.booleans()) else gap()
    )
    return f"[{inner}]" if kind == "list" else f"{{{inner}}}"


@given(
    members=st.lists(documents(), max_size=3),
    others=st.lists(documents(), max_size=3),
    gaps=st.lists(GAPS, min_size=4, max_size=4),
    comma=st.booleans(),
)
def test_an_entry_goes_into_any_document_and_out_again(
    members: list[str], others: list[str], gaps: list[str], comma: bool
) -> None:
    def listed(values: list[str]) -> str:
        return ",".join(f'{gaps[0]}"m{at}"{gaps[1]}:{value}{gaps[2]}' for at, value in enumerate(values))

    inner = (
        f"{listed(others)}{',' if others else ''}{gaps[3]}"
        '"servers":{' + listed(members) + ("," if comma and members else "")
    )
    text = f"{gaps[0]}{{{inner}{gaps[3]}}}{',' if comma else ''}{gaps[1]}}}{gaps[2]}"
    with_it = edited(text, "jsonc", ("servers",), "shop", {"command": "x"})  # which reads it again, and compares
    assert list(read_settings(with_it, "jsonc")["servers"]) == [*(f"m{at}" for at in range(len(members))), "shop"]
    without = edited(with_it, "jsonc", ("servers",), "shop", None)
    assert read_settings(without, "jsonc") == read_settings(text, "jsonc")
    for at in range(len(members)):
        edited(text, "jsonc", ("servers",), f"m{at}", None)


@given(text=st.text(alphabet=st.sampled_from('{}[]:,"\\/*a1 \n\t\ufeff'), max_size=30), comments=st.booleans())
def test_any_text_is_read_or_refused_as_json_is(text: str, comments: bool) -> None:
    try:
        expected: Any = json.loads(text)
    except ValueError:
        expected = None
    try:
        found = read_json(text, comments=comments)
    except ValueError:
        assert expected is None
        return
    assert comments or (found is None) == (not text.strip(" \n\t\ufeff")) or found is not None
    if found is not None and not comments:
        assert found.data == json.loads(text.removeprefix("\ufeff"))


# -- addresses, variables, settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("claude-code", {"type": "http", "url": "http://h/mcp"}),
        ("cursor", {"url": "http://h/mcp"}),
        ("vscode", {"type": "http", "url": "http://h/mcp"}),
        ("windsurf", {"serverUrl": "http://h/mcp"}),
        ("zed", {"url": "http://h/mcp"}),
        pytest.param("codex", {"url": "http://h/mcp"}, marks=needs_tomlkit),
        ("gemini", {"httpUrl": "http://h/mcp"}),
        ("opencode", {"type": "remote", "url": "http://h/mcp"}),
    ],
)
def test_a_server_by_http_is_an_address(desk: Desk, key: str, entry: dict[str, str]) -> None:
    desk.file(key)
    assert desk.run("install", "--http", "http://h/mcp", "--name", "shop", "--host", key).returncode == 0
    assert desk.entries(key) == {"shop": entry}
    assert desk.install("--host", key).returncode == 1  # an address is not known to be ours
    assert desk.install("--host", key, "--remove", "--http", "http://h/mcp").returncode == 0
    assert not desk.file(key).exists()


@every_host
def test_a_file_that_was_made_for_the_server_goes_with_it(desk: Desk, key: str) -> None:
    file = desk.file(key)
    assert desk.install("--host", key).returncode == 0
    gone = desk.install("--host", key, "--remove")
    assert (gone.returncode, gone.stdout) == (0, f"{HOSTS[key].title}: removed shop from {file}\n")
    assert not [each for each in file.parent.iterdir() if each.name.startswith(file.name)]


def test_a_file_of_a_project_says_that_its_paths_hold_on_this_machine_alone(desk: Desk) -> None:
    file = desk.file("cursor", "project")
    said = f"discreet: Cursor: {file} has absolute paths of this machine; others need their own\n"
    assert desk.install("--host", "cursor", "--scope", "project").stderr == said


@pytest.mark.parametrize(
    ("key", "member", "value"),
    [
        ("claude-code", "env", {"SHOP_TOKEN": "${SHOP_TOKEN}"}),
        ("claude-desktop", "env", {"SHOP_TOKEN": "s3cr3t-value-9"}),
        ("cursor", "env", {"SHOP_TOKEN": "${env:SHOP_TOKEN}"}),
        ("vscode", "env", {"SHOP_TOKEN": "${env:SHOP_TOKEN}"}),
        ("windsurf", "env", {"SHOP_TOKEN": "${env:SHOP_TOKEN}"}),
        ("zed", "env", {"SHOP_TOKEN": "s3cr3t-value-9"}),
        pytest.param("codex", "env_vars", ["SHOP_TOKEN"], marks=needs_tomlkit),
        ("gemini", "env", {"SHOP_TOKEN": "$SHOP_TOKEN"}),
        ("opencode", "environment", {"SHOP_TOKEN": "{env:SHOP_TOKEN}"}),
    ],
)
def test_a_variable_is_passed_on_and_a_value_is_written_only_where_there_is_no_other_way(
    desk: Desk, key: str, member: str, value: object
) -> None:
    file = desk.file(key)
    done = desk.install("--host", key, "--env", "SHOP_TOKEN", SHOP_TOKEN="s3cr3t-value-9")
    assert done.returncode == 0
    assert desk.entries(key)["shop"][member] == value
    has_value = "s3cr3t-value-9" in file.read_text()
    told = f"discreet: {HOSTS[key].title}: {file} has the values of SHOP_TOKEN as text\n" if has_value else ""
    assert done.stderr == told
    assert sys.platform == "win32" or not has_value or stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = desk.install("--print", "--host", key, "--env", "SHOP_TOKEN", SHOP_TOKEN="s3cr3t-value-9")
    assert "s3cr3t-value-9" not in shown.stdout + shown.stderr


def test_settings_of_serve_are_checked_and_their_paths_are_absolute(desk: Desk) -> None:
    desk.file("cursor")
    (desk.project / "own.toml").write_text("max-threads = 3\n")
    (desk.home / "token").write_text("x")
    more = [
        "--root",
        ".",
        "--log-file",
        "l.txt",
        "--credential",
        f"github={desk.home / 'token'}",
        "--max-threads=4",
        "--config",
        "own.toml",
    ]
    done = desk.install("--host", "cursor", "--", *more)
    assert (done.returncode, done.stderr) == (0, "")
    here = desk.project
    assert set(words_of(desk.entries("cursor")["shop"])[len(desk.words) :]) == {
        f"--root={here}",
        f"--log-file={here / 'l.txt'}",
        f"--credential=github={desk.home / 'token'}",
        "--max-threads=4",
        f"--config={here / 'own.toml'}",
    }


def test_what_would_be_written_is_printed_and_nothing_is_written(desk: Desk) -> None:
    done = desk.install("--host", "vscode", "--print")
    file = HOSTS["vscode"].path("user", desk.machine)
    assert (done.returncode, done.stderr) == (0, f"discreet: VS Code: {file}\n")
    assert words_of(json.loads(done.stdout)["servers"]["shop"]) == desk.words
    assert list(desk.home.iterdir()) == []


# -- what is in the way ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["./shop.py:shop"], "--host"),
        (["./shop.py:shop", "--host", "emacs"], "--host"),
        (["--host", "cursor"], "name an app"),
        (["./shop.py:shop", "--host", "windsurf", "--scope", "project"], "it has user"),
        (
            ["./shop.py:shop", "--host", "cursor", "--host", "claude-desktop", "--http", "http://h/mcp"],
            "Claude Desktop",
        ),
        (["--host", "cursor", "--name", "x", "--http", "ftp://h"], "--http"),
        (
            [
                "--host",
                "cursor",
                "--name",
                "x",
                "--http",
                "https://h/mcp?token=ghp_0123456789abcdefghijABCDEFGHIJ012345",
            ],
            "secret",
        ),
        (["--host", "cursor", "--name", "x", "--http", "http://h/mcp", "--", "--root", "."], "--http"),
        (["./shop.py:shop", "--host", "cursor", "--name", "ü"], "--name"),
        (["./shop.py:shop", "--host", "cursor", "--env", "A=hunter2"], "--env A:"),
        (["./shop.py:shop", "--host", "zed", "--env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
        (["./shop.py:shop", "--host", "cursor", "--", "--no-such"], "--no-such"),
        (["./shop.py:shop", "--host", "cursor", "--", "--http", "localhost:1"], "stdin and stdout"),
        (["./shop.py:shop", "--host", "cursor", "--", "--store", "postgresql://u:hunter2hunter2@h/db"], "secret"),
        (["./shop.py:none", "--host", "cursor"], "none"),
        (["./none.py:shop", "--host", "cursor"], "none.py"),
        (["./shop.py:shop", "--host", "cursor", "--", "--credential", "a=token"], "a path with blanks"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_nothing_is_written(desk: Desk, words: list[str], said: str) -> None:
    before = [desk.file(key) for key in ("cursor", "zed", "windsurf", "claude-desktop")]
    done = desk.run("install", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert not any(file.exists() for file in before)


def test_a_host_that_is_not_here_is_named_with_its_folder_unless_forced(desk: Desk) -> None:
    done = desk.install("--host", "cursor")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no folder {desk.home / '.cursor'}" in done.stderr
    assert list(desk.home.iterdir()) == []
    assert desk.install("--host", "cursor", "--force").returncode == 0
    assert list(desk.entries("cursor")) == ["shop"]


def test_a_server_of_another_program_is_not_replaced_and_not_removed_unless_forced(desk: Desk) -> None:
    before = written(desk.file("cursor"), '{"mcpServers": {"shop": {"command": "npx", "args": ["shop"]}}}')
    for words in ([], ["--remove"]):
        done = desk.install("--host", "cursor", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "the server shop is not discreet's" in done.stderr
        assert desk.file("cursor").read_bytes() == before
    assert desk.install("--host", "cursor", "--force").returncode == 0
    assert words_of(desk.entries("cursor")["shop"]) == desk.words
    assert desk.install("--host", "cursor", "--remove").returncode == 0
    assert desk.entries("cursor") == {}
    again = desk.install("--host", "cursor", "--remove")
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is no server shop" in again.stderr


@pytest.mark.parametrize(
    ("key", "content", "said"),
    [
        ("cursor", b'{"a": 1', "line 1"),
        ("cursor", b'{\n"a": tru}', "line 2"),
        ("cursor", b'{"a": 1} {}', "more than one"),
        ("cursor", b"[" * 100_000, "in each other"),
        ("cursor", b'{"a": NaN}', "line 1"),
        ("cursor", b"{'a': 1}", "line 1"),
        ("cursor", b'{"a": "\xff"}', "UTF-8"),
        ("cursor", b"[]", "no object"),
        ("cursor", b'{"mcpServers": []}', "mcpServers"),
        ("claude-code", b'{"a": 1} // mine', "a comment"),
        ("claude-code", b'{"a": 1,}', "a comma"),
        ("codex", b"a = \n", "line 1"),
        ("codex", b"a = " + b"[" * 100_000, "can't be read"),
        ("codex", b"mcp_servers = 1\n", "mcp_servers"),
        pytest.param(
            "codex", b"x = nan\n", "without a loss", marks=needs_tomlkit
        ),  # it equals nothing, so nothing is known
        pytest.param("codex", b"mcp_servers = {a = {command = 'x'}}\n", "can't be changed", marks=needs_tomlkit),
    ],
)
def test_a_file_that_cannot_be_read_or_changed_is_a_line_and_stays(
    desk: Desk, key: str, content: bytes, said: str
) -> None:
    file = desk.file(key)
    file.write_bytes(content)
    done = desk.install("--host", key)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert str(file) in done.stderr
    assert said in done.stderr
    assert file.read_bytes() == content
    assert os.listdir(file.parent).count(file.name + BACKUP) == 0


def test_without_tomlkit_a_line_says_what_to_install(desk: Desk) -> None:
    desk.file("codex")
    code = "import sys; sys.modules['tomlkit'] = None; from discreet.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "install", "./shop.py:shop", "--host", "codex"],
        cwd=desk.project,
        env=environment(**desk.variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install 'discreet[install]'" in done.stderr


@posix
def test_a_link_stays_a_link_and_the_mode_stays(desk: Desk) -> None:
    file, real = desk.file("cursor"), desk.home / "dotfiles" / "cursor.json"
    before = written(real, "{}\n")
    real.chmod(0o640)
    file.symlink_to(real)
    assert desk.install("--host", "cursor").returncode == 0
    assert file.is_symlink()
    assert list(desk.entries("cursor")) == ["shop"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    backup = real.with_name(real.name + BACKUP)
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (before, 0o640)
    assert os.listdir(file.parent) == [file.name]


@posix
def test_a_pipe_or_a_folder_in_the_place_of_the_file_is_refused_without_a_wait(desk: Desk) -> None:
    os.mkfifo(desk.file("cursor"))
    desk.file("windsurf").mkdir()
    done = desk.install("--host", "cursor", "--host", "windsurf")
    assert (done.returncode, done.stderr.count("it is no file")) == (1, 2)


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_line(desk: Desk) -> None:
    before = written(desk.file("cursor"), "{}")
    desk.file("cursor").parent.chmod(0o500)
    try:
        done = desk.install("--host", "cursor")
    finally:
        desk.file("cursor").parent.chmod(0o700)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "can't be written" in done.stderr
    assert desk.file("cursor").read_bytes() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder in which not even root can write")
def test_a_folder_in_which_nothing_can_be_made_is_a_line(desk: Desk) -> None:
    done = desk.install(
        "--host", "codex", "--host", "claude-code", "--force", CLAUDE_CONFIG_DIR="/proc/self", CODEX_HOME="/proc/x"
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 2)
    assert done.stderr.count("it can't be written") >= 1


def test_runs_at_the_same_time_lose_no_server(desk: Desk) -> None:
    written(desk.file("cursor"), JSON.replace("KEYS", "mcpServers"))
    names = [f"shop-{number}" for number in range(6)]
    running = [
        subprocess.Popen(
            [*DISCREET, "install", "./shop.py:shop", "--host", "cursor", "--name", name],
            cwd=desk.project,
            env=environment(**desk.variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for name in names
    ]
    done = [(process.communicate(timeout=DEADLINE_SECONDS), process.returncode) for process in running]
    kept = {name for name, (_, status) in zip(names, done, strict=True) if status == 0}
    assert set(desk.entries("cursor")) == {"other", *kept}
    assert kept == set(names) or sys.platform == "win32"  # there, one that was overtaken says so
    assert len(os.listdir(desk.file("cursor").parent)) == 2


# -- the table of paths ----------------------------------------------------------------------------------------------------------

ADA = {
    "linux": ("/home/ada", "/home/ada/p", {}),
    "darwin": ("/Users/ada", "/Users/ada/p", {}),
    "win32": (r"C:\Users\ada", r"C:\Users\ada\p", {"APPDATA": r"C:\Users\ada\AppData\Roaming"}),
}
CONFIG = {"linux": "~/.config", "darwin": "~/Library/Application Support", "win32": "~/AppData/Roaming"}
XDG = dict.fromkeys(CONFIG, "~/.config")
EVERYWHERE = dict.fromkeys(CONFIG, "~")
ZED = {"linux": "~/.config/zed", "darwin": "~/.config/zed", "win32": "~/AppData/Roaming/Zed"}


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    ("key", "root", "rest"),
    [
        ("claude-code", EVERYWHERE, "/.claude.json"),
        ("claude-desktop", CONFIG, "/Claude/claude_desktop_config.json"),
        ("cursor", EVERYWHERE, "/.cursor/mcp.json"),
        ("vscode", CONFIG, "/Code/User/mcp.json"),
        ("windsurf", EVERYWHERE, "/.codeium/windsurf/mcp_config.json"),
        ("zed", ZED, "/settings.json"),
        ("codex", EVERYWHERE, "/.codex/config.toml"),
        ("gemini", EVERYWHERE, "/.gemini/settings.json"),
        ("opencode", XDG, "/opencode/opencode.json"),
    ],
)
def test_each_system_has_its_paths(system: Any, key: str, root: dict[str, str], rest: str) -> None:
    home, folder, environ = ADA[system]
    machine = Machine(system, environ, home, folder, folder)
    expected = (root[system] + rest).replace("~", home, 1)
    assert HOSTS[key].paths("user", machine)[0] == (expected.replace("/", "\\") if system == "win32" else expected)
    separator = "\\" if system == "win32" else "/"
    if "project" in HOSTS[key].files:
        assert HOSTS[key].paths("project", machine)[0].startswith(folder + separator)


def test_variables_move_the_folders_of_hosts() -> None:
    environ = {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "XDG_CONFIG_HOME": "/x"}
    machine = Machine("linux", environ, "/home/ada", "/p", "/p")
    assert HOSTS["codex"].paths("user", machine) == ["/c/config.toml"]
    assert HOSTS["claude-code"].paths("user", machine) == ["/d/.claude.json"]
    assert HOSTS["claude-code"].folder_on(machine) == "/d"
    assert HOSTS["vscode"].paths("user", machine) == ["/x/Code/User/mcp.json"]


def test_a_host_would_replace_a_part_of_a_path_so_it_is_refused(desk: Desk) -> None:
    desk.file("gemini")
    (desk.project / "a$b.py").write_text(APP)
    done = desk.run("install", "./a$b.py:shop", "--host", "gemini")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "would replace" in done.stderr


def test_the_entry_of_a_server_has_nothing_that_the_row_does_not_name() -> None:
    server = Server("s", ("c", "a"), "", {"A": "1"})
    for host in HOSTS.values():
        assert set(host.entry(server)) == set(host.stdio)
        assert msgspec.json.encode(host.entry(server)).find(b"<") < 0


def test_to_serve_loads_no_table_of_hosts() -> None:
    code = (
        "import sys\nfrom discreet.__main__ import main\n"
        "def told(event, args):\n    if event == 'import' and 'mcp_hosts' in args[0]: sys.stderr.write('loaded')\n"
        "sys.addaudithook(told)\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "serve", "--dialect", "mcp"],
        input='{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n',
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.stdout.count('"jsonrpc"'), done.stderr) == (1, "")
