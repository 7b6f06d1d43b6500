"""Makes services of the imports in the settings. Loads only the kind of import that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..daemon.operations.service import Service
from .model import ImportFailed
from .settings import ImportSettings


def service_of(given: ImportSettings, credentials: Mapping[str, str], *, private: bool = False) -> Service:
    """The service of one import. `credentials` are files by the names of what they hold: one that is called like the import is
    for it, unless the import names another. `private` allows private addresses. Raises `DeclarationError`, in one line.
    """
    try:
        return _service_of(given, credentials, private=private)
    except ImportFailed as exc:
        own = f"give [import.{given.name}] base-url in a settings file"  # there is no flag for it
        raise ImportFailed(str(exc).replace("give base_url", own)) from None


def _service_of(given: ImportSettings, credentials: Mapping[str, str], *, private: bool) -> Service:
    if not (given.credential or given.credentials) and given.name in credentials:
        given = msgspec.structs.replace(given, credential=given.name)
    kind = "openapi" if given.openapi else "mcp" if given.mcp else "daemon"
    arguments: dict[str, Any] = {name: getattr(given, name) for name in (*_SHARED, *_ARGUMENTS[kind])}
    arguments = {name: value for name, value in arguments.items() if value is not UNSET}
    arguments["allow_private"] = given.allow_private or private
    match kind:
        case "openapi":
            from .from_openapi import from_openapi  # late, as the others

            credential = given.credentials or given.credential
            return from_openapi(given.openapi, namespace=given.name, credentials=credential, **arguments)
        case "mcp":
            from .from_mcp import from_mcp

            make: Callable[..., Service] = from_mcp
        case _:
            from .from_daemon import from_daemon

            make = from_daemon
    if given.cwd:
        arguments |= {"cwd": given.cwd, "env": given.env or None}
    token = _value_of(given.credential, credentials)
    return make(given.mcp or given.daemon, namespace=given.name, token=token, **arguments)


_SHARED: Final = ("include", "exclude", "rename", "expose", "scopes", "timeout", "validate")
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "openapi": ("base_url", "tags", "paths", "methods", "variables", "outside", "error_bodies", "max_age"),
    "mcp": ("credential", "max_age"),
    "daemon": ("credential",),
}
"""The settings that are arguments of the same name, by what is imported. One that is not set has the argument's default."""


def _value_of(name: str, credentials: Mapping[str, str]) -> str:
    """The credential with which a server is asked what it offers; empty where there is none, which is told later."""
    if name not in credentials:
        return ""
    try:
        with open(credentials[name], encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
