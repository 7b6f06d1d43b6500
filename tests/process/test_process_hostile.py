"""What a hostile trial of the real process found once: each of these hung, leaked or stayed silent."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.encoder import encode_frame
from support.programs import has_ended
from support.waits import wait_until
from support.wire import request

Spawn = Callable[..., Any]
Run = Callable[..., subprocess.CompletedProcess[bytes]]

SECRET = "Zq81kkTT0pmWx7vB"  # not of any provider: only the environment tells that it is one

APP = '''
import os, time
from discreet import OperationError, Service

app = Service("app")

class Leaky(OperationError, code="LEAKY"):
    """It says too much."""
    text: str

@app.query(inline=True)
def spin() -> None:
    open("blocked", "x").close()
    while True:
        pass

@app.query()
async def sleep_blocking() -> None:
    open("blocked", "x").close()
    time.sleep(3600)

@app.query(errors=[Leaky])
def leak() -> None:
    raise Leaky(text="connect with " + os.environ["API_TOKEN"])

@app.query(inline=True)
def big(size: int) -> str:
    return "x" * size
'''


@pytest.fixture
def hostile(app_directory: Path, spawn: Spawn) -> Spawn:
    (app_directory / "hostile.py").write_text(APP)
    return spawn


@pytest.mark.parametrize("method", ["app/spin", "app/sleep_blocking"])
def test_a_blocked_loop_ends_when_the_client_has_hung_up(app_directory: Path, hostile: Spawn, method: str) -> None:
    child = hostile("serve", "./hostile.py:app", "--drain-timeout", "0.4")
    child.call(1, "version")
    child.write(request(2, method))
    wait_until((app_directory / "blocked").exists)
    assert child.end() == 1


def test_a_blocked_loop_ends_with_the_parent(app_directory: Path, hostile: Spawn, command: list[str]) -> None:
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({[*command, 'serve', './hostile.py:app', '--drain-timeout', '0.4']!r}, stdin=0, stdout=1)\n"
        "print(child.pid, file=sys.stderr, flush=True)\nchild.wait()\n"
    )
    reading, writing = os.pipe()
    parent = subprocess.Popen(
        [command[0], "-c", script], stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=app_directory
    )
    assert parent.stderr is not None
    assert parent.stdout is not None
    pid = int(parent.stderr.readline())
    os.write(writing, request(1, "version"))
    assert b"result" in os.read(parent.stdout.fileno(), 4096)
    os.write(writing, request(2, "app/spin"))
    wait_until((app_directory / "blocked").exists)
    parent.kill()
    parent.wait()
    wait_until(lambda: has_ended(pid))
    parent.stdout.close()
    parent.stderr.close()
    os.close(reading)
    os.close(writing)


def test_an_app_that_hangs_at_import_ends_with_the_parent(app_directory: Path, command: list[str]) -> None:
    (app_directory / "hang.py").write_text("print('importing', flush=True)\nwhile True: pass\n")
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({[*command, 'serve', './hang.py:app', '--drain-timeout', '0.4']!r}, stdin=0, stdout=1)\n"
        "print(child.pid, flush=True)\nchild.wait()\n"
    )
    parent = subprocess.Popen(
        [command[0], "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=app_directory,
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    pid = int(parent.stdout.readline())
    while b"importing" not in parent.stderr.readline():
        pass
    parent.kill()
    parent.wait()
    wait_until(lambda: has_ended(pid))
    for pipe in (parent.stdin, parent.stdout, parent.stderr):
        assert pipe is not None
        pipe.close()


def test_a_client_that_hangs_up_without_reading_does_not_keep_the_daemon(hostile: Spawn) -> None:
    child = hostile("serve", "./hostile.py:app", "--drain-timeout", "0.4", "--log-level", "info")
    child.stderr_until("daemon.serving")  # so that the half second for the log at the end is not spent on its start
    child.write(request(1, "app/big", {"size": 2_000_000}) + request(2, "version"))
    child.close_stdin()
    assert child.wait() == 1
    assert "replies.lost" in child.stderr()


def test_a_reader_that_is_slow_at_the_end_gets_everything_within_the_window(hostile: Spawn) -> None:
    child = hostile("serve", "./hostile.py:app", "--drain-timeout", "600", "--log-level", "info")
    child.write(request(1, "app/big", {"size": 240_000}))
    child.close_stdin()
    child.stderr_until("daemon.draining")
    assert len(child.read()["result"]) == 240_000
    assert child.wait() == 0


@pytest.mark.parametrize("params", [{}, {"id": 99}, {"id": None}, {"id": []}])
def test_a_cancel_that_is_sent_as_a_request_is_answered(hostile: Spawn, params: Any) -> None:
    child = hostile("serve", "./hostile.py:app")
    assert child.call(7, "$/cancelRequest", params) == {"jsonrpc": "2.0", "id": 7, "result": None}
    assert child.end() == 0


def test_a_secret_of_the_environment_leaves_in_no_reply_not_even_the_first(hostile: Spawn) -> None:
    child = hostile("serve", "./hostile.py:app", env={"API_TOKEN": SECRET})
    details = child.call(1, "app/leak")["error"]["data"]["details"]
    assert SECRET not in details["text"]
    assert details["text"].startswith("connect with ")
    assert child.end() == 0


@pytest.mark.parametrize(
    "body",
    [
        'import os\nraise ValueError("cannot connect with " + os.environ["API_TOKEN"])',
        "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
        "def __getattr__(name): raise KeyError(name)",
        "import sys\nsys.exit(3)",
        "this is no Python",
    ],
)
def test_an_app_that_fails_at_import_is_one_line_and_status_2(app_directory: Path, spawn: Spawn, body: str) -> None:
    (app_directory / "failing.py").write_text(body)
    child = spawn("serve", "./failing.py:app", env={"API_TOKEN": SECRET})
    assert child.wait() == 2
    lines = child.stderr().splitlines()
    assert len(lines) == 1
    assert SECRET not in lines[0]
    assert "Traceback" not in lines[0]


def test_a_file_that_can_not_grow_behind_stdout_is_said_and_is_a_failure(app_directory: Path, spawn: Spawn) -> None:
    with open(app_directory / "out", "wb") as out:
        child = spawn(
            "--log-level",
            "info",
            stdout=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        )
    child.stderr_until("daemon.serving")  # as above
    child.write(request(1, "version"))
    assert "EFBIG" in child.stderr_until("stdout.failed")
    assert child.wait() == 1


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["schema"]])
def test_a_full_disk_behind_a_command_is_one_line(arguments: list[str], run: Run) -> None:
    with open("/dev/full", "wb") as full:
        done = run(*arguments, stdout=full)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_app_is_refused(run: Run) -> None:
    done = run("serve", "", input=b"")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_settings_file_that_is_a_pipe_holds_nobody_up(app_directory: Path, run: Run) -> None:
    os.mkfifo(app_directory / "discreet.toml")
    done = run(input=request(1, "version"))
    assert done.returncode in (0, 2)


def test_a_text_of_many_characters_without_a_blank_does_not_stop_the_log(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "x" * 9000)["error"]["code"] == -32601
    child.write(encode_frame(b"oops", "content-length"))
    assert child.read()["error"]["code"] == -32700
    child.stderr_until("frame.dropped")
    assert child.end() == 0


def test_a_directory_of_the_shell_is_no_password(spawn: Spawn, app_directory: Path) -> None:
    child = spawn(env={"PWD": str(app_directory), "OLDPWD": str(app_directory)})
    path = f"{app_directory}/../outside.txt"
    assert child.call(1, "fs/read", {"path": path})["error"]["data"]["details"]["path"] == path
    assert child.end() == 0
