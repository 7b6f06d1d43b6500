"""An app that can't be imported: one line on stderr, and its traceback in the log for whoever asks for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS


@pytest.mark.parametrize(("level", "logged"), [("debug", True), ("info", False)])
def test_the_traceback_of_a_failed_import_is_logged_at_debug(tmp_path: Path, level: str, logged: bool) -> None:
    (tmp_path / "broken.py").write_text("def fail():\n    raise KeyError('x')\n\nfail()\n")
    done = subprocess.run(
        [*DISCREET, "serve", "./broken.py:app", f"--log-level={level}"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("discreet: ")]
    events = [line for line in done.stderr.splitlines() if "event=app.failed" in line]
    assert bool(events) == logged
    assert all("broken.py" in line and "KeyError" in line for line in events)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--identity=./app.py:number"], "--identity: "),
        (["--identity=./app.py:nothing"], "--identity: "),
        (["--store=sqlite:nowhere/tasks.db"], "--store: "),
    ],
)
def test_what_is_found_wrong_after_the_import_names_its_flag(tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "app.py").write_text("from discreet import Service\napp = Service('app')\nnumber = 5\n")
    done = subprocess.run(
        [*DISCREET, "serve", "./app.py:app", *flags],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.returncode, done.stderr.startswith(f"discreet: {said}")) == (2, True), done.stderr
