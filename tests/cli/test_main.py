"""The command line as a whole: verbs, help, statuses, and what happens to output that nobody reads."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet.agents.card_builder import VERSIONS
from discreet.cli.commands import load_verb, verbs
from discreet.cli.main import main
from discreet.cli.verbs import completion, generate, new
from discreet.client.dialects import DIALECTS
from discreet.client.peer import DEFAULT_TIMEOUT
from discreet.daemon import plugins
from discreet.daemon.settings.table import OPTIONS
from discreet.recording.replay import WAIT_SECONDS

every_verb = pytest.mark.parametrize("name", verbs())


def run(argv: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """The program as a user starts it, bounded in time."""
    command = [sys.executable, "-P", "-m", "discreet", *argv]
    defaults: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 30}
    return subprocess.run(command, check=False, **(defaults | options))


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


VERSION_CALL = b'{"jsonrpc":"2.0","id":1,"method":"version"}'


@every_verb
def test_every_verb_explains_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert verbs()[name].summary in text
    assert all(example in text for example in verbs()[name].examples)
    assert max(map(len, text.splitlines())) <= 100


@every_verb
def test_the_help_of_a_verb_replaces_its_manual_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    sections = re.findall(r"^(examples|environment|exit status):$", text, re.MULTILINE)
    assert sections == ["examples", *(["environment"] if verbs()[name].environment else []), "exit status"]
    listed = re.findall(r"^  (\d+|other) ", text.partition("\nexit status:\n")[2], re.MULTILINE)
    assert listed == list(verbs()[name].all_statuses)


def test_the_variables_of_the_help_are_settings_or_those_of_every_terminal() -> None:
    known = {"DISCREET_*", "NO_COLOR", "TERM", *(option.variable for option in OPTIONS)}
    assert {variable for verb in verbs().values() for variable in verb.environment} - known == set()


def test_the_table_of_verbs_names_those_that_there_are() -> None:
    assert list(verbs()) == list(plugins.BUILT_IN["verb"])
    choices = {(verb, row.flag): row.choices for verb in verbs() for row in verbs()[verb].arguments}
    assert choices["call", "--dialect"] == tuple(DIALECTS)
    assert choices["new", "KIND"] == tuple(new.KINDS)
    assert choices["card", "--a2a-version"] == tuple(VERSIONS)
    assert choices["generate", "language"] == tuple(generate.LANGUAGES)
    assert choices["completion", "shell"] == tuple(completion.SCRIPTS)
    defaults = {(verb, row.flag): row.default for verb in verbs() for row in verbs()[verb].arguments}
    assert defaults["generate", "--timeout SECONDS"] == DEFAULT_TIMEOUT
    assert defaults["replay", "--timeout SECONDS"] == WAIT_SECONDS


def test_the_page_names_every_exit_status_of_the_daemon() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d) \| (.+) \|$", page.partition("| exit status | when |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert dict(rows) == verbs()["serve"].statuses


def test_the_general_help_fits_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 23  # the shell's prompt takes one of 24
    assert max(map(len, lines)) <= 80


@every_verb
def test_the_general_help_lists_every_verb(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert f"  {name} " in capsys.readouterr().out


@every_verb
def test_the_examples_are_command_lines_that_can_be_read(name: str) -> None:
    parser, _ = load_verb(name)
    read = 0
    for example in verbs()[name].examples:
        words = shlex.split(re.split(" [<>|] ", example)[0].removeprefix('eval "$(').removesuffix(')"'))
        assert words.pop(0) == "discreet"
        parser.read(words[1:] if words[0] == name else words)
        read += 1
    assert read


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    name, number = capsys.readouterr().out.split()
    assert name == "discreet"
    assert number.count(".") == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["docter"],
        [""],
        ["--no-such-flag"],
        ["serve", "--no-such-flag"],
        ["--max-concurrency", "0"],
        ["serve", "--framing"],
        ["a:b:c"],
        ["serve", "no-app"],
        ["call"],
        ["completion"],
        ["completion", "tcsh"],
        ["doctor", "--jso"],
        ["line\nend\x1b[31m"],
        ["serve", "--line\nend\x1b[31m"],
    ],
)
def test_wrong_usage_is_one_line_on_stderr_and_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("discreet: ")
    assert said.err.count("\n") == 1
    assert said.err.endswith("\n")
    assert "\x1b" not in said.err


def test_an_unknown_command_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    main(["docter"])
    assert "doctor" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["serve"], ["--stdio", "--clientProcessId=1"], ["serve", "--ordered"]])
def test_serving_is_what_happens_without_a_verb(argv: list[str]) -> None:
    done = run(argv, input=framed(VERSION_CALL))
    assert done.returncode == 0
    assert done.stdout.startswith(b"Content-Length: ")
    assert done.stdout.count(b'"result"') == 1


def test_settings_reach_the_daemon() -> None:
    done = run(["--framing=newline"], input=VERSION_CALL + b"\n", env={**os.environ, "DISCREET_MAX_CONCURRENCY": "1"})
    assert done.returncode == 0
    assert done.stdout.startswith(b"{")
    assert done.stdout.endswith(b"}\n")


def test_a_bad_setting_ends_the_start_before_anything_is_served() -> None:
    done = run([], input=framed(VERSION_CALL), env={**os.environ, "DISCREET_FRAMING": "bogus"})
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"discreet: DISCREET_FRAMING: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a directory in use cannot be removed there")
def test_a_working_directory_that_is_gone_is_wrong_usage() -> None:
    code = "import os, sys, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-P", "-c", code, sys.executable, "-P", "-m", "discreet"]
    done = subprocess.run(command, capture_output=True, input=b"", timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_text_that_stdout_cannot_encode_is_escaped() -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "DISCREET_LOG": "Größe"}
    done = run(["doctor"], env=environ)
    assert b"Gr\\xf6\\xdfe" in done.stdout


def test_only_the_verb_that_is_asked_for_is_imported() -> None:
    code = (
        "import sys\nfrom discreet.cli.main import main\n"
        "main(['--version'])\n"
        "sys.stderr.write(' '.join(name for name in sys.modules if name.startswith('discreet.cli.')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert {name.removeprefix("discreet.cli.") for name in done.stderr.split()} == {
        "commands",
        "main",
        "output",
    }


def test_a_dependency_that_is_missing_is_named_in_one_line() -> None:
    code = "import sys; sys.modules['msgspec'] = None; from discreet.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "discreet: msgspec is not installed; pip install discreet installs what it needs\n"


@pytest.mark.parametrize(
    ("word", "said"), [("shop.py", "./shop.py:name"), ("./shop.py", "./shop.py:name"), ("shop", "./file.py:name")]
)
def test_a_word_that_is_no_app_is_answered_with_how_apps_are_named(word: str, said: str) -> None:
    done = run([word])
    assert done.returncode == 2
    assert said.encode() in done.stderr
