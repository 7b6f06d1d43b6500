"""Completion scripts: every flag is in them, and the shells accept them."""

import shutil
import subprocess
import sys

import pytest

from discreet.daemon.cli.completion import SHELLS, script
from discreet.daemon.cli.main import VERBS, main, parser_of

every_shell = pytest.mark.parametrize("shell", SHELLS)


@every_shell
@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_of_every_verb_is_in_every_script(shell: str, verb: str) -> None:
    text = script(shell)
    parser, _ = parser_of(verb)
    names = [name for flag in parser.flags() for name in flag.names]
    spelt = [name.replace("--", "-l ") if shell == "fish" else name for name in names if name.startswith("--")]
    assert spelt
    assert [name for name in spelt if name not in text] == []


@every_shell
def test_a_shell_accepts_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script(shell), text=True, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def complete(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in ("discreet", *words))
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _discreet; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "-u", "-c", f"{script('bash')}\n{ask}"],
        text=True,
        capture_output=True,
        timeout=30,
        cwd="/",
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["doc"], ["doctor"]),
        (["serve", "--max-c"], ["--max-concurrency"]),
        (["--max-c"], ["--max-concurrency"]),
        (["app:svc", "--max-c"], ["--max-concurrency"]),
        (["--framing", "n"], ["newline"]),
        (["doctor", "--framing", "=", "c"], ["content-length"]),
        (["--log-format", "="], ["auto", "console", "keyvalue", "json", "journald"]),
        (["--max-concurrency", ""], []),
        (["--root", "de"], ["dev"]),
        (["serve", "de"], ["dev"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "--max"], []),
    ],
)
def test_bash_offers_what_fits(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


@every_shell
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == script(shell) + "\n"
