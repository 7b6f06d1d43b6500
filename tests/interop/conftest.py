"""What the sessions need: `discreet` on the PATH, a folder to run in, the tools that are installed, and no leftovers.

`DISCREET_INTEROP_REQUIRED=1` makes a missing tool a failure. `DISCREET_INTEROP` names a folder with `node_modules`
(`NODE_PATH` will do too), `DISCREET_INTEROP_PYTHON` a Python that has pygls and pytest-lsp, `DISCREET_NEOVIM` a
newer Neovim than the system has.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.programs import has_ended, install_commands
from support.requirements import missing
from support.waits import DEADLINE_SECONDS, wait_until

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Place:
    """Where sessions run, and what they find there."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        """A client from its start to its end, with whatever it started killed if it takes too long."""
        with self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
            finally:
                self.kill(process)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def start(self, command: list[str], *, stdout: int | None, stderr: int | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """End a client, which leads a group of its own, and all of the group."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_SECONDS)

    def daemons(self) -> set[int]:
        """The ids of all daemons that were ever started here."""
        return {int(path.name) for path in Path(self.environment["SESSION_PIDS"]).iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A fresh folder. Every daemon that was started from it has ended by itself when the test is over."""
    with _place_in(tmp_path) as found:
        yield found


@pytest.fixture(scope="session")
def place_in() -> Callable[[Path], AbstractContextManager[Place]]:
    """Makes a `place` of a folder, for what several tests read."""
    return _place_in


@contextmanager
def _place_in(folder: Path) -> Iterator[Place]:
    for name in ("pids", "home"):
        (folder / name).mkdir()
    install_commands(folder / "bin")
    for path in HERE.iterdir():
        if path.is_file() and not path.name.startswith(("conftest", "test_")):
            shutil.copy(path, folder)
    found = Place(folder, _environment(folder))
    yield found
    try:
        wait_until(lambda: all(map(has_ended, found.daemons())))
    finally:
        for pid in found.daemons():
            if not has_ended(pid):
                os.kill(pid, signal.SIGKILL)


def _environment(folder: Path) -> dict[str, str]:
    """Ours, without settings for the daemon, with paths that hold in another folder, and a home without editors' files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    paths = [str(Path(entry).resolve()) for entry in kept.get("PYTHONPATH", "").split(os.pathsep) if entry]
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), "home")
    return {
        **kept,
        **{name: str(folder / home) for name, home in homes.items()},
        "PATH": os.pathsep.join((str(folder / "bin"), kept["PATH"])),
        "PYTHONPATH": os.pathsep.join(paths),
        "SESSION_PIDS": str(folder / "pids"),
    }


@pytest.fixture(params=["of the system", "newer"])
def neovim(request: pytest.FixtureRequest) -> str:
    program = "nvim" if request.param == "of the system" else os.environ.get("DISCREET_NEOVIM", "")
    return shutil.which(program) or missing(f"Neovim ({request.param}) is not installed")
