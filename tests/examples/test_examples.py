"""The examples work as their pages say: their own tests pass, and their snapshots are those of their code."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from support.programs import finished

EXAMPLES = Path(__file__).parents[2] / "examples"
APPS = {"notes": "./notes.py:notes"}


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy, away from the settings of this project."""
    ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=ignored))


def run(arguments: list[str], folder: Path) -> str:
    done = finished([sys.executable, *arguments], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_examples_pass(examples: Path) -> None:
    """In one run, since most of what a run takes is its start. Each example has its tests beside it and needs no settings."""
    tests = sorted(examples.glob("*/test_*.py"))
    assert re.search(
        r"\b\d+ passed", run(["-m", "pytest", "-q", "-W", "error", "-k", "not trio", *map(str, tests)], examples)
    )
    for test in tests:
        assert "python -m pytest\n" in (test.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", APPS)
def test_the_snapshot_of_an_example_is_that_of_its_code(name: str) -> None:
    (kept,) = (EXAMPLES / name).glob("*.schema.json")
    assert run(["-P", "-m", "discreet", "schema", APPS[name]], EXAMPLES / name) == kept.read_text(encoding="utf-8")


def test_the_call_that_the_notes_show_works(tmp_path: Path) -> None:
    page = (EXAMPLES / "notes" / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^discreet (call .*)$", page, re.MULTILINE)
    told = run(["-P", "-m", "discreet", *shown.split()], Path(shutil.copytree(EXAMPLES / "notes", tmp_path / "n")))
    assert told == '{"id":1,"text":"Milk","version":1}\n'
