"""What a settings file says of the operations that are imported: a table `[import.NAME]` each. Reads no document."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...errors.decoders import convert
from ...errors.nearest import nearest_hint
from ...errors.printable import cut

Command: TypeAlias = tuple[str, ...]
URL_SCHEMES: Final = ("http://", "https://")
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


class WrongImport(ValueError):
    """What is wrong with an import: `.NAME.KEY: PROBLEM`, to be put behind the key of the table that it stands in."""


def imports_of_flags(words: Sequence[Any], directory: str) -> tuple[ImportSettings, ...] | None:  # Any: also TOML
    """The imports that `NAME=SOURCE` stand for, all of whose operations are exposed; None where one is another text. Raises
    `WrongImport`."""
    found: dict[str, ImportSettings] = {}
    for word in words:
        name, _, source = word.partition("=") if isinstance(word, str) else ("", "", "")
        if not (name and source):
            return None
        if name in found:
            raise WrongImport(f": import {cut(name, _MAX_SHOWN)} is given twice")
        found[name] = ImportSettings(name=name, openapi=_absolute(source, directory), expose=True)
    return tuple(found.values())


def imports_of_tables(tables: Mapping[str, Any], directory: str) -> tuple[ImportSettings, ...]:  # Any: TOML
    """The imports of these tables by their names. Raises `WrongImport`."""
    return tuple(_import_of_table(name, table, directory) for name, table in tables.items())


def _import_of_table(name: str, table: Any, directory: str) -> ImportSettings:
    if not isinstance(table, dict):
        raise WrongImport(f".{name}: expected a table")
    given = {key.replace("-", "_"): value for key, value in table.items()}
    for key, value in given.items():
        if key not in _EXPECTED:
            raise WrongImport(f".{name}.{key}: unknown key{nearest_hint(key, list(_EXPECTED))}")
        try:
            convert({key: value}, ImportSettings)
        except msgspec.ValidationError:
            raise WrongImport(f".{name}.{key}: expected {_EXPECTED[key]}") from None
    made: ImportSettings = convert(given | {"name": name}, ImportSettings)
    is_command = any(source and not _is_url(source) for source in (made.mcp, made.daemon))
    if problem := _problem(made, given, is_command=is_command):
        raise WrongImport(f".{name}{problem}")
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
