"""The client's page: its programs print what it says, its tables name all there is."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from discreet.client import Attempt, ClientError, RestartPolicy, RetryPolicy, attach, connect, errors
from support.gateways import http_daemon
from support.programs import environment, finished, install_commands
from support.waits import DEADLINE_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r"^```python\n(# (\w+)\.py\n.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PROGRAMS = {name: (source, shown) for source, name, shown in PROGRAM.findall(PAGE)}


def rows(head: str) -> dict[str, str]:
    """A table's first and second column, found by the head of the first; the code in it."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return {
        name: second
        for cell, second in re.findall(r"^\| (.+?) \| (.+?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }


@pytest.mark.skipif(sys.platform == "win32", reason="the programs call `discreet` by a script for a POSIX shell")
@pytest.mark.parametrize("name", [name for name, (_, shown) in PROGRAMS.items() if shown])
def test_a_program_of_the_page_prints_what_is_shown(name: str, tmp_path: Path) -> None:
    check_program(PROGRAMS, name, tmp_path)


def check_program(programs: Mapping[str, tuple[str, str]], name: str, folder: Path) -> None:
    """Run a program of a page, beside the others, and compare what it prints."""
    for file, (source, _) in programs.items():
        (folder / f"{file}.py").write_text(source, encoding="utf-8")
    search = os.pathsep.join((str(install_commands(folder / "bin")), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, f"{name}.py"],
        cwd=folder,
        env=environment(PATH=search),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.stdout, done.returncode) == (programs[name][1], 0), done.stderr


def test_the_program_for_a_url_calls_a_daemon_there(tmp_path: Path) -> None:
    for file in ("greeter", "remote"):
        (tmp_path / f"{file}.py").write_text(PROGRAMS[file][0], encoding="utf-8")
    with http_daemon(tmp_path, "./greeter.py:agent") as url:
        assert finished([sys.executable, "remote.py", url], tmp_path).stdout == "TASK_NOT_FOUND\n"
    assert "sent: False" in finished([sys.executable, "remote.py", url], tmp_path, PYTHONWARNINGS="error").stdout


def test_the_page_shows_programs() -> None:
    assert PROGRAMS.keys() == {"stock", "calls", "events", "retries", "progress", "notices", "greeting", "plain"} | {
        "remote",
        "greeter",
        "typed",
    }


@pytest.mark.parametrize("policy", [RetryPolicy, RestartPolicy])
def test_every_field_of_a_policy_is_there_with_its_default(policy: type[RetryPolicy] | type[RestartPolicy]) -> None:
    shown = {name: default.replace("none", "()") for name, default in rows(f"`{policy.__name__}`").items()}
    assert shown == {name: str(getattr(policy(), name)) for name in policy.__struct_fields__}


def test_every_field_of_an_attempt_is_there() -> None:
    assert rows("`Attempt`").keys() == set(Attempt.__struct_fields__)


def test_every_option_is_there() -> None:
    shown = rows("option")
    for func in (connect, attach):
        taken = {name for name, it in inspect.signature(func).parameters.items() if it.kind is it.KEYWORD_ONLY}
        assert {name for name, whose in shown.items() if f"`{func.__name__}`" in whose} == taken


def test_every_error_is_there() -> None:
    classes = {name for name, it in vars(errors).items() if isinstance(it, type) and issubclass(it, ClientError)}
    assert rows("class").keys() == classes - {"ClientError"}
