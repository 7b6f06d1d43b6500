"""The services for runit and s6 are started, called, ended and started anew by the real supervisors."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from support.programs import environment, install_commands
from support.requirements import missing
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import request

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux")

EXAMPLES: Final = Path(__file__).parents[2] / "examples"

SUPERVISORS: Final = {"runit": ["runsv"], "s6": ["s6-supervise"]}
NEEDED: Final = {"runit": ("runsv", "sv", "svlogd", "chpst", "socat"), "s6": ("s6-supervise", "s6-svc", "s6-log")}
DOWN: Final = {"runit": ["sv", "down"], "s6": ["s6-svc", "-d"]}
UP: Final = {"runit": ["sv", "up"], "s6": ["s6-svc", "-u"]}
EXIT: Final = {"runit": ["sv", "exit"], "s6": ["s6-svc", "-xd"]}


class Supervised:
    """A service under its supervisor, below a folder of its own."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.service = folder / "service"
        shutil.copytree(EXAMPLES / kind / "notes", self.service)
        shutil.copy(EXAMPLES / "notes" / "notes.py", folder)
        install_commands(folder / "bin")
        for script in self.service.rglob("run"):
            script.write_text(self._placed(script.read_text(encoding="utf-8")))

    def _placed(self, text: str) -> str:
        """For this folder and this user."""
        places = {
            "/run/": f"{self.folder}/run/",
            "/var/log/": f"{self.folder}/var/log/",
            "/opt/notes/bin/": f"{self.folder}/bin/",
            "/opt/notes/app/": f"{self.folder}/",
            "chown notes:": "ls -d",
            "chpst -u notes": "chpst",
            "s6-setuidgid notes ": "",
            "--drain-timeout": "--log-level info --drain-timeout",
        }
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    def tell(self, command: dict[str, list[str]]) -> None:
        subprocess.run([*command[self.kind], str(self.service)], check=True, stdout=subprocess.DEVNULL)

    def logs(self) -> str:
        current = self.folder / "var/log/notes/current"
        return current.read_text(encoding="utf-8") if current.exists() else ""

    @contextmanager
    def running(self) -> Iterator[None]:
        (self.folder / "var/log").mkdir(parents=True)
        (self.folder / "run").mkdir()
        log = [self.service / "log"] if self.kind == "s6" else []  # runsv looks after both; for s6 that is s6-svscan
        reading, writing = os.pipe()
        processes = [
            subprocess.Popen(
                [*SUPERVISORS[self.kind], str(path)],
                stdin=reading if path in log else None,
                stdout=writing if log and path not in log else None,
                env=environment(),
            )
            for path in (self.service, *log)
        ]
        os.close(reading)
        os.close(writing)
        try:
            yield
        finally:
            for path, process in zip((self.service, *log), processes, strict=True):
                subprocess.run([*EXIT[self.kind], str(path)], check=False, stdout=subprocess.DEVNULL)
                process.wait(DEADLINE_SECONDS)

    def client(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(DEADLINE_SECONDS)
        wait_until(lambda: client.connect_ex(str(self.folder / "run/notes/notes.sock")) == 0)
        return client


@pytest.fixture(params=SUPERVISORS)
def supervised(request: pytest.FixtureRequest, tmp_path: Path) -> Supervised:
    for program in NEEDED[request.param]:
        if not shutil.which(program):
            missing(f"{program} is not installed")
    return Supervised(request.param, tmp_path)


def call(client: socket.socket) -> bytes:
    client.sendall(request(1, "notes/add", {"text": "Milk"}))
    return client.recv(1 << 16)


def test_each_connection_has_a_daemon_which_ends_in_order_with_the_listener_and_the_service_starts_anew(
    supervised: Supervised,
) -> None:
    with supervised.running():
        with supervised.client() as first, supervised.client() as second:
            assert b'"id":1' in call(first)
            assert b'"id":1' in call(second)  # another daemon, whose notes are its own
            supervised.tell(DOWN)
            assert (first.recv(1), second.recv(1)) == (b"", b"")
        wait_until(lambda: supervised.logs().count("event=daemon.stopped reason=parent-gone") == 2)
        supervised.tell(UP)
        with supervised.client() as third:
            assert b'"id":1' in call(third)
        wait_until(lambda: "event=daemon.stopped reason=end-of-input" in supervised.logs())
        assert "discreet: " not in supervised.logs()
