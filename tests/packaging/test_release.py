"""`make release` builds the same bytes from the same tree, lists what is installed, and refuses a version without a date."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.cli.verbs.new import KINDS
from support.tree import ROOT

VERSION = discreet.__version__


def test_a_release_has_three_files(released: Path) -> None:
    assert {path.name for path in released.iterdir()} == {
        f"discreet-{VERSION}.tar.gz",
        f"discreet-{VERSION}-py3-none-any.whl",
        f"discreet-{VERSION}.cdx.json",
    }


def test_an_sdist_does_not_tell_when_by_whom_and_in_which_order_it_was_made(tmp_path: Path) -> None:
    """`.ci/run` compares two whole releases; here is what differs between them."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    made: list[bytes] = []
    for number, order in enumerate((["d", "d/a", "d/b"], ["d", "d/b", "d/a"])):
        with tarfile.open(tmp_path / "made.tar.gz", "w:gz") as archive:
            for name in order:
                member = tarfile.TarInfo(name)
                member.type = tarfile.DIRTYPE if name == "d" else tarfile.REGTYPE
                member.mtime, member.uid, member.uname, member.mode = (
                    1000.5 + number,
                    number,
                    f"user{number}",
                    0o600 + number,
                )
                archive.addfile(member)
        tool.normalize(tmp_path / "made.tar.gz", tmp_path / f"{number}", 86400)
        made.append((tmp_path / f"{number}").read_bytes())
    assert made[0] == made[1]


def test_they_hold_nothing_beside_modules_but_what_describes_them(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    rest = {member.name.partition("/")[2] for member in members if member.isfile() and member.name[-3:] != ".py"}
    described = "PKG-INFO SOURCES.txt dependency_links.txt entry_points.txt requires.txt top_level.txt".split()
    files = {"LICENSE", "README.md", "pyproject.toml", "setup.cfg", "PKG-INFO"}
    made = (
        "README.md",
        "conftest.py",
        "pyproject.toml",
        *(f"{test}{kind}.py" for kind in KINDS for test in ("", "test_")),
    )
    shown = [
        *("py.typed", "cli/verbs.json", "generate/session.ts"),
        *(f"pages/{name}" for name in ("dom.js", "messages.css", "messages.js", "palette.css")),
        *(f"recording/{name}" for name in ("page.css", "page.html", "page.js", "session.js", "timeline.js")),
        *(f"cli/templates/{name}.txt" for name in made),
    ]
    names = (
        "agent all_tasks apps daemon form inspector mcp offers operations page parts questions requests results tasks"
    )
    files |= {"gateway/grpc/a2a.binpb", *(f"src/discreet/{name}" for name in shown)}
    files |= {f"gateway/page/{name}" for name in ("app.html", "inspector.css", "page.css", "page.html")}
    files |= {f"gateway/page/{name}.js" for name in names.split()}
    assert rest == files | {f"discreet.egg-info/{name}" for name in described}
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(1770076800, 0, 0, "")}
    with zipfile.ZipFile(wheel) as archive:
        infos = archive.infolist()
    rest = {info.filename.partition(".dist-info/")[2] for info in infos if info.filename[-3:] != ".py"} - {""}
    assert rest == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}
    assert {info.date_time[:3] for info in infos} == {(2026, 2, 3)}


def test_the_bill_of_materials_names_every_dependency(released: Path) -> None:
    bom: dict[str, Any] = json.loads((released / f"discreet-{VERSION}.cdx.json").read_bytes())
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"])
    assert bom["metadata"]["component"]["purl"] == f"pkg:pypi/discreet@{VERSION}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split("[<>=]", text)[0] for text in project["dependencies"]}
    required = {each["name"] for each in bom["components"] if each["scope"] == "required"}
    assert required == wanted
    optional = {each["name"] for each in bom["components"] if each["scope"] == "optional"}
    assert (
        sorted(optional)
        == (
            "ahocorasick-rs certifi grpcio h11 httptools jsonschema-rs opentelemetry-exporter-otlp-proto-http opentelemetry-sdk"
            " prometheus-client protobuf psycopg pyjwt pyyaml redis rfc8785 rich tomlkit uvloop watchfiles"
        ).split()
    )
    assert all(each["type"] == "library" and each["name"] for each in bom["components"])
    refs = [each["bom-ref"] for each in bom["components"]]
    assert bom["dependencies"] == [{"ref": f"pkg:pypi/discreet@{VERSION}", "dependsOn": refs}]
    assert len(set(refs)) == len(refs)


@pytest.mark.parametrize("heading", [f"## [{VERSION}] - unreleased", "## [99.0.0] - 2026-02-03"])
def test_a_version_that_the_changelog_does_not_date_is_refused_in_one_line(
    tmp_path: Path, release: Callable[[Path, str], subprocess.CompletedProcess[str]], heading: str
) -> None:
    done = release(tmp_path, heading)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "CHANGELOG.md" in line
    assert not (tmp_path / "dist").exists()
