"""Builds what is published into dist/: sdist, wheel and the list of components (SBOM). The same tree gives the same bytes.

`python -P tools/release.py` in the root of the repository. All dates are that of the version in CHANGELOG.md, or
SOURCE_DATE_EPOCH. Needs setuptools; asks no network.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]

BUILT_FROM: Final = (
    "a2a",
    "agents",
    "client",
    "daemon",
    "dialects",
    "errors",
    "files",
    "framing",
    "gateway",
    "imports",
    "src",
    "LICENSE",
    "README.md",
    "pyproject.toml",
)

FOR_DEVELOPERS: Final = {"dev", "docs", "test"}
"""Extras of those who work on discreet itself: no part of what is installed elsewhere."""

REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(.*)")

BUILD: Final = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def main() -> int:
    version = version_of(ROOT)
    released = date_in(ROOT / "CHANGELOG.md", version)
    if released is None:
        print(f"CHANGELOG.md: the first section must be '## [{version}] - YYYY-MM-DD'", file=sys.stderr)
        return 1
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or released.timestamp())
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        sdist, wheel = build(Path(place), epoch)
        dist.mkdir()
        for built in (sdist, wheel):
            shutil.copyfile(built, dist / built.name)
    sbom = dist / f"discreet-{version}.cdx.json"
    sbom.write_text(json.dumps(components(version, epoch, [dist / sdist.name, dist / wheel.name]), indent=2) + "\n")
    for path in sorted(dist.iterdir()):
        print(f"{sha256(path)}  dist/{path.name}")
    return 0


def version_of(root: Path) -> str:
    text = (root / "src" / "discreet" / "version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def date_in(changelog: Path, version: str) -> datetime | None:
    """When the newest version was released, if it is this one and has a date."""
    first = re.search(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?", changelog.read_text(encoding="utf-8"), re.MULTILINE)
    if first is None or first[1] != version or first[2] is None:
        return None
    return datetime.fromisoformat(first[2]).replace(tzinfo=UTC)


def build(place: Path, epoch: int) -> tuple[Path, Path]:
    """The sdist from a copy of the tree, and the wheel from that sdist, as an installer would."""
    tree = place / "tree"
    for name in BUILT_FROM:
        copy = shutil.copy if (ROOT / name).is_file() else copy_folder
        tree.mkdir(exist_ok=True)
        copy(ROOT / name, tree / name)
    made = run(tree, "build_sdist", epoch)
    sdist = place / made.name
    normalize(made, sdist, epoch)
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    return sdist, run(unpacked, "build_wheel", epoch)


def copy_folder(source: Path, to: Path) -> None:
    shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def run(tree: Path, hook: str, epoch: int) -> Path:
    """What a hook of the build backend made in `tree`."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ |= {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    subprocess.run(
        [sys.executable, "-P", "-c", BUILD, hook, "dist"], cwd=tree, env=environ, stdout=2, umask=0o022, check=True
    )
    (made,) = (tree / "dist").iterdir()
    return made


def normalize(made: Path, to: Path, epoch: int) -> None:
    """Write an sdist anew: in the order of names, with one date, nobody's files, and modes that no umask changes."""
    written = io.BytesIO()
    with tarfile.open(made) as old, tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    to.write_bytes(gzip.compress(written.getvalue(), mtime=epoch))


def components(version: str, epoch: int, built: list[Path]) -> dict[str, Any]:  # JSON
    """A bill of materials, CycloneDX 1.6: this package and what it may install. Versions are chosen by the installer."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: wanted for name, wanted in project["optional-dependencies"].items() if name not in FOR_DEVELOPERS}
    found = {name_of(text): component(text) for text in project["dependencies"]}
    for extra, wanted in extras.items():
        for text in wanted:
            found.setdefault(name_of(text), component(text, extra))
    own = f"pkg:pypi/{project['name']}@{version}"
    hashes = [sha256(path) for path in built]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, " ".join([own, *hashes])).urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": version,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
                "externalReferences": [
                    {"type": "distribution", "url": path.name, "hashes": [{"alg": "SHA-256", "content": content}]}
                    for path, content in zip(built, hashes, strict=True)
                ],
            },
        },
        "components": [*found.values()],
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in found.values()]}],
    }


def component(requirement: str, extra: str | None = None) -> dict[str, Any]:  # JSON
    properties = {"discreet:requirement": requirement} | ({"discreet:extra": extra} if extra else {})
    purl = f"pkg:pypi/{name_of(requirement)}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name_of(requirement),
        "scope": "optional" if extra else "required",
        "purl": purl,
        "properties": [{"name": name, "value": value} for name, value in properties.items()],
    }


def name_of(requirement: str) -> str:
    """The normalized name (PyPA, Simple Repository API)."""
    found = REQUIREMENT.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[1]).lower()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
