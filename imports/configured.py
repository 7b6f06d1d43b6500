"""Imports that the settings name, as services. Loads the kind of import that is asked for, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..daemon.operations.service import Service
from ..daemon.settings.imports import ImportSettings
from .model import ImportFailed


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
    shared: dict[str, Any] = {
        "namespace": given.name,
        "include": given.include,
        "exclude": given.exclude,
        "rename": given.rename,
        "expose": given.expose,
        "scopes": given.scopes,
        "timeout": given.timeout,
    }
    ages: dict[str, Any] = {} if isinstance(given.max_age, msgspec.UnsetType) else {"max_age": given.max_age}
    if given.openapi:
        from .from_openapi import from_openapi  # late, as the others

        return from_openapi(
            given.openapi,
            base_url=given.base_url,
            credentials=given.credentials or given.credential,
            tags=given.tags,
            paths=given.paths,
            methods=given.methods,
            variables=given.variables,
            allow_private=given.allow_private or private,
            outside=given.outside,
            error_bodies=given.error_bodies,
            validate=given.validate or "on",
            **ages,
            **shared,
        )
    process: dict[str, Any] = {"cwd": given.cwd, "env": given.env or None} if given.cwd else {}
    if given.mcp:
        from .from_mcp import from_mcp

        return from_mcp(
            given.mcp,
            credential=given.credential,
            token=_value_of(given.credential, credentials),
            allow_private=given.allow_private or private,
            validate=given.validate or "on",
            **process,
            **ages,
            **shared,
        )
    from .from_daemon import from_daemon

    return from_daemon(
        given.daemon,
        credential=given.credential,
        token=_value_of(given.credential, credentials),
        allow_private=given.allow_private or private,
        validate=given.validate,
        **process,
        **shared,
    )


def _value_of(name: str, credentials: Mapping[str, str]) -> str:
    """The credential with which a server is asked what it offers; empty where there is none, which is told later."""
    if name not in credentials:
        return ""
    try:
        with open(credentials[name], encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
