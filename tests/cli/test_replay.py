"""`discreet replay`: the same server differs in nothing, another one is told apart, and the exit status says which."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from discreet.cli.commands import verbs
from discreet.cli.main import main
from discreet.framing.encoder import encode_frame
from support.in_process import in_process
from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"

APP = """
import os
from collections.abc import AsyncIterator
from discreet import OperationError, Service

class Refused(OperationError, code="REFUSED"):
    why: str

app = Service("app")

@app.query()
async def add(a: int, b: int) -> int:
    return a + b + int(os.environ.get("OFF_BY", "0"))

@app.query(errors=[Refused])
async def refuse(why: str) -> None:
    raise Refused(why=why)

@app.subscription()
async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number

issued: set[str] = set()

@app.mutation()
async def open_session() -> dict[str, str]:
    token = os.urandom(8).hex()
    issued.add(token)
    return {"token": token}

@app.query()
async def whoami(token: str) -> bool:
    return token in issued
"""


SERVE = [*DISCREET, "serve", "./app.py:app"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture(scope="module")
def addition(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The recording of one call, as a session of its own made it."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "app.py").write_text(APP)
    recorded(folder, ADD)
    return (folder / "s.jsonl").read_text()


@pytest.fixture
def added(folder: Path, addition: str) -> Path:
    """A folder with that recording."""
    (folder / "s.jsonl").write_text(addition)
    return folder


def recorded(folder: Path, *bodies: bytes) -> None:
    """A session in which a client says these things at once, and ends."""
    data = b"".join(encode_frame(body, "content-length") for body in bodies).decode()
    done = finished([*DISCREET, "record", "-o", "s.jsonl", "--framing=auto", "--", *SERVE], folder, stdin=data)
    assert done.returncode == 0, done.stderr


def replayed(folder: Path, *words: str, server: Sequence[str] = SERVE, **env: str) -> subprocess.CompletedProcess[str]:
    return in_process("replay", "s.jsonl", *words, "--", *server, folder=folder, **env)


ADD = b'{"jsonrpc":"2.0","id":1,"method":"app/add","params":{"a":1,"b":2}}'
REFUSE = b'{"jsonrpc":"2.0","id":"two","method":"app/refuse","params":{"why":"rain"}}'
COUNT = b'{"jsonrpc":"2.0","id":3,"method":"app/count","params":{"to":40}}'


def test_the_same_server_differs_in_nothing(folder: Path) -> None:
    recorded(folder, ADD, REFUSE, COUNT)
    done = finished([*DISCREET, "replay", "s.jsonl", "--", *SERVE], folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 sent, 43 compared; differences: 0" in done.stderr


def test_another_answer_is_printed_with_method_id_and_place(folder: Path) -> None:
    recorded(folder, ADD, COUNT)
    done = replayed(folder, OFF_BY="1")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "app/add id 1: result",
        "  recorded  3",
        "  now       4",
    ]


def test_a_session_with_a_login_is_replayed_with_the_token_of_the_new_login(folder: Path) -> None:
    script = (
        "import json, sys\n"
        "def call(i, method, **params):\n"
        "    sys.stdout.write(json.dumps({'jsonrpc': '2.0', 'id': i, 'method': method, 'params': params}) + '\\n')\n"
        "    sys.stdout.flush()\n"
        "    return json.loads(sys.stdin.readline())['result']\n"
        "token = call(1, 'app/open_session')['token']\n"
        "assert call(2, 'app/whoami', token=token) is True\n"
    )
    # The recorder between a client and a server: two pipes of this test's making.
    words = ["record", "-o", "s.jsonl", "--framing=newline", "--", *SERVE, "--framing=newline"]
    recorder = subprocess.Popen(
        [*DISCREET, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment(),
    )
    client = subprocess.run(
        [sys.executable, "-c", script], stdin=recorder.stdout, stdout=recorder.stdin, timeout=30, check=False
    )
    recorder.communicate(timeout=DEADLINE_SECONDS)
    assert (client.returncode, recorder.returncode) == (0, 0)
    done = replayed(folder, server=[*SERVE, "--framing=newline"])
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.startswith("discreet: messages: 2 sent")


def test_another_exit_status_is_a_difference(added: Path) -> None:
    server = (
        'import sys\nsys.stdout.write(\'Content-Length: 35\\r\\n\\r\\n\' + \'{"jsonrpc":"2.0","id":1,"result":3}\')\n'
        "sys.stdout.flush()\nsys.stdin.read()\nsys.exit(4)"
    )
    done = replayed(added, server=[sys.executable, "-c", server])
    assert done.returncode == 1
    assert "exit status\n  recorded  0\n  now       4\n" in done.stdout


def test_a_server_that_can_not_be_started_has_a_status_of_its_own(added: Path) -> None:
    done = replayed(added, server=["no-such-command-anywhere"])
    assert (done.returncode, done.stdout) == (10, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["s.jsonl"],
        ["s.jsonl", "--"],
        ["missing.jsonl", "--", "true"],
        ["app.py", "--", "true"],
        ["s.jsonl", "--ignore", "a..b", "--", "true"],
        ["s.jsonl", "--timeout", "0", "--", "true"],
        ["s.jsonl", "more", "--", "true"],
    ],
    ids=shlex.join,
)
def test_wrong_usage_starts_nothing(
    argv: list[str], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "s.jsonl").write_text('{"type":"start","ms":0,"version":1,"framing":"newline","command":[]}\n')
    monkeypatch.chdir(folder)
    assert main(["replay", *argv]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


def test_the_page_lists_every_exit_status() -> None:
    page = (Path(__file__).parents[2] / "docs" / "recording.md").read_text()
    listed = dict(re.findall(r"^\| (\d+) \| (.+?) \|$", page, re.MULTILINE))
    assert listed == verbs()["replay"].all_statuses
