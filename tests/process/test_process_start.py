"""How the real process refuses to start, and what it never says of the credentials that it is given."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS
from support.wire import frame

Spawn = Callable[..., Any]

SECRET = "tok_8fJ2kQverySecretcredential77"
TOKEN_OF_ENVIRONMENT = "Zq81kkTT0pmWx7vB"  # not of any provider: only the environment tells that it is one

HEAD = """
import os
from discreet import Service
app = Service("bad")
"""

BROKEN = {
    "a kind against its handler": ("@app.subscription()\nasync def f() -> int: return 1\n", ["bad/f"]),
    "an import that fails": (
        f"token = '{SECRET}'\nraise ValueError('line\\nbreak password={SECRET}')\n",
        ["ValueError"],
    ),
    "an import that tells a secret": ("raise ValueError('no ' + os.environ['API_TOKEN'])", ["ValueError"]),
    "an import that exits": ("raise SystemExit(7)\n", ["SystemExit"]),
    "an exception without words": (
        "class Silent(Exception):\n  def __str__(self): raise RuntimeError\nraise Silent\n",
        ["Silent"],
    ),
    "a module whose names can't be asked for": ("del app\ndef __getattr__(name): raise KeyError(name)\n", ["app"]),
    "a module that is missing": ("import no_such_module_of_mine\n", ["no_such_module_of_mine"]),
    "a syntax error": ("def (:\n", ["SyntaxError"]),
    "a name that is missing": ("del app\n", ["app"]),
    "no service": ("app = 3\n", ["int"]),
}


def refusal(done: CompletedProcess[str]) -> str:
    """The one line of a process that did not start."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("discreet: ")
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr
    return done.stderr.removeprefix("discreet: ")


def refused(folder: Path, *words: str) -> str:
    return refusal(finished([*DISCREET, "serve", *words], folder))


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one start says of each of the broken apps."""
    folder = tmp_path_factory.mktemp("broken")
    apps = {f"./broken{number}.py:app": case for number, case in enumerate(BROKEN)}
    for app, case in apps.items():
        (folder / app.removesuffix(":app")).write_text(HEAD + BROKEN[case][0])
    line = refusal(finished([*DISCREET, "serve", *apps], folder, API_TOKEN=TOKEN_OF_ENVIRONMENT))
    assert str(folder) not in line
    assert TOKEN_OF_ENVIRONMENT not in line
    said = re.split(r"(?:^|; )'(?=\./broken)", line)
    return {apps[app]: fault for app, _, fault in (part.partition("': ") for part in said[1:])}


@pytest.mark.parametrize("case", BROKEN)
def test_each_app_that_can_not_be_hosted_is_named_with_its_fault(faults: dict[str, str], case: str) -> None:
    assert all(word in faults[case] for word in BROKEN[case][1]), faults[case]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("app = Service('bad', uses=['none/a', 'none/b'])\n", ["none/a", "none/b"]),
        ("app = Service('bad', credentials=['key'])\n", ["--credential, key: no file is given; expected key=FILE"]),
    ],
    ids=["an unknown use", "a credential that is missing"],
)
def test_what_is_wrong_among_services_is_said_too(tmp_path: Path, source: str, words: list[str]) -> None:
    (tmp_path / "broken.py").write_text(HEAD + source)
    line = refused(tmp_path, "./broken.py:app")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["pets=f", "petz=f"], ["--credential, petz: ", "nearest: pets; declared are owners, pets"]),
        (["other=f"], ["--credential, other: ", "takes it; declared are owners, pets"]),
    ],
)
def test_a_credential_that_nothing_takes_is_refused_with_those_that_are_declared(
    tmp_path: Path, given: list[str], words: list[str]
) -> None:
    (tmp_path / "app.py").write_text(HEAD + "app = Service('app', credentials=['pets', 'owners'])\n")
    line = refused(tmp_path, "./app.py:app", *(f"--credential={each}" for each in given))
    assert all(word in line for word in words), line
    assert "declared are none" in refused(tmp_path, *(f"--credential={each}" for each in given))


def test_a_refusal_holds_no_control_character(tmp_path: Path) -> None:
    apps = ["a\x7fpp:app", "\x1b[2Japp:app", "./\x9bapp.py:app", "app:\x1b[31m", "a\u202epp:app", ""]
    assert refused(tmp_path, *apps)[:-1].isprintable()


def test_the_same_app_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "guarded.py").write_text(GUARDED)
    assert "app/who" in refused(tmp_path, "./guarded.py:app", "./guarded.py:app")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--token", f"ada:{SECRET}"),
        ("--identity", "no_such:thing"),
        ("--identity", "./needs.py:app"),
        ("--identity", "./needs.py:nothing"),
        ("--credential", "key"),
        ("--credential, key: its file", "key=/no/such/file"),
        ("--store", "sqlite:nowhere/tasks.db"),
    ],
)
def test_a_setting_that_can_not_be_met_is_refused_by_its_name(tmp_path: Path, flag: str, value: str) -> None:
    (tmp_path / "needs.py").write_text(HEAD + "app = Service('bad', credentials=['key'])\n")
    line = refused(tmp_path, "./needs.py:app", "--credential", "key=needs.py", flag.partition(",")[0], value)
    assert line.startswith(flag), line


def test_what_a_broken_app_has_printed_stands_before_the_line_that_says_why(tmp_path: Path) -> None:
    printing = "print('a banner')\nos.system('echo from a child')\nprint('the end', end='')\nraise ValueError\n"
    (tmp_path / "broken.py").write_text(HEAD + printing)
    done = finished([*DISCREET, "serve", "./broken.py:app", "--log-level=debug"], tmp_path)
    *logged, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert last.startswith("discreet: './broken.py:app': ")
    assert all("level=" in line for line in logged)
    assert all(text in "".join(logged) for text in ("a banner", "from a child", "the end", "event=app.failed"))


@pytest.mark.skipif(sys.platform == "win32", reason="there a full pipe can't be told from another")
def test_a_broken_app_ends_though_its_texts_fill_a_stderr_that_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(HEAD + "print(('x' * 999 + '\\n') * 1000)\nraise ValueError\n")
    with subprocess.Popen(
        [*DISCREET, "serve", "./broken.py:app"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            assert child.wait(DEADLINE_SECONDS) == 2
        finally:
            child.kill()


@pytest.mark.parametrize(("level", "logged"), [("debug", True), ("info", False)])
def test_the_traceback_of_a_failed_import_is_logged_at_debug(tmp_path: Path, level: str, logged: bool) -> None:
    (tmp_path / "broken.py").write_text("def fail():\n    raise KeyError('x')\n\nfail()\n")
    done = finished([*DISCREET, "serve", "./broken.py:app", f"--log-level={level}"], tmp_path)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("discreet: ")]
    events = [line for line in done.stderr.splitlines() if "event=app.failed" in line]
    assert bool(events) == logged
    assert all("broken.py" in line and "KeyError" in line for line in events)


def test_a_signal_while_the_app_is_imported_ends_with_0_and_no_complaint(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    )
    child = spawn("serve", "./slow.py:app")
    assert child.wait() == 0
    assert child.stderr() == ""


GUARDED = """
import os
from discreet import Context, Identity, OperationError, Service
app = Service("app")

class Leaky(OperationError, code="LEAKY"):
    "It says too much."
    text: str

@app.query(errors=[Leaky])
def leak() -> None:
    raise Leaky(text="connect with " + os.environ["API_TOKEN"])

@app.query(scopes=["read"])
async def who(ctx: Context) -> str | None:
    return ctx.identity.subject if ctx.identity else None

@app.query(scopes=["read"])
async def fail(ctx: Context) -> None:
    raise ValueError(f"header {ctx.service_params['authorization']}")

class Provider:
    schemes = ["custom"]
    realm = "house"

    def resolve(self, authorization: str) -> Identity | None:
        if "raise" in authorization:
            raise ValueError(authorization)
        return Identity("eve", frozenset({"read"})) if authorization.startswith("Custom") else None

provider = Provider()
"""


def ask(child: Any, method: str, authorization: str | None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    if authorization is not None:
        message["serviceParams"] = {"authorization": authorization}
    child.write(frame(message))
    reply: dict[str, Any] = child.read()
    assert SECRET not in str(reply)
    return reply


def test_tokens_of_the_command_line_let_their_owners_in_and_are_never_said(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "guarded.py").write_text(GUARDED)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    child = spawn("serve", "./guarded.py:app", "--token", f"ada:{digest}:read", "--log-level", "debug")
    assert ask(child, "app/who", f"Bearer {SECRET}")["result"] == "ada"
    assert ask(child, "app/who", f"Bearer {SECRET}x")["error"]["data"]["details"]["authSchemes"] == ["bearer"]
    assert ask(child, "app/who", None)["error"]["data"]["code"] == "FORBIDDEN"
    assert ask(child, "app/none", f"Bearer {SECRET}")["error"]["code"] == -32601
    assert ask(child, "app/fail", f"Bearer {SECRET}")["error"] == {"code": -32603, "message": "Internal error"}
    stderr = child.stderr_until("app/fail")
    assert child.end() == 0
    stderr += child.stderr()
    assert "request.failed" in stderr
    assert SECRET not in stderr
    assert digest not in stderr


def test_a_provider_of_the_apps_own_is_asked_and_its_faults_say_no_credential(
    spawn: Spawn, app_directory: Path
) -> None:
    (app_directory / "guarded.py").write_text(GUARDED)
    child = spawn("serve", "./guarded.py:app", "--identity", "./guarded.py:provider", "--log-level", "debug")
    assert ask(child, "app/who", f"Custom {SECRET}")["result"] == "eve"
    details = ask(child, "app/who", f"Other {SECRET}")["error"]["data"]["details"]
    assert details == {"authSchemes": ["custom"], "realm": "house"}
    assert ask(child, "app/who", f"raise short {SECRET}")["error"] == {"code": -32603, "message": "Internal error"}
    assert ask(child, "app/who", f"Custom {SECRET}")["result"] == "eve"
    stderr = child.stderr_until("identity.failed")
    assert child.end() == 0
    stderr += child.stderr()
    assert SECRET not in stderr


@pytest.mark.parametrize(("scopes", "allowed"), [((), True), (("read",), True), (("write",), False), (("",), False)])
def test_the_flag_scope_says_what_the_parent_may_do(
    spawn: Spawn, app_directory: Path, scopes: tuple[str, ...], allowed: bool
) -> None:
    (app_directory / "guarded.py").write_text(GUARDED)
    flags = [part for scope in scopes for part in ("--scope", scope)]
    child = spawn("serve", "./guarded.py:app", *flags)
    assert ("result" in ask(child, "app/who", None)) == allowed
    assert child.end() == 0


def test_a_secret_of_the_environment_leaves_in_no_reply_not_even_the_first(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "guarded.py").write_text(GUARDED)
    child = spawn("serve", "./guarded.py:app", env={"API_TOKEN": TOKEN_OF_ENVIRONMENT})
    details = child.call(1, "app/leak")["error"]["data"]["details"]
    assert details == {"text": "connect with <redacted>"}
    assert child.end() == 0


def test_a_settings_file_that_is_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "discreet.toml")
    assert finished([*DISCREET, "serve"], tmp_path).returncode in (0, 2)
