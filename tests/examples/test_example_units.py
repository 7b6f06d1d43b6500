"""The units, the container file and what they start are tried with the tools that the machine has."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.programs import environment, install_commands
from support.requirements import missing
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import request

EXAMPLES = Path(__file__).parents[2] / "examples"
UNITS = EXAMPLES / "systemd"
CONTAINER = (EXAMPLES / "container" / "Containerfile").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="systemd and containers are Linux")

NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the example of the notes, and programs that stand for what is installed."""
    shutil.copy(EXAMPLES / "notes" / "notes.py", tmp_path)
    install_commands(tmp_path / "bin")
    return tmp_path


def placed(text: str, folder: Path) -> str:
    return text.replace("/opt/notes/bin", str(folder / "bin")).replace("/opt/notes/app", str(folder))


def command_of_the_unit(folder: Path) -> list[str]:
    (found,) = re.findall(r"^ExecStart=(.*)$", (UNITS / "notes@.service").read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(placed(found, folder))


def test_systemd_finds_nothing_wrong_with_the_units(folder: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    units = [folder / path.name for path in UNITS.iterdir() if path.suffix in (".service", ".socket")]
    for unit in units:
        unit.write_text(placed((UNITS / unit.name).read_text(encoding="utf-8"), folder))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def activated(folder: Path, *options: str, **variables: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """systemd's tool, which starts what the unit starts, and a client."""
    if not shutil.which("systemd-socket-activate"):
        missing("systemd-socket-activate is not installed")
    path = str(folder / "s")
    env = environment(**variables)
    passed = [f"--setenv={name}" for name in ("PATH", "PYTHONPATH", *variables) if name in env]
    command = ["systemd-socket-activate", f"--listen={path}", *options, *passed, *command_of_the_unit(folder)]
    listener = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(DEADLINE_SECONDS)
    wait_until(lambda: client.connect_ex(path) == 0)  # the path is there before anybody listens
    return listener, client


def test_the_command_of_the_unit_serves_a_connection_that_was_accepted_and_says_so(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder / "notify"))
        manager.settimeout(DEADLINE_SECONDS)
        listener, client = activated(folder, "--accept", "--inetd", NOTIFY_SOCKET=str(folder / "notify"))
        try:
            assert manager.recv(100).startswith(b"READY=1")
            client.sendall(request(1, "notes/add", {"text": "Milk"}))
            assert b'"text":"Milk"' in client.recv(1 << 16)
            client.close()
            assert manager.recv(100) == b"STOPPING=1\nSTATUS=draining: end-of-input"
        finally:
            end(listener, client)


@pytest.mark.parametrize("options", [["--inetd"], ["--accept"], []], ids=["--inetd", "--accept", "neither"])
def test_without_both_options_the_daemon_says_in_one_line_what_is_wrong(folder: Path, options: Sequence[str]) -> None:
    listener, client = activated(folder, *options)
    try:
        said = b""
        while not (told := re.search(rb"^discreet: .*\n", said, re.MULTILINE)):
            assert listener.stderr is not None and select.select([listener.stderr], [], [], DEADLINE_SECONDS)[0], said
            said += (read := os.read(listener.stderr.fileno(), 4096))
            assert read, said
        assert (b"Accept=yes" if "--inetd" in options else b"StandardInput=socket") in told[0]
    finally:
        end(listener, client)


def end(listener: subprocess.Popen[bytes], client: socket.socket) -> None:
    client.close()
    listener.terminate()
    listener.wait(DEADLINE_SECONDS)
    assert listener.stderr is not None
    listener.stderr.close()


def test_the_container_serves_as_process_1_below_a_read_only_root(folder: Path) -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)
    command = [placed(part, folder) for part in json.loads(entry)]
    root = folder / "root"
    root.mkdir()
    enclosed = 'mount --rbind / "$0" && mount -o remount,bind,ro "$0" && cd "$0" && ! touch "$0$0/made" 2>/dev/null'
    if not shutil.which("unshare") or subprocess.run([*NAMESPACE, "sh", "-c", enclosed, root], check=False).returncode:
        pytest.skip("a root can't be made read-only here")
    script = f'{enclosed} && root=$0 && exec chroot "$root" "$@"'
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", script, root, *command],
        input=request(1, "notes/add", {"text": "Milk"}),
        env=environment(),
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"text":"Milk"' in done.stdout


def test_the_container_runs_for_no_privileged_user() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", CONTAINER, re.MULTILINE)
    assert int(user) > 0


def test_logrotate_moves_the_log_away_and_the_daemon_goes_on_in_a_new_file(folder: Path) -> None:
    if not shutil.which("logrotate"):
        missing("logrotate is not installed")
    text = (EXAMPLES / "logrotate" / "notes").read_text(encoding="utf-8")
    log, rotated, rules = folder / "notes.log", folder / "notes.log.1", folder / "rules"
    command = [*command_of_the_unit(folder), "--log-file", str(log), "--log-level", "info"]
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as daemon:
        wait_until(lambda: log.exists() and "event=daemon.serving" in log.read_text())
        said, count = re.subn(
            "systemctl kill .*", f"kill -USR1 {daemon.pid}", text.replace("/var/log/notes", str(folder))
        )
        assert count == 1
        rules.write_text(said)
        done = subprocess.run(
            ["logrotate", "--force", "--state", folder / "state", rules], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        wait_until(log.exists)
        daemon.communicate(timeout=DEADLINE_SECONDS)
    assert "event=daemon.serving" in rotated.read_text()
    assert "event=daemon.stopped" in log.read_text()
    assert "event=daemon.stopped" not in rotated.read_text()
    assert log.stat().st_mode & 0o077 == 0
