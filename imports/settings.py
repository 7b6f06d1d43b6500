"""Reads the imports in a settings file: a table `[import.NAME]` each. Reads no document."""

import os
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..daemon.settings.option import UsageError
from ..errors.decoders import convert
from ..errors.nearest import nearest_hint
from ..errors.printable import cut

Command: TypeAlias = tuple[str, ...]
_MAX_SHOWN: Final = 200
"""Characters of a name in a message."""


class ImportSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One import: `name` is the namespace of its operations. One of `openapi` (a file or URL), `mcp` and `daemon` (a URL, or a
    command line) says where they come from. docs/imports.md says what the others mean. A command
    runs in `cwd`, without one in the folder of the settings file.
    """

    name: str = ""
    openapi: str = ""
    mcp: str | Command = ""
    daemon: str | Command = ""
    base_url: str = ""
    credential: str = ""
    credentials: Mapping[str, str] = {}
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    rename: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    expose: bool | tuple[str, ...] = False
    scopes: tuple[str, ...] = ()
    validate: Literal["on", "log", "off"] | UnsetType = UNSET
    timeout: float | UnsetType = UNSET
    allow_private: bool = False
    outside: bool = False
    error_bodies: bool = False
    max_age: float | UnsetType = UNSET
    env: Mapping[str, str] = {}
    cwd: str = ""

    @property
    def shown(self) -> str:
        """The name and where the operations come from, for people: of a command its first word, of a URL not its query."""
        source = self.openapi or self.mcp or self.daemon
        words = source if isinstance(source, tuple) else (source if self.openapi else (source.split() or [""])[0],)
        return f"{self.name}={words[0].partition('?')[0] if '://' in words[0] else words[0]}"


_KINDS: Final = ("openapi", "mcp", "daemon")
_ONLY_OPENAPI: Final = ("base_url", "credentials", "tags", "paths", "methods", "variables", "outside", "error_bodies")
_PHRASES: Final[Mapping[object, str]] = {
    str: "a string",
    bool: "true or false",
    float | UnsetType: "a number of seconds",
    tuple[str, ...]: "an array of strings",
    Mapping[str, str]: "a table of strings",
    str | Command: "a URL, or a command line as an array of strings",
    bool | tuple[str, ...]: "true, false, or an array of patterns of names",
    Literal["on", "log", "off"] | UnsetType: "on, log or off",
}
_EXPECTED: Final[Mapping[str, str]] = {
    key: _PHRASES[kind] for key, kind in ImportSettings.__annotations__.items() if key != "name"
} | {"openapi": "a file or a URL"}


def read_imports(value: Any, directory: str, source: str) -> tuple[ImportSettings, ...] | None:  # Any: TOML
    """Read the setting `import`: a list of `NAME=SOURCE`, or tables by their names. None for a value of another form.

    Raises `UsageError`, which names the `source`.
    """
    if isinstance(value, dict):
        return tuple(_import_of_table(name, value[name], directory, f"{source}.{name}") for name in value) or None
    return _imports_of_words(value, directory, source) if isinstance(value, list) else None


def _imports_of_words(words: list[Any], directory: str, source: str) -> tuple[ImportSettings, ...] | None:
    """The imports of `NAME=SOURCE`, all of whose operations are exposed."""
    found: dict[str, ImportSettings] = {}
    for word in words:
        name, _, place = word.partition("=") if isinstance(word, str) else ("", "", "")
        if not (name and place):
            return None
        if name in found:
            raise UsageError(f"{source}: import {cut(name, _MAX_SHOWN)} is given twice")
        found[name] = ImportSettings(name=name, openapi=_absolute(place, directory), expose=True)
    return tuple(found.values())


def _import_of_table(name: str, table: Any, directory: str, source: str) -> ImportSettings:
    if not isinstance(table, dict):
        raise UsageError(f"{source}: expected a table")
    given = {key.replace("-", "_"): value for key, value in table.items()}
    for key, value in given.items():
        if key not in _EXPECTED:
            raise UsageError(f"{source}.{key}: unknown key{nearest_hint(key, list(_EXPECTED))}")
        try:
            convert({key: value}, ImportSettings)
        except msgspec.ValidationError:
            raise UsageError(f"{source}.{key}: expected {_EXPECTED[key]}") from None
    made: ImportSettings = convert(given | {"name": name}, ImportSettings)
    is_command = any(source and not _is_url(source) for source in (made.mcp, made.daemon))
    if problem := _problem(made, given, is_command=is_command):
        raise UsageError(f"{source}{problem}")
    return msgspec.structs.replace(
        made,
        openapi=_absolute(made.openapi, directory) if made.openapi else "",
        cwd=os.path.join(directory, made.cwd) if is_command and made.cwd else directory if is_command else "",
    )


def _problem(made: ImportSettings, given: Mapping[str, Any], *, is_command: bool) -> str:
    """Which keys exclude each other, or which number is out of range; empty for none."""
    kinds = [kind for kind in _KINDS if getattr(made, kind)]
    if len(kinds) != 1:
        return f": expected one of {', '.join(_KINDS)}"
    for keys, allowed, owners in (
        (("env", "cwd"), is_command, "a command"),
        (("max_age",), not made.daemon, "openapi and mcp"),
        (_ONLY_OPENAPI, bool(made.openapi), "openapi"),
    ):
        for key in keys:
            if key in given and not allowed:
                return f".{key}: is for {owners} alone"
    if made.credential and made.credentials:
        return ": credential and credentials exclude each other"
    if made.timeout is not UNSET and not made.timeout > 0:
        return f".timeout: expected {_EXPECTED['timeout']} above 0"
    if made.max_age is not UNSET and not made.max_age >= 0:
        return f".max_age: expected {_EXPECTED['max_age']}, 0 or more"
    return ""


def _is_url(source: str | Command) -> bool:
    return isinstance(source, str) and "://" in source.partition(" ")[0]


def _absolute(source: str, directory: str) -> str:
    return source if "://" in source else os.path.join(directory, source)
