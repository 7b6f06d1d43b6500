"""`discreet demo` shows what it says, and notices when a daemon does not behave."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from discreet.cli.verbs.demo import STEPS, Step, run_step, started
from support.programs import DISCREET, finished, on_terminal
from support.waits import DEADLINE_SECONDS

SAYS_YES = r"""
import json, sys
while line := sys.stdin.buffer.readline():
    length = int(line.removeprefix(b"Content-Length: "))
    sys.stdin.buffer.readline()
    request = json.loads(sys.stdin.buffer.read(length))
    if "id" in request:
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": True}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()
"""


def test_every_step_behaves_and_nothing_is_left_behind(tmp_path: Path) -> None:
    done = finished((*DISCREET, "demo"), tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    shown = {part.partition("\n")[0]: part for part in done.stdout.split("\n\n")}
    for step in STEPS:
        assert step.why in shown[step.title]
        assert all(words in shown[step.title] for words in step.logged)
        assert shown[step.title].count("\n  log ") == len(step.logged)
    assert "".join(shown.values()).count("\n  log ") == sum(len(step.logged) for step in STEPS)
    assert {"-32600", "-32700", "-32602", "-32800"} <= set(re.findall(r"-32\d+", done.stdout))
    assert "\x1b" not in done.stdout
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_is_coloured_and_settings_of_the_user_do_not_change_it(tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text("no such setting =")
    settings = {"DISCREET_FRAMING": "newline", "DISCREET_LOG_LEVEL": "debug"}
    done, shown = on_terminal([*DISCREET, "demo"], "stdout", tmp_path, NO_COLOR="", **settings)
    assert done.returncode == 0
    assert "\x1b[" in shown


@pytest.mark.parametrize("step", STEPS[:5], ids=lambda step: step.title)
def test_a_daemon_that_does_something_else_fails_the_step(step: Step, capsys: pytest.CaptureFixture[str]) -> None:
    with started([sys.executable, "-I", "-S", "-c", SAYS_YES]) as daemon:
        assert not run_step(step, daemon, seconds=DEADLINE_SECONDS)
    assert step.why not in capsys.readouterr().out


@pytest.mark.parametrize("code", [SAYS_YES, "print('no frame')"])
def test_a_step_without_an_answer_has_failed(code: str) -> None:
    with started([sys.executable, "-I", "-S", "-c", code]) as daemon:
        request = '{"jsonrpc":"2.0","id":1,"method":"x"}'
        assert not run_step(Step("Hang", (request,), bool, "why", answers=2), daemon, seconds=0.5)
