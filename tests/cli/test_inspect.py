"""`discreet inspect` on the command line: what is wrong is one line before anything is served, and whose settings are whose."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from discreet.cli.commands import load_verb
from discreet.cli.verbs.inspect import command_of
from support.in_process import in_process
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS

APP = 'from discreet import Service\nshop = Service("shop")\n\n@shop.query()\ndef price(item: str) -> int:\n    return 40\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    (tmp_path / "broken.py").write_text("print('noise')\nthis is (no Python", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["./broken.py:shop"], "broken"),
        (["./app.py:nothing"], "nothing"),
        (["./app.py:shop", "--root", "nowhere"], "root"),
        (["./app.py:shop", "--", "true"], "either apps, or one URL, or a command"),
        (["--", "there-is-no-such-command"], "there is no such command"),
        (["./app.py:shop", "--token-env", "HOME"], "for a server behind a URL"),
        (["http://"], "discreet inspect"),
        (["./app.py:shop", "--http", "0.0.0.0"], "--http"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(folder: Path, words: list[str], said: str) -> None:
    done = in_process("inspect", "--no-browser", *words, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("discreet: ")
    assert said in done.stderr


def test_the_app_gets_its_settings_and_the_page_those_of_http_and_of_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DISCREET_MAX_THREADS", "7")
    parser, _ = load_verb("inspect")
    words = ["./app.py:shop", "--http", "127.0.0.1:0", "--log-file", "log", "--request-timeout", "9", "--scope", "a"]
    command = command_of(parser.read([*words, "--log-level", "debug", "--framing", "content-length"]))
    given = command.words[command.words.index("serve") + 1 :]
    assert {"./app.py:shop", "--max-threads=7", "--request-timeout=9", "--scope=a"} <= set(given)
    assert {"--dialect=mcp", "--log-level=debug", "--reload"} <= set(given)
    assert not re.search(r"--(http|log-file|framing|no-stdio)", " ".join(given))


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_it_needs_no_stdin_and_ends_by_ctrl_c_with_status_0(folder: Path) -> None:
    command = [*DISCREET, "inspect", "./app.py:shop", "--no-browser"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = re.fullmatch(
                r"discreet: inspect at (http://127\.0\.0\.1:\d+/)#token=(\S{32})\n", process.stderr.readline()
            )
            assert found is not None
            with urlopen(found[1], timeout=DEADLINE_SECONDS) as page:
                assert found[2] not in page.read().decode("ascii")
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{found[1]}page/log", timeout=DEADLINE_SECONDS)
            assert refused.value.code == 401
            refused.value.close()
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=DEADLINE_SECONDS)[1]
    assert process.returncode == 0
    assert found[2] not in said
