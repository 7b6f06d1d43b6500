"""What service managers, containers and operators say to the real process, and what it tells them."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

from support.backends import BACKENDS
from support.programs import has_ended
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import request

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has other service managers, and no such signals"
)

Spawn = Callable[..., Any]


APP = """
import os, subprocess, sys, time
from contextlib import asynccontextmanager
import anyio
from discreet import Context, Service

app = Service("app")

@app.query(timeout=None, inline=True)
def block(until: str) -> str:
    open("blocked", "x").close()
    while not os.path.exists(until):
        time.sleep(0.001)
    return "released"

@app.query(timeout=None)
async def wait() -> None:
    await anyio.sleep_forever()

@app.subscription()
async def ticks():
    yield 0
    await anyio.sleep_forever()

@app.query()
def inherited() -> list[str]:
    shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if line.startswith(("NOTIFY_", "WATCHDOG_"))]

@app.mutation()
def orphan() -> int:
    said = subprocess.run(["sh", "-c", "sleep 0 >&2 & echo $!"], capture_output=True, text=True, check=True).stdout
    return int(said)

@app.query()
def collected(pid: int) -> int:
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.001)
    return os.getppid()

@app.query()
def own_child() -> int:
    return subprocess.run(["sh", "-c", "exit 7"]).returncode

@asynccontextmanager
async def slow():
    while not os.path.exists("enter"):
        await anyio.sleep(0.001)
    yield None

late = Service("late", lifespan=slow)

@late.query()
async def echo() -> str:
    return "late"
"""


class Manager:
    """The socket of a service manager, and the messages that came."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(DEADLINE_SECONDS)
        self.address = address

    def next(self) -> str:
        return self.socket.recv(4096).decode()

    def waiting(self, seconds: float = 0) -> bool:
        return bool(select.select([self.socket], [], [], seconds)[0])


@pytest.fixture
def app_directory(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(str(tmp_path / "notify"))
    with found.socket:
        yield found


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_manager_hears_of_readiness_and_of_the_end_and_children_do_not_know_it(
    spawn: Spawn, manager: Manager, backend: str
) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend, env={"NOTIFY_SOCKET": manager.address})
    assert manager.next() == "READY=1\nSTATUS=serving"
    assert child.call(1, "app/inherited")["result"] == []
    child.signal(signal.SIGTERM)
    assert manager.next() == "STOPPING=1\nSTATUS=draining: signal"
    assert manager.next() == "STOPPING=1\nSTATUS=stopped: signal"
    assert child.wait() == 0
    assert not manager.waiting()


def test_the_daemon_is_ready_once_its_lifespans_are_entered(spawn: Spawn, manager: Manager, tmp_path: Path) -> None:
    child = spawn(
        "serve", "./app.py:late", "--log-level", "info", "--backend", "asyncio", env={"NOTIFY_SOCKET": manager.address}
    )
    assert "event=daemon.serving" not in child.stderr_until("event=daemon.started")
    assert not manager.waiting()
    (tmp_path / "enter").touch()
    assert manager.next() == "READY=1\nSTATUS=serving"
    child.stderr_until("event=daemon.serving")
    assert child.end() == 0


def test_a_connection_that_is_over_before_the_loop_is_told_too(spawn: Spawn, manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(request(1, "version"))
    with (tmp_path / "input").open("rb") as asked:
        child = spawn("serve", "./app.py:app", stdin=asked, env={"NOTIFY_SOCKET": manager.address})
        assert child.wait() == 0
    assert manager.next() == "READY=1\nSTATUS=serving"
    assert manager.next() == "STOPPING=1\nSTATUS=draining: end-of-input"


@pytest.mark.parametrize("backend", BACKENDS)
def test_pings_stop_while_a_handler_keeps_the_loop_and_come_back(
    spawn: Spawn, manager: Manager, tmp_path: Path, backend: str
) -> None:
    watchdog = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "40000"}
    child = spawn("serve", "./app.py:app", "--backend", backend, env=watchdog)
    assert [manager.next() for _ in range(3)] == ["READY=1\nSTATUS=serving", "WATCHDOG=1", "WATCHDOG=1"]
    child.write(request(1, "app/block", {"until": "go"}))
    wait_until((tmp_path / "blocked").exists)
    while manager.waiting():
        manager.next()
    assert not manager.waiting(0.2)  # ten pings' time; a loop that stands can't send one, however slow the machine is
    (tmp_path / "go").touch()
    assert manager.next() == "WATCHDOG=1"
    assert child.read()["result"] == "released"
    assert child.end() == 0


def test_a_manager_that_does_not_listen_is_one_line_in_the_log(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", env={"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "2000"})
    assert child.call(1, "app/inherited")["result"] == []
    assert child.end() == 0
    assert child.stderr().count("event=manager.unreachable error=ENOENT") == 1


def test_the_manager_hears_that_a_reload_begins_and_that_it_is_over_and_no_import_sees_the_manager(
    spawn: Spawn, manager: Manager, tmp_path: Path
) -> None:
    seen = '\nwith open("seen", "a") as file:\n    file.write("S" if "NOTIFY_SOCKET" in os.environ else "-")\n'
    (tmp_path / "app.py").write_text(APP + seen)
    child = spawn("serve", "./app.py:app", "--reload", env={"NOTIFY_SOCKET": manager.address})
    assert manager.next() == "READY=1\nSTATUS=serving"
    assert child.call(1, "version")["id"] == 1
    before = monotonic_ns()
    (tmp_path / "app.py").write_text(APP + seen + "# changed\n")
    reloading, since, status = manager.next().splitlines()
    assert (reloading, status) == ("RELOADING=1", "STATUS=reloading")
    assert before // 1000 <= int(since.removeprefix("MONOTONIC_USEC=")) <= monotonic_ns() // 1000
    assert manager.next() == "READY=1\nSTATUS=serving"
    child.signal(signal.SIGUSR1)  # a new program takes it too
    assert child.call(2, "app/inherited")["result"] == []
    assert child.end() == 0
    assert (tmp_path / "seen").read_text() == "---"  # at the start, in the check, and after the swap


# -- sockets that were passed ---------------------------------------------------------------------------------------


def test_a_listening_socket_as_stdin_is_refused_in_one_line(spawn: Spawn, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "session.sock"))
        listener.listen()
        child = spawn("serve", "./app.py:app", stdin=listener)
        assert child.wait() == 2
    (line,) = child.stderr().splitlines()
    assert "Accept=yes" in line


def test_a_socket_that_was_passed_but_not_as_stdin_is_refused_in_one_line(spawn: Spawn) -> None:
    script = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" -P -m discreet serve ./app.py:app'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert b"StandardInput=socket" in line


def test_a_connected_socket_as_stdin_is_served_although_systemd_says_that_it_passed_one(
    spawn: Spawn, app_directory: Path
) -> None:
    client, server = socket.socketpair()
    script = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" -P -m discreet serve ./app.py:app'
    with client, server:
        daemon = subprocess.Popen(["sh", "-c", script, sys.executable], stdin=server, stdout=server, cwd=app_directory)
        server.close()
        client.sendall(request(1, "version"))
        client.shutdown(socket.SHUT_WR)
        client.settimeout(DEADLINE_SECONDS)
        assert b'"result"' in client.recv(1 << 16)
        assert daemon.wait(DEADLINE_SECONDS) == 0


# -- signals ----------------------------------------------------------------------------------------------------------


def test_after_sigusr1_the_log_goes_on_in_a_new_file(spawn: Spawn, tmp_path: Path) -> None:
    file, rotated = tmp_path / "daemon.log", tmp_path / "daemon.log.1"
    child = spawn("serve", "./app.py:app", "--log-file", "daemon.log", "--log-level", "info")
    child.call(1, "version")
    wait_until(lambda: file.exists() and "daemon.serving" in file.read_text())
    file.rename(rotated)
    child.signal(signal.SIGUSR1)
    wait_until(file.exists)
    assert child.end() == 0
    assert "daemon.stopped" in file.read_text()
    assert "daemon.stopped" not in rotated.read_text()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sigusr2_logs_a_report_of_what_runs_at_every_level(spawn: Spawn, backend: str) -> None:
    arguments = ("--log-level", "error", "--log-format", "json", "--backend", backend)
    child = spawn("serve", "./app.py:app", *arguments)
    child.write(request(1, "app/ticks") + request(2, "app/wait") + request(3, "app/wait"))
    assert child.read()["params"]["value"] == 0
    child.call(4, "version")
    child.signal(signal.SIGUSR2)
    found = json.loads(child.stderr_until("daemon.report"))
    assert (found["level"], found["state"], found["oldest_method"]) == ("info", "serving", "app/wait")
    assert (found["requests"], found["streams"], found["unanswered"]) == (3, 1, 3)
    assert found["oldest_seconds"] >= 0 and found["threads"] >= 1
    assert found["memory_used"] == sum(found["memory"].values()) > 0
    assert found["memory_limit"] > found["memory_used"]
    assert (found["log_queued"], found["log_dropped"]) == (0, 0)
    child.signal(signal.SIGKILL)


def test_sigusr2_is_answered_while_a_handler_keeps_the_loop(spawn: Spawn, tmp_path: Path) -> None:
    child = spawn("serve", "./app.py:app", "--log-format", "json")
    child.write(request(1, "app/wait"))
    child.call(2, "version")
    child.write(request(3, "app/block", {"until": "go"}))
    wait_until((tmp_path / "blocked").exists)
    child.signal(signal.SIGUSR2)
    found = json.loads(child.stderr_until("daemon.report").splitlines()[-1])
    assert (found["oldest_method"], found["requests"]) == ("app/wait", 1)
    (tmp_path / "go").touch()
    child.signal(signal.SIGTERM)
    child.signal(signal.SIGKILL)


# -- the first process of a container ---------------------------------------------------------------------------------

NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.fixture
def contained(spawn: Spawn, command: list[str]) -> Any:
    """The daemon as process 1, and the number that this process 1 has outside."""
    if not shutil.which("unshare") or subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes can't be unshared here")
    inside = [*NAMESPACE, *command]
    command[:] = inside
    return spawn("serve", "./app.py:app", "--log-level", "info", "--log-format", "json")


def test_process_1_collects_orphans_and_leaves_the_children_of_handlers_alone(contained: Any) -> None:
    orphan = contained.call(1, "app/orphan")["result"]
    assert contained.call(2, "app/collected", {"pid": orphan})["result"] == 1
    assert [contained.call(n, "app/own_child")["result"] for n in range(3, 8)] == [7] * 5
    assert contained.end() == 0


def test_process_1_passes_signals_on_and_ends_with_the_daemons_status(contained: Any) -> None:
    contained.call(1, "version")
    wait_until(lambda: first_of(contained) != 0)
    os.kill(first_of(contained), signal.SIGUSR2)
    assert "daemon.report" in contained.stderr_until("daemon.report")
    os.kill(first_of(contained), signal.SIGTERM)
    assert contained.wait() == 0
    assert re.search(r'"reason": "signal"', contained.stderr())
    assert has_ended(contained.process.pid)


def first_of(contained: Any) -> int:
    pid = contained.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
