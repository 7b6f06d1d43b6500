"""`discreet call`: who calls, with what rights, and servers that speak another protocol."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.commands import load_verb
from discreet.cli.request import MAX_TOKEN_CHARS
from discreet.cli.verbs.call import remote_call_of
from discreet.client import MCP, PLAIN
from discreet.client.dialects import DIALECTS
from discreet.daemon.settings import UsageError
from support.in_process import in_process
from support.programs import finished

PAGE = (Path(__file__).parents[2] / "docs" / "call.md").read_text(encoding="utf-8")

TOKEN = "s3cr3t-of-ann"

APP = """
from collections.abc import AsyncIterator
from discreet import Context, Service

desk = Service("desk")

@desk.query(scopes=["desk:reader"])
async def who(ctx: Context, name: str = "") -> list[str]:
    '''Tell who asks.'''
    assert ctx.identity is not None
    return [ctx.identity.subject, *sorted(f"{name}={value}" for name, value in ctx.service_params.items())]

@desk.subscription(scopes=["desk:reader"])
async def whoever(ctx: Context) -> AsyncIterator[str]:
    assert ctx.identity is not None
    yield ctx.identity.subject
"""


PATIENT = """
import sys
from discreet.cli import completer
from discreet.cli.main import main
completer.DAEMON_SECONDS = 20.0
sys.exit(main(sys.argv[1:]))
"""
"""The program with time enough to complete a line on a busy machine."""


def run(*words: str, cwd: Path, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return in_process(*words, folder=cwd, stdin=stdin, **more)


def parsed(*words: str) -> argparse.Namespace:
    return load_verb("call")[0].read(words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(APP)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path


@pytest.fixture
def guarded() -> dict[str, str]:
    """The environment of a daemon that wants a token."""
    return {"DISCREET_TOKEN": f"ann:{hashlib.sha256(TOKEN.encode()).hexdigest()}:desk:reader"}


# -- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--token-env=MINE"], ["--token-file=token"], ["--token-file=-"]])
def test_a_token_is_sent_from_where_it_is_kept(folder: Path, guarded: dict[str, str], flags: list[str]) -> None:
    words = ("call", "desk/who", "--app=./desk.py:desk", *flags)
    done = run(*words, cwd=folder, stdin=f"{TOKEN}\n", MINE=TOKEN, **guarded)
    assert (done.stdout, done.returncode) == (f'["ann","authorization=Bearer {TOKEN}"]\n', 0), done.stderr
    assert TOKEN not in done.stderr


def test_a_stream_is_asked_for_with_the_token_too(folder: Path, guarded: dict[str, str]) -> None:
    done = run("call", "desk/whoever", "--stream", "--app=./desk.py:desk", "--token-file=token", cwd=folder, **guarded)
    assert (done.stdout, done.returncode) == ('"ann"\n', 0)


def test_a_client_is_generated_of_what_the_token_may_see(folder: Path, guarded: dict[str, str]) -> None:
    server = shlex.join([sys.executable, "-P", "-m", "discreet", "serve", "./desk.py:desk"])
    blind = run("generate", "python", f"--server={server}", cwd=folder, **guarded)
    assert (blind.returncode, "def who(" in blind.stdout) == (0, False)
    seeing = run("generate", "python", f"--server={server}", "--token-file=token", cwd=folder, **guarded)
    assert (seeing.returncode, "def who(" in seeing.stdout) == (0, True)


def test_what_the_token_may_see_is_completed(folder: Path, guarded: dict[str, str]) -> None:
    for flags, offered in (("", ""), ("--token-file token ", "desk/who\ndesk/whoever\n")):
        line = f"discreet call --app ./desk.py:desk {flags}"
        done = finished([sys.executable, "-P", "-c", PATIENT, "--complete", line], folder, **guarded)
        assert (done.stdout, done.stderr) == (offered, "")
    asked = run("--complete", "discreet call --token-file - ", cwd=folder, stdin=TOKEN)
    assert (asked.stdout, asked.stderr) == ("", "")


def test_a_scheme_before_the_token_stays(folder: Path) -> None:
    (folder / "badge").write_text("Badge 7")
    request = remote_call_of(parsed("m", f"--token-file={folder / 'badge'}"))
    assert request.service_params == {"authorization": "Badge 7"}


def test_other_service_params_go_along(folder: Path) -> None:
    words = (
        "call",
        "desk/who",
        "--app=./desk.py:desk",
        "--service-param=TraceParent=00-a=b",
        "--service-param=a2a-version=1.0",
    )
    done = run(*words, cwd=folder)
    assert (done.stdout, done.returncode) == ('["parent","a2a-version=1.0","traceparent=00-a=b"]\n', 0)


@pytest.mark.parametrize(
    "flags",
    [
        ["--token-env=NO_SUCH_VARIABLE"],
        ["--token-file=no/such/file"],
        ["--token-file=."],
        ["--token-file=empty"],
        ["--token-file=lines"],
        ["--token-file=long"],
        ["--token-file=binary"],
        ["--token-file=a\0b"],
        ["--token-file=token", "--token-env=HOME"],
        ["--service-param=Authorization=Bearer s3cr3t-of-ann"],
        ["--service-param=alone"],
        ["--service-param==x"],
        ["--service-param=a=1", "--service-param=A=2"],
        ["--service-param=a=\udcff"],
    ],
)
def test_what_is_no_token_is_wrong_usage_that_does_not_show_it(
    folder: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty").write_text(" \n")
    (folder / "lines").write_text(f"{TOKEN}\n{TOKEN}\n")
    (folder / "long").write_text("x" * (MAX_TOKEN_CHARS + 1))
    (folder / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as raised:
        remote_call_of(parsed("m", *flags))
    assert TOKEN not in str(raised.value)


# -- rights of the call -----------------------------------------------------------------------------------------------


def test_scopes_and_writing_are_the_daemons_to_allow(folder: Path) -> None:
    who = ("call", "desk/who", "--app=./desk.py:desk")
    assert run(*who, "--scope=desk:other", cwd=folder).returncode == 5
    assert run(*who, "--scope=desk:other", "--scope=desk:reader", cwd=folder).returncode == 0
    write = ("call", "fs/write", "path=new.txt", "content=hello")
    assert run(*write, cwd=folder).returncode == 4
    assert run(*write, "--allow-write", cwd=folder).returncode == 0
    assert (folder / "new.txt").read_text() == "hello"


@pytest.mark.parametrize("flag", ["--scope=a", "--allow-write", "--root=.", "--app=a:b"])
def test_what_is_the_daemons_is_no_other_servers(flag: str) -> None:
    with pytest.raises(UsageError):
        remote_call_of(parsed("m", "--server=x", flag))


def test_a_subscription_by_its_plain_name_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text(
        "from collections.abc import AsyncIterator\n"
        "from discreet import Service\n"
        "clock = Service('clock')\n"
        "@clock.subscription()\n"
        "async def ticks() -> AsyncIterator[int]:\n"
        "    '''Tick for ever.'''\n"
        "    while True:\n"
        "        yield 1\n"
    )
    done = run("call", "clock/ticks", "--app=./clock.py:clock", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("", 3)
    assert "--stream" in done.stderr


# -- other protocols --------------------------------------------------------------------------------------------------

LINES = r"""
import json, sys
ready = False
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "notifications/initialized":
            ready = True
        case "initialize":
            answer = {"result": {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}}}
        case "tools/list":
            answer = {"result": {"tools": []}} if ready else {"error": {"code": -32602, "message": "not initialized"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def test_a_server_that_waits_for_a_handshake_gets_it(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(LINES)
    server = f"--server={shlex.join([sys.executable, '-I', '-S', 'lines.py'])}"
    done = run("call", "tools/list", "--dialect=mcp", server, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ('{"tools":[]}\n', "", 0)
    refused = run("call", "tools/list", "--framing=newline", server, cwd=tmp_path)
    assert (refused.stdout, refused.returncode) == ("", 3)
    hint = "; a method of another protocol: --dialect mcp"
    assert refused.stderr == f"discreet: tools/list: INVALID_INPUT: not initialized{hint}\n"


@pytest.mark.parametrize(
    ("words", "dialect", "framing"),
    [
        ([], PLAIN, None),
        (["--dialect=mcp"], MCP, None),
        (["--dialect=mcp", "--framing=content-length"], MCP, "content-length"),
    ],
)
def test_the_framing_is_the_dialects_unless_it_is_named(words: list[str], dialect: Any, framing: str | None) -> None:
    request = remote_call_of(parsed("m", "--server=x", *words))
    assert (request.dialect, request.framing) == (dialect, framing)


CALLS = {"lsp": ["desk/who"], "mcp": ["tools/call", "name=desk_who"], "acp": ["session/new", "cwd=/", "mcpServers=[]"]}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_daemon_itself_speaks_the_dialect_that_is_named(name: str, folder: Path) -> None:
    words = CALLS.get(name, ["desk/who"])
    done = run("call", *words, "--app=./desk.py:desk", f"--dialect={name}", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("sessionId" if name == "acp" else "parent") in done.stdout


def test_without_a_dialect_an_operation_is_called_by_its_name_whatever_the_app_declares(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        'from discreet import Service\napp = Service("tools", dialect="mcp")\n'
        'app.query(name="one", inline=True)(lambda: 1)\n'
    )
    done = run("call", "tools/one", "--app=./tools.py:app", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    done = run("call", "tools/one", "--app=./tools.py:app", "--dialect=mcp", cwd=tmp_path)
    assert done.returncode == 4
    assert "tools/call name=" in done.stderr


def test_the_page_names_every_flag() -> None:
    flags = {name for flag in load_verb("call")[0].flags() for name in flag.names} - {"-h", "--help"}
    assert "--dialect" in flags
    assert {flag for flag in flags if f"`{flag}" not in PAGE} == set()
    assert {name for name in DIALECTS if f"`{name}`" not in PAGE} == set()
