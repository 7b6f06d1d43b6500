"""`breakpoint()` in a daemon: with `--debug` somebody attaches and goes on, without it nothing stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.debugger import sockets
from support.backends import BACKENDS
from support.waits import DEADLINE_SECONDS
from support.wire import request

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")

Spawn = Callable[..., Any]

APP = """
import pdb
import anyio
from discreet import Service

shop = Service("shop")

@shop.query(timeout=0.01)
def thread(n: int) -> int:
    n += 1
    breakpoint()
    n += 1
    return n

@shop.query(timeout=0.01)
async def loop(n: int) -> int:
    n += 1
    breakpoint()
    await anyio.sleep(0.05)
    n += 1
    return n

@shop.query(inline=True)
def inline(n: int) -> int:
    n += 1
    breakpoint(header="here")
    return n + 1

@shop.query()
def direct(n: int) -> int:
    pdb.set_trace()
    return n

@shop.query(inline=True)
def ping() -> str:
    return "pong"
"""


@pytest.fixture(autouse=True)
def shop(app_directory: Path) -> None:
    (app_directory / "shop.py").write_text(APP)


class Attached:
    """`discreet attach` with pipes; `ask` sends a command and returns what comes before the next prompt."""

    def __init__(self, command: list[str], *pid: str) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([*command, "attach", *pid], bufsize=0, **pipes)

    def prompt(self) -> str:
        """What comes before the next prompt, or before the end."""
        assert self.process.stdout is not None
        text = b""
        while not text.endswith(b"(Pdb) ") and (data := self.process.stdout.read(1)):
            text += data
        return text.decode()

    def ask(self, command: str) -> str:
        self.send(command)
        return self.prompt()

    def send(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)


Attach = Callable[..., Attached]


@pytest.fixture
def attach(command: list[str]) -> Iterator[Attach]:
    running: list[Attached] = []

    def start(*pid: object) -> Attached:
        running.append(Attached(command, *map(str, pid)))
        return running[-1]

    yield start
    for attached in running:
        attached.process.kill()
        attached.wait()
        for pipe in (attached.process.stdin, attached.process.stdout, attached.process.stderr):
            assert pipe is not None
            pipe.close()


def ask(child: Any, call_id: int, method: str, **params: object) -> None:
    child.write(request(call_id, f"shop/{method}", params))


def waiting(child: Any) -> str:
    """What the log tells to type, once a handler stands at a breakpoint."""
    line = child.stderr_until("debugger.waiting")
    found = re.search(r'attach="discreet attach (\d+)"', line)
    assert found is not None, line
    return found[1]


@pytest.mark.parametrize(
    ("method", "backend"), [("thread", "asyncio"), ("inline", "asyncio"), *(("loop", backend) for backend in BACKENDS)]
)
def test_who_attaches_looks_at_a_handler_changes_it_and_lets_it_go_on(
    spawn: Spawn, attach: Attach, method: str, backend: str
) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug", f"--backend={backend}")
    assert child.call(1, "shop/ping")["result"] == "pong"
    ask(child, 2, method, n=1)
    attached = attach(waiting(child))
    assert "shop.py" in attached.prompt()
    assert attached.ask("p n * 100").startswith("200\n")
    attached.ask("!n = 10")
    attached.send("c")
    assert child.read()["result"] == 11
    assert child.call(3, "shop/ping")["result"] == "pong"
    assert child.end() == 0
    assert "loop.blocked" not in child.stderr()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_steps_cross_an_await_and_end_where_the_handler_ends(spawn: Spawn, attach: Attach, backend: str) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug", f"--backend={backend}")
    ask(child, 1, "loop", n=1)
    attached = attach(waiting(child))
    attached.prompt()
    while "return n" not in (said := attached.ask("n")):
        assert "shop.py" in said
    attached.send("n")
    assert child.read()["result"] == 3
    ask(child, 2, "thread", n=1)  # the same one is still attached
    assert "thread()" in attached.prompt()
    attached.send("c")
    assert child.read()["result"] == 3


def test_a_second_one_is_refused_and_the_handler_stands_on(spawn: Spawn, attach: Attach) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    ask(child, 1, "thread", n=1)
    first = attach(pid := waiting(child))
    first.prompt()
    second = attach(pid)
    second.close_stdin()
    assert second.wait() == 2
    assert second.process.stderr is not None
    assert second.process.stderr.read() == f"discreet: somebody is attached to {pid}, and only one can be\n".encode()
    assert first.ask("p n").startswith("2\n")
    first.send("c")
    assert child.read()["result"] == 3


def test_who_has_left_before_a_breakpoint_lets_no_handler_go_on(spawn: Spawn, attach: Attach) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    assert child.call(1, "shop/ping")["result"] == "pong"
    for _ in range(2):
        gone = attach(child.process.pid)
        assert gone.process.stderr is not None
        assert gone.process.stderr.readline().startswith(b"discreet: attached")
        gone.process.kill()
        gone.wait()
    ask(child, 2, "thread", n=1)
    assert waiting(child) == str(child.process.pid)


@pytest.mark.parametrize("how", ["quit", "end of input", "killed"])
def test_who_leaves_lets_the_handler_go_on_past_all_breakpoints(spawn: Spawn, attach: Attach, how: str) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    ask(child, 1, "thread", n=1)
    attached = attach(waiting(child))
    attached.prompt()
    attached.ask("b 13")
    match how:
        case "quit":
            attached.send("q")
        case "end of input":
            attached.close_stdin()
        case _:
            attached.process.kill()
    assert child.read()["result"] == 3
    attached.wait()
    ask(child, 2, "thread", n=1)
    waiting(child)  # for somebody else


def test_a_breakpoint_that_is_set_meanwhile_stops_in_the_same_handler(spawn: Spawn, attach: Attach) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    ask(child, 1, "thread", n=1)
    attached = attach(waiting(child))
    attached.prompt()
    assert "Breakpoint 1" in attached.ask("b 13")
    assert "shop.py(13)" in attached.ask("c")
    attached.send("c")
    assert child.read()["result"] == 3


def test_handlers_stop_one_after_the_other(spawn: Spawn, attach: Attach) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    for call_id in (1, 2, 3):
        ask(child, call_id, "thread", n=call_id)
    attached = attach(waiting(child))
    answers = {}
    for _ in range(3):
        attached.prompt()
        attached.send("c")
        answer = child.read()
        answers[answer["id"]] = answer["result"]
    assert answers == {1: 3, 2: 4, 3: 5}


@pytest.mark.parametrize(("method", "attached"), [("thread", False), ("loop", True), ("inline", True)])
def test_sigterm_lets_a_stopped_handler_go_on_and_ends_the_daemon(
    spawn: Spawn, attach: Attach, method: str, attached: bool
) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    ask(child, 1, method, n=1)
    pid = waiting(child)
    someone = attach(pid) if attached else None
    if someone is not None:
        someone.prompt()
    child.signal(signal.SIGTERM)
    assert child.read_all() == [{"jsonrpc": "2.0", "id": 1, "result": 3}]
    assert child.wait() == 0
    assert int(pid) not in sockets.listening()
    if someone is not None:
        someone.send("p n")  # nobody is there any more
        assert someone.wait() == 0


def test_new_code_waits_until_the_handler_goes_on(spawn: Spawn, attach: Attach, app_directory: Path) -> None:
    flags = ("--debug", "--reload", "--drain-timeout=0.1", "--log-level=info")
    child = spawn("serve", "./shop.py:shop", *flags)
    ask(child, 1, "thread", n=1)
    pid = waiting(child)
    attached = attach(pid)
    attached.prompt()
    (app_directory / "shop.py").write_text(APP.replace("pong", "the new code"))
    child.stderr_until("reload.checked")
    attached.ask("import time; time.sleep(1)")  # time enough to be cut off
    attached.send("c")
    assert child.read()["result"] == 3
    child.stderr_until("daemon.serving")
    assert child.call(2, "shop/ping")["result"] == "the new code"


def test_only_the_user_can_reach_the_debugger(spawn: Spawn) -> None:
    child = spawn("serve", "./shop.py:shop", "--debug")
    child.call(1, "shop/ping")
    path = Path(f"/tmp/discreet-{os.getuid()}/{child.process.pid}.debug")
    assert [stat.S_IMODE(each.lstat().st_mode) for each in (path.parent, path)] == [0o700, 0o600]


def test_without_the_flag_a_breakpoint_is_a_line_in_the_log(spawn: Spawn) -> None:
    child = spawn("serve", "./shop.py:shop")
    for call_id, method in enumerate(("thread", "loop", "inline")):
        ask(child, call_id, method, n=1)
        assert "error" not in child.read() or method != "inline"
        line = child.stderr_until("breakpoint.ignored")
        assert re.search(rf'at="shop.py:\d+ {method}" hint="start the daemon with --debug"', line)


def test_pythons_own_debugger_says_what_to_use_instead(spawn: Spawn) -> None:
    child = spawn("serve", "./shop.py:shop")
    assert child.call(1, "shop/direct", {"n": 1})["error"]["code"] == -32603
    assert 'hint="call breakpoint(), and start the daemon with --debug"' in child.stderr_until("handler.failed")


@pytest.mark.parametrize("flags", [(), ("--debug",)])
def test_pythonbreakpoint_keeps_its_meaning(spawn: Spawn, app_directory: Path, flags: tuple[str, ...]) -> None:
    child = spawn("serve", "./shop.py:shop", *flags, env={"PYTHONBREAKPOINT": "0"})
    assert child.call(1, "shop/inline", {"n": 1})["result"] == 3
    assert child.end() == 0
    assert "breakpoint.ignored" not in child.stderr()
    (app_directory / "mine.py").write_text("def stop(**given: str) -> None:\n    print('stopped by mine')\n")
    child = spawn("serve", "./shop.py:shop", *flags, env={"PYTHONBREAKPOINT": "mine.stop"})
    assert child.call(1, "shop/inline", {"n": 1})["result"] == 3
    child.stderr_until("stopped by mine")


def test_a_file_that_was_merely_found_starts_no_debugger(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "discreet.toml").write_text("debug = true\n")
    child = spawn("serve", "./shop.py:shop")
    assert child.call(1, "shop/inline", {"n": 1})["result"] == 3
    assert child.process.pid not in sockets.listening()


def test_a_daemon_that_is_not_there_is_wrong_usage(attach: Attach) -> None:
    attached = attach(os.getpid())
    assert attached.wait() == 2
    assert attached.process.stderr is not None
    assert attached.process.stderr.read().count(b"\n") == 1


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(sockets, "_folder", lambda: str(tmp_path))
    with pytest.raises(sockets.SocketUnusable):
        sockets.listen()


def test_the_sockets_of_the_dead_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(sockets, "_folder", lambda: str(tmp_path))
    with subprocess.Popen(["true"]) as dead:
        pass
    (tmp_path / f"{dead.pid}.debug").touch()
    with sockets.listen():
        assert sockets.listening() == [os.getpid()]
        sockets.remove()
    assert sockets.listening() == []
