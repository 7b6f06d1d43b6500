"""A new project runs and passes its tests as it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from discreet.cli.verbs.new import KINDS
from support.in_process import in_process
from support.programs import finished


def new(folder: Path, *words: str) -> tuple[int, str, str]:
    done = in_process("new", *words, folder=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_project_passes_its_tests(tmp_path: Path, kind: str) -> None:
    status, stdout, stderr = new(tmp_path, kind, "shop_server")
    assert (status, stderr) == (0, "")
    assert "cd shop_server" in stdout
    doctor = stdout.splitlines()[-1].split()
    assert doctor[:2] == ["discreet", "doctor"]
    made = tmp_path / "shop_server"
    done = finished([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"], made)
    assert done.returncode == 0, done.stdout + done.stderr
    report = in_process(*doctor[1:], "--json", folder=made)
    kinds = [each["status"] for each in json.loads(report.stdout)["findings"] if each["check"] == kind]
    assert set(kinds) <= {"ok"}
    texts = "".join(file.read_text(encoding="utf-8") for file in made.iterdir() if file.is_file())
    assert not [word for word in ("NAME", "ABOUT", "TRIAL", "PAGE", "FLAGS") if word in texts]


@pytest.mark.parametrize("name", ["1st", "my-server", "class", "json", "../x", "é"])
def test_a_name_that_is_no_modules_is_refused(tmp_path: Path, name: str) -> None:
    status, stdout, stderr = new(tmp_path, "service", name)
    assert (status, stdout, stderr.count("\n")) == (2, "", 1)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine.txt").write_text("mine")
    status, _, stderr = new(tmp_path, "lsp", "shop")
    assert (status, stderr) == (2, "discreet: shop is there already\n")
    assert [file.name for file in (tmp_path / "shop").iterdir()] == ["mine.txt"]


def test_an_unknown_kind_names_the_kinds(tmp_path: Path) -> None:
    status, _, stderr = new(tmp_path, "web", "shop")
    assert status == 2
    assert all(kind in stderr for kind in KINDS)
