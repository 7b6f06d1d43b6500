"""How the real process refuses to start, and what it never says of the credentials that it is given."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.backends import BACKENDS

Spawn = Callable[..., Any]

SECRET = "tok_8fJ2kQverySecretcredential77"

HEAD = """
from typing import Any
from collections.abc import AsyncIterator
from discreet import Context, OperationError, Service
app = Service("bad")
"""

BROKEN = {
    "duplicate names": ("@app.query()\nasync def f() -> None: ...\n" * 2, ["bad/f"]),
    "an unknown use": ("app = Service('bad', uses=['none/a', 'none/b'])\n", ["none/a", "none/b"]),
    "a reserved code": ("class E(OperationError, code='NOT_FOUND'):\n  '''No.'''\n", ["NOT_FOUND"]),
    "one code twice": (
        "class E(OperationError, code='E'):\n  '''E.'''\nclass F(OperationError, code='E'):\n  '''F.'''\n@app.query(errors=[E, F])\nasync def f() -> None: ...\n",
        ["bad/f", "E"],
    ),
    "a kind against its handler": ("@app.subscription()\nasync def f() -> int: return 1\n", ["bad/f"]),
    "a generator as a query": ("@app.query()\nasync def f() -> AsyncIterator[int]:\n  yield 1\n", ["bad/f"]),
    "a type that JSON can't hold": ("class T: ...\n@app.query()\nasync def f(t: T) -> None: ...\n", ["bad/f", "T"]),
    "a result that JSON can't hold": ("@app.query()\nasync def f() -> set[complex]: ...\n", ["bad/f", "complex"]),
    "an import that fails": (
        f"token = '{SECRET}'\nraise ValueError('line\\nbreak password={SECRET}')\n",
        ["ValueError"],
    ),
    "an import that exits": ("raise SystemExit(7)\n", ["SystemExit"]),
    "an exception without words": (
        "class Silent(Exception):\n  def __str__(self): raise RuntimeError\nraise Silent\n",
        ["Silent"],
    ),
    "a module that is missing": ("import no_such_module_of_mine\n", ["no_such_module_of_mine"]),
    "a syntax error": ("def (:\n", ["SyntaxError"]),
    "a name that is missing": ("del app\n", ["app"]),
    "no service": ("app = 3\n", ["int"]),
    "a credential that is missing": ("app = Service('bad', credentials=['key'])\n", ["key"]),
}


def refused(child: Any) -> str:
    """The one line of a process that did not start."""
    assert child.wait() == 2
    assert child.read_all() == []
    stderr: str = child.stderr()
    assert stderr.count("\n") == 1
    assert stderr.startswith("discreet: ")
    assert "Traceback" not in stderr
    assert SECRET not in stderr
    return stderr


@pytest.mark.parametrize("case", BROKEN)
def test_an_app_that_can_not_be_hosted_is_one_line_and_status_2(spawn: Spawn, app_directory: Path, case: str) -> None:
    source, words = BROKEN[case]
    (app_directory / "broken.py").write_text(HEAD + source)
    line = refused(spawn("serve", "./broken.py:app"))
    assert all(word in line for word in words), line
    assert str(app_directory) not in line


@pytest.mark.parametrize("app", ["a\x7fpp:app", "\x1b[2Japp:app", "./\x9bapp.py:app", "app:\x1b[31m", "a\u202epp:app"])
def test_a_refusal_holds_no_control_character(spawn: Spawn, app: str) -> None:
    assert refused(spawn("serve", app))[:-1].isprintable()


def test_all_that_is_wrong_is_said_at_once(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "one.py").write_text(HEAD + "raise KeyError('x')\n")
    (app_directory / "two.py").write_text(HEAD + "@app.subscription()\ndef f() -> None: ...\n")
    line = refused(spawn("serve", "./one.py:app", "./two.py:app", "three:app"))
    assert all(f"'{path}'" in line for path in ("./one.py:app", "./two.py:app", "three:app"))


def test_the_same_app_twice_is_refused(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "fine.py").write_text(STREAMS)
    assert "app/count" in refused(spawn("serve", "./fine.py:app", "./fine.py:app"))


@pytest.mark.parametrize(
    "flags",
    [
        ("--token", f"ada:{SECRET}"),
        ("--identity", "no_such:thing"),
        ("--identity", "./needs.py:app"),
        ("--identity", "nothing"),
        ("--credential", "key"),
        ("--credential", "key=/no/such/file"),
    ],
)
def test_settings_that_let_nobody_in_are_refused(spawn: Spawn, app_directory: Path, flags: tuple[str, str]) -> None:
    (app_directory / "needs.py").write_text(HEAD + "app = Service('bad', credentials=['key'])\n")
    refused(spawn("serve", "./needs.py:app", *flags))


def test_a_signal_while_the_app_is_imported_ends_with_0_and_no_complaint(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    )
    child = spawn("serve", "./slow.py:app")
    assert child.wait() == 0
    assert child.stderr() == ""


GUARDED = """
from discreet import Context, Identity, Service
app = Service("app")

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
    import json

    from discreet.framing.encoder import encode_frame

    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    if authorization is not None:
        message["serviceParams"] = {"authorization": authorization}
    child.write(encode_frame(json.dumps(message).encode(), "content-length"))
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


STREAMS = """
from collections.abc import AsyncIterator
import anyio
from discreet import Service
app = Service("app")

@app.subscription()
async def count(to: int, pad: int = 0) -> AsyncIterator[str]:
    for number in range(to):
        yield f"{number}:{'x' * pad}"

@app.subscription()
async def tick() -> AsyncIterator[int]:
    while True:
        yield 1
        await anyio.sleep(0.001)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_through_real_pipes_is_whole_and_a_call_overtakes_it(
    spawn: Spawn, app_directory: Path, backend: str
) -> None:
    from discreet.framing.encoder import encode_frame

    (app_directory / "streams.py").write_text(STREAMS)
    child = spawn("serve", "./streams.py:app", "--backend", backend)
    child.write(
        encode_frame(
            b'{"jsonrpc":"2.0","id":"s","method":"app/count","params":{"to":2000,"pad":2000}}', "content-length"
        )
    )
    assert child.read()["params"]["seq"] == 1
    child.write(encode_frame(b'{"jsonrpc":"2.0","id":"v","method":"version"}', "content-length"))
    child.close_stdin()
    messages = child.read_all()
    place = next(index for index, message in enumerate(messages) if message.get("id") == "v")
    assert place < 500
    events = [message["params"]["seq"] for message in messages if "method" in message]
    assert events == list(range(2, 2001))
    assert messages[-1] == {"jsonrpc": "2.0", "id": "s", "result": {"completed": True, "events": 2000}}
    assert child.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_endless_stream_ends_with_the_window(spawn: Spawn, app_directory: Path, number: signal.Signals) -> None:
    from discreet.framing.encoder import encode_frame

    (app_directory / "streams.py").write_text(STREAMS)
    child = spawn("serve", "./streams.py:app", "--drain-timeout", "0.6")
    child.write(encode_frame(b'{"jsonrpc":"2.0","id":"s","method":"app/tick"}', "content-length"))
    child.read()
    child.signal(number)
    *events, answer = child.read_all()
    assert (child.wait(), child.stderr().count("replies.lost")) == (0, 0)
    assert [message["params"]["seq"] for message in events] == list(range(2, len(events) + 2))
    assert answer["error"]["data"]["code"] == "UNAVAILABLE"
