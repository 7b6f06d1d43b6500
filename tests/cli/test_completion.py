"""Completion scripts: every flag is in them, and the shells accept them."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from discreet.cli.commands import load_verb, verbs
from discreet.cli.completer import completions as completed
from discreet.cli.main import main
from discreet.cli.verbs.completion import SCRIPTS
from support.programs import finished

PATIENT = """
import sys
from discreet.cli import completer
from discreet.cli.main import main
completer.DAEMON_SECONDS = 20.0
"""
PATIENT_PROGRAM = PATIENT + "sys.exit(main(sys.argv[1:]))\n"
"""The program with time enough for a daemon on a busy machine."""

LINES_OF_A_FILE = """
for line in open(sys.argv[1], encoding="utf-8").read().split("\\0"):
    status = main(["--complete", line])
    print(f"--{status}", flush=True)
"""
"""The program for many lines, one after the other."""

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
    ],
)
def test_what_fits_is_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@every_shell
def test_a_shell_accepts_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = finished([shell, "-n"], stdin=SCRIPTS[shell])
    assert (done.returncode, done.stderr) == (0, "")


def run(folder: Path, *command: str, **more: str) -> str:
    """What a shell prints that finds the program in a folder of its own, and the program this package."""
    (folder / "patient.py").write_text(PATIENT_PROGRAM)
    (folder / "discreet").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{folder}/patient.py" "$@"\n')
    (folder / "discreet").chmod(0o755)
    done = finished(command, folder, PATH=os.pathsep.join((str(folder), os.environ["PATH"])), **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complete(*words: str, line: str, folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in ("discreet", *words))
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _discreet; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    script = f"COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; {SCRIPTS['bash']}\n{ask}"
    return run(folder, "bash", "-u", "-c", script).split()


@every_shell
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell] + "\n"


# -- what only a daemon knows -----------------------------------------------------------------------------------------

APP = """
from enum import Enum
from typing import Literal
from discreet import Service

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

shop = Service("shop")

@shop.query()
def price(article: str, unit: Literal["cent", "euro"] = "euro", net: bool = False) -> int:
    return 1

@shop.query()
def dye(colour: Colour | None = None) -> None: ...

@shop.mutation()
def order(article: str) -> None: ...

@shop.query(visibility="internal")
def stock() -> None: ...
"""

SLOW_APP = "import time\ntime.sleep(60)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "slow.py").write_text(SLOW_APP)
    (tmp_path / "broken.py").write_text("raise RuntimeError('secret')\n")
    return tmp_path


def completions(lines: Sequence[str], folder: Path, program: str) -> dict[str, list[str]]:
    """What the program offers for each line. It must neither fail nor write to stderr."""
    (folder / "lines").write_text("\0".join(lines), encoding="utf-8")
    done = finished([sys.executable, "-P", "-c", program + LINES_OF_A_FILE, "lines"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    *offered, rest = done.stdout.split("--0\n")
    assert rest == ""
    return dict(zip(lines, map(str.splitlines, offered), strict=True))


OFFERED = {
    "": ["shop/dye", "shop/order", "shop/price"],
    "shop/dye ": ["colour=", "colour=red", "colour=blue"],
    "shop/p": ["shop/price"],
    "/x": [],
    "shop/price ": ["article=", "unit=", "unit=cent", "unit=euro", "net=", "net=true", "net=false"],
    "shop/price article=lamp u": ["unit=", "unit=cent", "unit=euro"],
    "shop/price unit=euro article=lamp ": ["net=", "net=true", "net=false"],
    "--timeout 5 --retry 2 shop/price a": ["article="],
    "shop/price unit=c": ["unit=cent"],
    "shop/price 'unit=c": ["unit=cent"],
    "shop/stock ": [],
    "shop/none ": [],
}


def test_operations_params_and_their_values_are_what_the_daemon_lists(folder: Path) -> None:
    lines = {f"discreet call --app ./shop.py:shop {typed}": offered for typed, offered in OFFERED.items()}
    assert completions(list(lines), folder, PATIENT) == lines


SILENCE = [
    "discreet call --app ./broken.py:app ",
    "discreet call --app ./slow.py:app ",
    "discreet call --app nowhere:app x",
    "discreet call --root /no/such/folder ",
    "discreet call --app ",
    "discreet call --timeout soon ",
    "discreet call --framing carrier-pigeon ",
    "discreet serve ./app.py:shop ",
    "discreet call 'a \"b",
    "",
]


def test_what_cannot_be_found_out_is_silence(folder: Path) -> None:
    assert completions(SILENCE, folder, "import sys\nfrom discreet.cli.main import main") == {
        line: [] for line in SILENCE
    }


def test_the_command_of_a_line_that_was_not_entered_is_never_run(folder: Path) -> None:
    line = "discreet call --server 'touch ran' --root x "
    assert completions([line], folder, PATIENT) == {line: []}
    assert not (folder / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_what_the_daemon_lists(folder: Path) -> None:
    app = "discreet call --app ./shop.py:shop"
    words = ("call", "--app", "./shop.py", ":", "shop")  # as bash parts them
    assert complete(*words, "shop/", line=f"{app} shop/", folder=folder) == ["shop/dye", "shop/order", "shop/price"]
    typed = (*words, "shop/price", "unit")
    assert complete(*typed, "=", line=f"{app} shop/price unit=", folder=folder) == ["cent", "euro"]
    assert complete(*typed, "=", "c", line=f"{app} shop/price unit=c", folder=folder) == ["cent"]
    assert complete(*words, "shop/order", "sh", line=f"{app} shop/order sh", folder=folder) == []  # file names, by bash


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_what_the_daemon_lists(folder: Path) -> None:
    ask = f"{SCRIPTS['fish']}\ncomplete -C 'discreet call --app ./shop.py:shop shop/p'"
    assert run(folder, "fish", "-N", "-c", ask, HOME=str(folder)).split() == ["shop/price"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_what_the_daemon_lists(folder: Path) -> None:
    stubs = "compdef() { }; _files() { print files }; compadd() { print -l -- $@[$@[(i)--]+1,-1] }\n"
    lines = (("./shop.py:shop", "shop/p"), ("./shop.py:shop shop/price", "n"), ("x", ""))
    asks = "; ".join(
        f"words=(discreet call --app {typed} x); CURRENT=$#words; PREFIX='{prefix}'; _discreet"
        for typed, prefix in lines
    )
    offered = run(folder, "zsh", "-f", "-c", f"{stubs}{SCRIPTS['zsh']}\n{asks}")
    assert offered.split() == ["shop/price", "net=", "net=true", "net=false", "files"]


def test_a_line_with_a_token_that_may_never_come_is_not_completed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert completed(f"discreet call --token-file {tmp_path / 'fifo'} ./shop.py:shop ") == []
