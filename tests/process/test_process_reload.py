"""The real process starts anew while its pipes stay open: the client sees new code and nothing else."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.backends import BACKENDS
from support.waits import DEADLINE_SECONDS
from support.wire import request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a process can't be replaced there")

Spawn = Callable[..., Any]

APP = """
print("banner of VALUE")
import os, anyio
from discreet import Service
from parts import value

app = Service("app")

@app.query(inline=True)
def who() -> list[object]:
    return [value(), os.getpid()]

@app.query(timeout=None)
async def held(path: str) -> str:
    while not os.path.exists(path):
        await anyio.sleep(0.01)
    return "released"
"""

RELOADING = ("--reload", "--log-level", "info")
PARTS = "def value() -> str: return {value!r}\n"


@pytest.fixture
def project(app_directory: Path) -> Path:
    (app_directory / "live.py").write_text(APP)
    write(app_directory, "one")
    return app_directory


def write(project: Path, value: str) -> None:
    (project / "parts.py").write_text(PARTS.format(value=value))


def start(spawn: Spawn, *args: str) -> Any:
    child = spawn("serve", "./live.py:app", *RELOADING, *args)
    assert child.call("first", "app/who")["result"] == ["one", child.process.pid]
    return child


@pytest.mark.parametrize("backend", BACKENDS)
def test_changed_code_answers_over_the_same_pipe_in_the_same_process(spawn: Spawn, project: Path, backend: str) -> None:
    child = start(spawn, "--backend", backend)
    log = ""
    for value in ("two", "six")[: 2 if backend == "asyncio" else 1]:  # of one size, within a second of each other
        write(project, value)
        log += child.stderr_until("event=daemon.swapped")
        assert child.call(value, "app/who")["result"] == [value, child.process.pid]
    assert "stdout.stray" in log or child.stderr_until("stdout.stray")
    assert child.end() == 0
    assert child.read_all() == []


def test_requests_that_are_sent_all_the_time_are_each_answered_once(spawn: Spawn, project: Path) -> None:
    child = start(spawn)
    write(project, "two")
    sent, answers = 0, []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not answers or answers[-1]["result"][0] == "one":
        assert time.monotonic() < deadline
        child.write(b"".join(request(n, "app/who") for n in range(sent, sent + 200)))
        sent += 200
        answers += [child.read() for _ in range(150 if sent == 200 else 200)]  # fifty are always under way
    child.close_stdin()
    answers += child.read_all()
    assert sorted(answer["id"] for answer in answers) == list(range(sent))
    assert {answer["result"][0] for answer in answers} == {"one", "two"}
    assert child.wait() == 0


BROKEN = {
    "a wrong declaration": ("live.py", APP + "\n@app.query()\ndef who() -> int: return 1\n"),
    "no Python": ("parts.py", "def value() -> str: return ("),
    "an exception": ("parts.py", "raise RuntimeError('password=hunter2hunter2')"),
    "a module that is missing": ("parts.py", "import nowhere"),
}


def test_broken_code_leaves_the_old_running_and_is_logged_once(spawn: Spawn, project: Path) -> None:
    child = start(spawn)
    for case, (name, code) in BROKEN.items():
        (project / name).write_text(code)
        line = child.stderr_until("event=reload.failed")
        assert "level=error" in line, case
        assert ("import failed" in line) == (name == "parts.py"), case
        assert str(project) not in line, case
        assert "hunter2" not in line, case
        assert child.call(case, "app/who")["result"][0] == "one"
    write(project, "two")
    (project / "live.py").write_text(APP)
    child.stderr_until("event=daemon.swapped")
    assert child.call(2, "app/who")["result"][0] == "two"
    assert child.end() == 0
    assert "reload.failed" not in child.stderr()


def test_a_running_request_finishes_before_the_swap(spawn: Spawn, project: Path) -> None:
    child = start(spawn, "--drain-timeout", "60")
    child.write(request("held", "app/held", {"path": "go"}) + request("v", "version"))
    assert child.read()["id"] == "v"
    write(project, "two")
    child.stderr_until("event=daemon.swapping")
    child.write(request("next", "app/who"))
    (project / "go").touch()
    assert child.read() == {"jsonrpc": "2.0", "id": "held", "result": "released"}
    assert child.read()["result"][0] == "two"
    assert child.end() == 0


def test_the_log_level_stays_and_signals_still_end_the_daemon_after_a_swap(spawn: Spawn, project: Path) -> None:
    child = start(spawn)
    assert child.call(1, "setLogLevel", {"level": "debug"})["result"]["level"] == "debug"
    write(project, "two")
    child.stderr_until("event=daemon.swapped")
    assert "log_level=debug" in child.stderr_until("event=daemon.started")
    assert child.call(2, "app/who")["result"][0] == "two"
    child.signal(signal.SIGTERM)
    assert child.wait() == 0


def is_kept(descriptor: Path) -> bool:
    """Whether it is open, and not on a module that a thread is importing."""
    try:
        return descriptor.readlink().suffix not in {".py", ".pyc", ".so"}
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_swap_leaves_no_descriptor_behind(spawn: Spawn, project: Path) -> None:
    child = start(spawn)
    counts = []
    for value in ("two", "six"):
        write(project, value)
        child.stderr_until("event=daemon.swapped")
        assert child.call(value, "app/held", {"path": "parts.py"})["result"] == "released"  # by now the loop runs
        folder = Path(f"/proc/{child.process.pid}/fd")
        counts.append(min(sum(map(is_kept, folder.iterdir())) for _ in range(100)))  # without those open for a moment
    assert counts[0] == counts[1]
    assert child.end() == 0


def test_the_new_program_is_ours_whatever_has_been_written_into_the_working_directory(
    spawn: Spawn, project: Path, command: list[str]
) -> None:
    command[:] = [word for word in command if word != "-P"]  # Python itself then looks there first
    child = start(spawn)
    for path in ("discreet/__init__.py", "discreet/__main__.py", "contextlib.py", "fnmatch.py", "watchfiles.py"):
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text("import os\nos._exit(99)\n")
    write(project, "two")
    child.stderr_until("event=daemon.swapped")
    assert child.call("new", "app/who")["result"] == ["two", child.process.pid]
    assert child.end() == 0


def test_a_session_of_mcp_goes_on_and_hears_that_its_lists_may_have_changed(spawn: Spawn, project: Path) -> None:
    child = spawn("serve", "./live.py:app", *RELOADING, "--dialect", "mcp", "--framing", "content-length")
    info = {"name": "host", "version": "1"}
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": info}
    assert child.call("hello", "initialize", hello)["result"]["capabilities"]["tools"] == {"listChanged": True}
    write(project, "two")
    child.stderr_until("event=daemon.swapped")
    assert child.read()["method"] == "notifications/tools/list_changed"
    result = child.call("call", "tools/call", {"name": "app_who"})["result"]
    assert "two" in result["content"][0]["text"]
    assert "structuredContent" not in result  # that revision has none: it was kept
    assert child.end() == 0


def test_a_listener_of_mcp_hears_of_every_reload_and_is_answered_at_the_end(spawn: Spawn, project: Path) -> None:
    child = spawn("serve", "./live.py:app", *RELOADING, "--dialect", "mcp", "--framing", "content-length")
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": "2026-07-28", f"{prefix}/clientCapabilities": {}}
    wanted = {"toolsListChanged": True, "promptsListChanged": True}
    child.write(request("ears", "subscriptions/listen", {"notifications": wanted, "_meta": meta}))
    subscription = {f"{prefix}/subscriptionId": "ears"}
    told = {"_meta": subscription, "notifications": {"toolsListChanged": True}}
    assert child.read()["params"] == told
    for value in ("two", "six"):
        write(project, value)
        child.stderr_until("event=daemon.swapped")
        heard = child.read()
        assert (heard["method"], heard["params"]) == ("notifications/tools/list_changed", {"_meta": subscription})
        who = child.call(value, "tools/call", {"name": "app_who", "_meta": meta})["result"]
        assert value in who["content"][0]["text"]
    assert child.end() == 0
    (answer,) = child.read_all()
    assert (answer["id"], answer["result"]["_meta"].items() >= subscription.items()) == ("ears", True)
