"""Writes `server.json`, which tells the MCP registry of a server, from what its services declare.

The format: https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from ..daemon.operations.registry import server_of
from ..daemon.operations.service import Service
from ..daemon.settings import UsageError

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MAX_DESCRIPTION: Final = 100
"""Characters of a description that the registry takes."""

_NAME: Final = re.compile(r"(?=.{3,200}\Z)[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_PACKAGE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==([A-Za-z0-9][A-Za-z0-9.+!-]*))?")


class Transport(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the server is spoken to, and where if it runs already."""

    type: str
    url: str = ""


class Package(msgspec.Struct, frozen=True, rename="camel"):
    """A package on PyPI whose script of the same name is the server."""

    registry_type: str
    identifier: str
    version: str
    runtime_hint: str
    transport: Transport


class ServerJson(msgspec.Struct, frozen=True, omit_defaults=True):
    """The document."""

    schema: str = msgspec.field(name="$schema")
    name: str
    description: str
    version: str
    packages: tuple[Package, ...] = ()
    remotes: tuple[Transport, ...] = ()


def server_json(services: Sequence[Service], name: str, package: str, url: str) -> ServerJson:
    """Describe a server of these services: a package, an address, or both. Raises `UsageError` for what the registry refuses."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            "--registry: expected a name such as io.github.ada/shop: the reverse of a domain, and what is yours there"
        )
    description = next((service.description for service in services if service.description), "")
    if not 1 <= len(description) <= MAX_DESCRIPTION:
        raise UsageError(f"--registry: a Service must have a description of 1 to {MAX_DESCRIPTION} characters")
    version = server_of(services, "").version
    if not version:
        raise UsageError("--registry: a Service must have a version: Service(…, version=…)")
    if not (package or url):
        raise UsageError("--registry: --package says which package starts the server, or --http-url where it runs")
    found = _PACKAGE.fullmatch(package)
    if package and not found:
        raise UsageError("--package: expected the name of a package on PyPI, or NAME==VERSION")
    packages = (Package("pypi", found[1], found[2] or version, "uvx", Transport("stdio")),) if found else ()
    remotes = (Transport("streamable-http", f"{url.rstrip('/')}/mcp"),) if url else ()
    return ServerJson(SCHEMA, name, description, version, packages, remotes)
