"""What a settings file says of the operations that are imported: a table `[import.NAME]` each. Reads no document."""

import os
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...errors.decoders import convert
from ...errors.nearest import nearest_hint

Command: TypeAlias = tuple[str, ...]
URL_SCHEMES: Final = ("http://", "https://")


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
_EXPECTED: Final[Mapping[str, str]] = {
    "openapi": "a file or a URL",
    **dict.fromkeys(("mcp", "daemon"), "a URL, or a command line as an array of strings"),
    **dict.fromkeys(("base_url", "credential", "cwd"), "a string"),
    **dict.fromkeys(("credentials", "rename", "variables", "env"), "a table of strings"),
    **dict.fromkeys(("include", "exclude", "tags", "paths", "methods", "scopes"), "an array of strings"),
    "expose": "true, false, or an array of patterns of names",
    "validate": "on, log or off",
    **dict.fromkeys(("timeout", "max_age"), "a number of seconds"),
    **dict.fromkeys(("allow_private", "outside", "error_bodies"), "true or false"),
}


class WrongImport(ValueError):
    """What is wrong with an import: where in its table, and what was expected."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


def import_of_flag(text: str, directory: str) -> ImportSettings | None:
    """The import that `NAME=SOURCE` stands for, all of whose operations are exposed; None for another text."""
    name, _, source = text.partition("=")
    if not (name and source):
        return None
    return ImportSettings(name=name, openapi=_absolute(source, directory), expose=True)


def imports_of_tables(tables: Mapping[str, Any], directory: str) -> tuple[ImportSettings, ...]:  # Any: TOML
    """The imports of these tables by their names. Raises `WrongImport`."""
    return tuple(_import_of_table(name, table, directory) for name, table in tables.items())


def _import_of_table(name: str, table: Any, directory: str) -> ImportSettings:
    if not isinstance(table, dict):
        raise WrongImport(name, "expected a table")
    given = {key.replace("-", "_"): value for key, value in table.items()}
    for key, value in given.items():
        place = f"{name}.{key}"
        if key not in _EXPECTED:
            raise WrongImport(place, f"unknown key{nearest_hint(key, list(_EXPECTED))}")
        try:
            convert({key: value}, ImportSettings)
        except msgspec.ValidationError:
            raise WrongImport(place, f"expected {_EXPECTED[key]}") from None
    made: ImportSettings = convert(given | {"name": name}, ImportSettings)
    _check(name, made, given)
    return msgspec.structs.replace(
        made,
        openapi=_absolute(made.openapi, directory) if made.openapi else "",
        cwd=_folder(made.cwd, directory) if _is_command(made) else "",
    )


def _check(name: str, made: ImportSettings, given: Mapping[str, Any]) -> None:
    """Raises `WrongImport` for keys that exclude each other, and numbers out of range."""
    kinds = [kind for kind in _KINDS if getattr(made, kind)]
    if len(kinds) != 1:
        raise WrongImport(name, f"expected one of {', '.join(_KINDS)}")
    is_command = _is_command(made)
    for key in ("env", "cwd"):
        if key in given and not is_command:
            raise WrongImport(f"{name}.{key}", "is for a command alone")
    if "max_age" in given and made.daemon:
        raise WrongImport(f"{name}.max_age", "is for openapi and mcp alone")
    misplaced = [key for key in _ONLY_OPENAPI if key in given and kinds != ["openapi"]]
    if misplaced:
        raise WrongImport(f"{name}.{misplaced[0]}", "is for openapi alone")
    if made.credential and made.credentials:
        raise WrongImport(name, "credential and credentials exclude each other")
    if isinstance(made.timeout, float | int) and not made.timeout > 0:
        raise WrongImport(f"{name}.timeout", f"expected {_EXPECTED['timeout']} above 0")
    if isinstance(made.max_age, float | int) and not made.max_age >= 0:
        raise WrongImport(f"{name}.max_age", f"expected {_EXPECTED['max_age']}, 0 or more")


def _is_command(made: ImportSettings) -> bool:
    return any(source and not _is_url(source) for source in (made.mcp, made.daemon))


def _folder(path: str, directory: str) -> str:
    return os.path.join(directory, path) if path else directory


def _is_url(source: str | Command) -> bool:
    return isinstance(source, str) and "://" in source.partition(" ")[0]


def _absolute(source: str, directory: str) -> str:
    return source if "://" in source else os.path.join(directory, source)
