"""Completion: every flag is offered, and the shells accept the scripts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli.commands import load_verb, verbs
from discreet.cli.main import main
from discreet.cli.verbs.completion import SCRIPTS
from discreet.cli.verbs.completion import completions as completed
from support.programs import environment

every_shell = pytest.mark.parametrize("shell", SCRIPTS)


@pytest.mark.parametrize("verb", verbs())
def test_every_flag_of_every_verb_is_offered(verb: str) -> None:
    parser, _ = load_verb(verb)
    assert completed(f"discreet {verb} -") == [name for flag in parser.flags() for name in flag.names]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("discreet doc", ["doctor"]),
        ("discreet serve --max-con", ["--max-concurrency"]),
        ("discreet --max-con", ["--max-concurrency"]),
        ("discreet ./app.py:svc --max-con", ["--max-concurrency"]),
        ("discreet --framing n", ["newline"]),
        ("discreet doctor --framing=c", ["--framing=content-length"]),
        ("discreet --max-concurrency ", []),
        ("discreet completion ", ["bash", "zsh", "fish"]),
        ("discreet completion --max", []),
        ("discreet new l", ["lsp"]),
        ("discreet call --app", ["--app", "--app-dir"]),
        ("discreet call", ["call"]),
        ("discreet", []),
        ("", []),
        ("discreet call 'a \"b", []),
        ("discreet call --timeout soon ", []),
    ],
)
def test_what_fits_is_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@every_shell
def test_a_shell_accepts_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def run(*command: str, folder: Path) -> list[str]:
    """What a shell prints, which finds the program in a folder of its own."""
    folder = folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "discreet").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m discreet "$@"\n')
    (folder / "discreet").chmod(0o755)
    environ = environment(PATH=os.pathsep.join((str(folder), os.environ["PATH"])), HOME=str(folder))
    done = subprocess.run(command, text=True, capture_output=True, timeout=30, cwd=folder, env=environ, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def complete(*words: str, line: str, folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in ("discreet", *words))
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _discreet; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    script = f"COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; {SCRIPTS['bash']}\n{ask}"
    return run("bash", "-u", "-c", script, folder=folder)


@every_shell
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell] + "\n"


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_what_fits(tmp_path: Path) -> None:
    assert complete("doc", line="discreet doc", folder=tmp_path) == ["doctor"]
    assert complete("--framing", "=", "n", line="discreet --framing=n", folder=tmp_path) == ["newline"]
    assert complete("call", "x", line="discreet call x", folder=tmp_path) == []  # file names, by bash


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_what_fits(tmp_path: Path) -> None:
    assert run("fish", "-N", "-c", f"{SCRIPTS['fish']}\ncomplete -C 'discreet doc'", folder=tmp_path) == ["doctor"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_what_fits(tmp_path: Path) -> None:
    stubs = "compdef() { }; _files() { print files }; compadd() { print -l -- $@[$@[(i)--]+1,-1] }\n"
    ask = "words=(discreet doc); CURRENT=2; PREFIX=doc; _discreet"
    assert run("zsh", "-f", "-c", f"{stubs}{SCRIPTS['zsh']}\n{ask}", folder=tmp_path) == ["doctor"]
