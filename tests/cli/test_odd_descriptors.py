"""Every verb with standard descriptors that are closed, full, broken or of the wrong kind: a status and no traceback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.cli.commands import verbs
from support.in_process import in_process
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a POSIX shell and /dev/full")

APP = """
from discreet import Service

shop = Service("shop")

@shop.query()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""

RECORDING = b"""\
{"type":"start","ms":0,"version":1,"framing":"content-length","command":["x"]}
{"type":"message","ms":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"shop/add","params":{"a":1,"b":2}}}
{"type":"message","ms":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":4}}
{"type":"end","ms":4,"status":0}
"""

DOCUMENT = b"""\
{"openapi":"3.1.0","info":{"title":"Shop","version":"1"},"paths":{"/add":{"get":{"operationId":"add","responses":{}}}}}
"""

CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"version"}\n'

APP_NAME: Final = "./app.py:shop"

COMMANDS: Final = {
    "serve": ["serve", "--framing=newline", APP_NAME],
    "call": ["call", "shop/add", "a=1", "b=2", f"--app={APP_NAME}"],
    "demo": ["demo"],
    "doctor": ["doctor", APP_NAME],
    "inspect": ["inspect", "./app.py:nothing", "--no-browser"],
    "attach": ["attach", "1"],
    "schema": ["schema", APP_NAME],
    "card": ["card", APP_NAME],
    "generate": ["generate", "python", APP_NAME],
    "record": ["record", "--tail", "-o", "new.jsonl", "--", *DISCREET, "serve"],
    "show": ["show", "recording.jsonl"],
    "replay": ["replay", "recording.jsonl", "--", *DISCREET, "serve", APP_NAME],
    "import": ["import", "check", "openapi.json"],
    "discover": ["discover"],
    "tasks": ["tasks", "list", "--store", "sqlite:tasks.db"],
    "bridge": ["bridge", "http://127.0.0.1:9/mcp"],
    "completion": ["completion", "bash"],
    "--help": ["--help"],
}

ONE_SOCKET: Final = "stderr is the same as stdout, so log lines would stand among the messages"

LOST = frozenset({"schema", "card", "generate", "call", "show", "replay", "completion", "import", "discover", "tasks"})
"""Without stdout these would do their work for nothing."""

SERVE: Final = ("serve", "bridge")

ODD: Final[dict[str, tuple[str, Callable[[str], set[int]]]]] = {
    "stdin is closed": ("<&-", lambda verb: {1} if verb == "replay" else {0}),
    "stdout is closed": (
        ">&-",
        lambda verb: {2} if verb in LOST or verb in SERVE else {0},
    ),
    "stderr is closed": ("2>&-", lambda verb: {1} if verb == "replay" else {0}),
    "all are closed": ("<&- >&- 2>&-", lambda verb: {2} if verb in LOST or verb in SERVE else {0}),
    "stdout is full": (">/dev/full", lambda _: {1}),
    "stdout is for reading": ("1</dev/null", lambda verb: {2} if verb in (*SERVE, "record") else {1}),
    "stderr is full": ("2>/dev/full", lambda verb: {1} if verb == "replay" else {0}),
    "stderr is for reading": ("2</dev/null", lambda verb: {1} if verb == "replay" else {0}),
    "stdout has no reader": (
        "| true",
        lambda verb: {0, 1} if verb == "bridge" else {1},
    ),  # it answers behind the end of input
}
"""What a shell does with the descriptors, and the statuses that a verb may then end with."""

FEW: Final = frozenset({"all are closed", "stdout is full", "stdout has no reader"})
MANY: Final = frozenset({"serve", "schema", "replay"})
"""One that serves, one that prints, and one that starts a server. For the others only a few of the cases are tried."""

OPEN_STATUS: Final = ("record", "attach", "inspect")
"""The status of a recording is its server's, whatever becomes of what the server writes. The others find no daemon, and no app."""


def test_every_verb_is_tried() -> None:
    tried = {words[0] for words in COMMANDS.values() if not words[0].startswith("-")}
    assert tried == set(verbs()) - {"new", "install"}  # which write files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "recording.jsonl").write_bytes(RECORDING)
    (tmp_path / "openapi.json").write_bytes(DOCUMENT)
    store = SqliteStore(str(tmp_path / "tasks.db"))
    store.open_early()
    store.close_early()
    return tmp_path


def run(folder: Path, verb: str, redirection: str) -> tuple[int, bytes]:
    words = [word.replace("new.jsonl", f"{abs(hash(redirection))}.jsonl") for word in COMMANDS[verb]]
    stdout: int = subprocess.PIPE
    if redirection == "| true":
        reading, stdout = os.pipe()
        os.close(reading)
        redirection = ""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *DISCREET, *words],
        input=CALL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        cwd=folder,
        env=environment(),
        timeout=DEADLINE_SECONDS,
    )
    if stdout != subprocess.PIPE:
        os.close(stdout)
    return done.returncode, done.stderr


@pytest.mark.parametrize("verb", COMMANDS)
def test_odd_descriptors_are_a_status_and_at_most_a_line(folder: Path, verb: str) -> None:
    cases = {name: odd for name, odd in ODD.items() if name in FEW or verb in MANY}
    with ThreadPoolExecutor(3) as pool:
        ends = dict(zip(cases, pool.map(lambda odd: run(folder, verb, odd[0]), cases.values()), strict=True))
    wrong = {
        odd: (status, said)
        for odd, (status, said) in ends.items()
        if (status not in ODD[odd][1](verb) and verb not in OPEN_STATUS)
        or b"Traceback" in said
        or b"Exception" in said
        or sum(line.startswith(b"discreet: ") for line in said.splitlines()) > 1
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["schema", "-o", "/dev/full", APP_NAME], 1),
        (["schema", "-o", ".", APP_NAME], 2),
        (["schema", "-o", "nowhere/schema.json", APP_NAME], 2),
        (["schema", "--check", ".", APP_NAME], 2),
        (["generate", "python", "-o", "/dev/full", APP_NAME], 1),
        (["generate", "python", "-o", ".", APP_NAME], 2),
        (["record", "-o", ".", "--", "true"], 2),
        (["replay", ".", "--", "true"], 2),
        (["show", "app.py"], 2),
        (["show", "nowhere"], 2),
        (["replay", "/dev/null", "--", "true"], 2),
        (["tasks", "list", "--store", "sqlite:."], 2),
        (["tasks", "list", "--store", "sqlite:app.py"], 2),
        (["tasks", "cancel", "ID", "--store", "sqlite:nowhere.db"], 2),
        (["import", "check", "."], 2),
        (["import", "check", "app.py"], 2),
        (["call", "version", "--token-file=."], 2),
        (["serve", "--config=."], 2),
    ],
)
def test_a_file_that_is_none_is_one_line(folder: Path, words: list[str], status: int) -> None:
    done = in_process(*words, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert done.stderr.startswith("discreet: ")


@pytest.mark.parametrize(
    ("kind", "log", "status"),
    [
        ("socket", [], 2),
        ("pipe", [], 2),
        ("file", [], 2),
        ("socket", ["--log-file=log"], 0),
        ("socket", ["--log-file=nowhere/log"], 2),
        ("socket", ["--log-file=/dev/stderr"], 2),
    ],
)
def test_no_log_line_goes_where_the_messages_go(tmp_path: Path, kind: str, log: list[str], status: int) -> None:
    """As under inetd, whose programs have one socket as all three of their standard descriptors."""
    (tmp_path / "app.py").write_text(APP)
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    (tmp_path / "both").touch()
    with ours, theirs, (tmp_path / "both").open("r+b") as file, os.fdopen(reading, "rb") as piped:
        both: Any = {"socket": theirs, "pipe": writing, "file": file}[kind]
        command = [*DISCREET, "serve", APP_NAME, "--framing=newline", "--log-level=info", *log]
        child = subprocess.Popen(command, stdin=theirs, stdout=both, stderr=both, cwd=tmp_path, env=environment())
        theirs.close()
        os.close(writing)
        ours.sendall(CALL)
        ours.shutdown(socket.SHUT_WR)
        assert child.wait(DEADLINE_SECONDS) == status
        said = {"socket": lambda: ours.recv(65536), "pipe": piped.read, "file": (tmp_path / "both").read_bytes}[
            kind
        ]().decode()
    (line,) = said.splitlines()
    if status:
        assert ONE_SOCKET in line
    else:
        assert json.loads(line)["id"] == 1
        assert "event=daemon.stopped" in (tmp_path / "log").read_text()
