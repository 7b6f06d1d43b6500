"""The command line as a whole: verbs, help, statuses, and what happens to output that nobody reads."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from discreet.agents.card_builder import VERSIONS
from discreet.cli.commands import load_verb, verbs
from discreet.cli.main import main
from discreet.cli.output import write_stdout
from discreet.cli.verbs import completion, generate, new
from discreet.client.dialects import DIALECTS
from discreet.client.peer import DEFAULT_TIMEOUT
from discreet.daemon import plugins
from discreet.daemon.settings.table import OPTIONS
from discreet.recording.replay import WAIT_SECONDS
from support.programs import DISCREET, finished

every_verb = pytest.mark.parametrize("name", verbs())


@every_verb
def test_the_help_of_a_verb_has_its_examples_and_replaces_its_manual_page(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    text, verb = capsys.readouterr().out, verbs()[name]
    assert verb.summary in text
    assert all(example in text for example in verb.examples)
    assert max(map(len, text.splitlines())) <= 100
    sections = re.findall(r"^(examples|environment|exit status):$", text, re.MULTILINE)
    assert sections == ["examples", *(["environment"] if verb.environment else []), "exit status"]
    listed = re.findall(r"^  (\d+|other) ", text.partition("\nexit status:\n")[2], re.MULTILINE)
    assert listed == list(verb.all_statuses)


def test_the_variables_of_the_help_are_settings_or_those_of_hosts_or_of_every_terminal() -> None:
    of_hosts = verbs()["discover"].environment  # tests/cli/test_install.py compares them with the table of hosts
    known = {"DISCREET_*", "NO_COLOR", "TERM", *(option.variable for option in OPTIONS), *of_hosts}
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


def test_the_general_help_lists_every_verb_and_fits_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in verbs() if f"  {name} " not in text] == []
    assert len(text.splitlines()) <= 23  # the shell's prompt takes one of 24
    assert max(map(len, text.splitlines())) <= 80


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


def framed(body: str) -> str:
    return f"Content-Length: {len(body)}\r\n\r\n{body}"


VERSION_CALL = '{"jsonrpc":"2.0","id":1,"method":"version"}'


@pytest.mark.parametrize("argv", [[], ["--stdio", "--clientProcessId=1"], ["serve", "--ordered"]])
def test_serving_is_what_happens_without_a_verb(argv: list[str]) -> None:
    done = finished([*DISCREET, *argv], stdin=framed(VERSION_CALL))
    assert done.returncode == 0
    assert done.stdout.startswith("Content-Length: ")
    assert done.stdout.count('"result"') == 1


def test_settings_reach_the_daemon() -> None:
    done = finished([*DISCREET, "--framing=newline"], stdin=f"{VERSION_CALL}\n", DISCREET_MAX_CONCURRENCY="1")
    assert (done.returncode, done.stdout[0], done.stdout[-2:]) == (0, "{", "}\n")


def test_a_bad_setting_ends_the_start_before_anything_is_served() -> None:
    done = finished(DISCREET, stdin=framed(VERSION_CALL), DISCREET_FRAMING="bogus")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("discreet: DISCREET_FRAMING: ")


@pytest.mark.skipif(sys.platform == "win32", reason="a directory in use cannot be removed there")
def test_a_working_directory_that_is_gone_is_wrong_usage() -> None:
    code = "import os, sys, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d); os.execv(sys.executable, sys.argv[1:])"
    done = finished([sys.executable, "-P", "-c", code, *DISCREET])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_text_that_stdout_cannot_encode_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii"))
    write_stdout("Größe")
    assert written.getvalue() == rb"Gr\xf6\xdfe" + b"\n"


def test_only_the_verb_that_is_asked_for_is_imported() -> None:
    code = (
        "import sys\nfrom discreet.cli.main import main\n"
        "main(['--version'])\n"
        "sys.stderr.write(' '.join(name for name in sys.modules if name.startswith('discreet.cli.')))"
    )
    done = finished([sys.executable, "-P", "-c", code])
    assert {name.removeprefix("discreet.cli.") for name in done.stderr.split()} == {
        "commands",
        "main",
        "output",
    }


def test_a_dependency_that_is_missing_is_named_in_one_line() -> None:
    code = "import sys; sys.modules['msgspec'] = None; from discreet.__main__ import main; sys.exit(main())"
    done = finished([sys.executable, "-P", "-c", code])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "discreet: msgspec is not installed; pip install discreet installs what it needs\n"
