"""Chooses among the sources of each setting: flags, then the environment, then the file, then the default.

What reads a source checks the names in it, and no values.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

from msgspec import Struct

from ...errors.nearest import closest_match, nearest_hint
from .option import PREFIX, Option, RawValue, UsageError, absolute, parse_value
from .table import HTTP, OPTION_OF, OPTIONS, Settings

OWN_FILE: Final = "discreet.toml"
PROJECT_FILE: Final = "pyproject.toml"
SECTION: Final = "serve"
"""A table of the file. Keys in it and keys beside it mean the same."""

_TABLES: Final = tuple(option.key for option in OPTIONS if option.kind == "imports")
_LARGEST_FILE: Final = 1024 * 1024
"""Bytes. A settings file has a few hundred; reading a large one would delay the start."""


@final
class SettingsFile(Struct, frozen=True):
    """Which file is read: the one that somebody named, or the one that is found, or with `isolated` none."""

    named: str | None = None
    isolated: bool = False

    def argv(self) -> list[str]:
        """The flags that choose it."""
        named = [] if self.named is None else [f"--config={self.named}"]
        return [*named, *(["--isolated"] if self.isolated else [])]


FOUND: Final = SettingsFile()
"""The file that counts if none is named: `discreet.toml` or `pyproject.toml` of the working directory."""


def from_environment(environ: Mapping[str, str]) -> dict[str, RawValue]:
    """The settings of the environment, by field. An empty variable counts as unset.

    Raises `UsageError` for a variable that looks like a misspelling of one of ours. Other variables with our prefix may
    belong to another program and are ignored.
    """
    for name in unknown_variables(environ):
        if meant := _closest_variable(name):
            raise UsageError(f"{name}: unknown environment variable; nearest: {meant}")
    return {option.field: given for option in OPTIONS if (given := _variable(option, environ)) is not None}


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """The variables that have our prefix and are no settings."""
    known = {option.variable for option in OPTIONS}
    return [name for name in environ if name.startswith(PREFIX) and name not in known]


def from_found_file(directory: str) -> dict[str, RawValue]:
    """The settings of a directory's settings file, by field, whether or not it may set them.

    The file is `discreet.toml` or, only without one, the table `tool.discreet` of `pyproject.toml`. Raises `UsageError`
    for a file that cannot be read or is not TOML, for unknown keys, and for keys that are set twice.
    """
    text = _text(directory, OWN_FILE)
    if text is not None:
        return _settings(text, OWN_FILE, directory)
    text = _text(directory, PROJECT_FILE)
    if text is None or "discreet" not in text:  # avoids the parser for most projects
        return {}
    return _settings(text, PROJECT_FILE, directory)


def from_named_file(path: str, directory: str) -> dict[str, RawValue]:
    """The settings of a file that somebody named; of a `pyproject.toml`, its table. Raises as `from_found_file` does."""
    text = _text(directory, path)
    if text is None:
        raise UsageError(f"--config: there is no file {path}")
    return _settings(text, path, os.path.dirname(os.path.join(directory, path)))


def _settings(text: str, name: str, directory: str) -> dict[str, RawValue]:
    table, prefix = _table(text, name)
    by_key = {option.key: option for option in OPTIONS}
    found: dict[str, RawValue] = {}
    for key, value, source in _entries(table, prefix):
        option = by_key.get(key)
        if option is None:
            known = [SECTION, *_TABLES] if isinstance(value, dict) else by_key
            raise UsageError(f"{source}: unknown key{nearest_hint(key, known)}")
        if option.field in found:
            raise UsageError(f"{source}: set twice, here and as {found[option.field].source}")
        found[option.field] = RawValue(value, source, typed=True, directory=directory)
    return found


def _closest_variable(name: str) -> str:
    """The variable of ours that a name resembles; empty for none. Compared without the prefix, which all share."""
    spellings = {option.variable.removeprefix(PREFIX): option.variable for option in OPTIONS} | {
        option.key.replace("-", "_").upper(): option.variable for option in OPTIONS
    }
    return spellings.get(closest_match(name.removeprefix(PREFIX).upper(), spellings), "")


def _variable(option: Option, environ: Mapping[str, str]) -> RawValue | None:
    if text := environ.get(option.variable):
        return RawValue(text, option.variable)
    presence = option.row.presence_variable
    return RawValue(True, presence, typed=True) if presence and environ.get(presence) else None


def _table(text: str, name: str) -> tuple[dict[str, Any], str]:
    """The table with our keys, and the prefix of their names in messages."""
    table = _parsed(text, name)
    if os.path.basename(name) != PROJECT_FILE:
        return table, f"{name}: "
    tool = table.get("tool")
    ours = tool.get("discreet", {}) if isinstance(tool, dict) else {}
    if not isinstance(ours, dict):
        raise UsageError(f"{name}: tool.discreet: expected a table")
    return ours, f"{name}: tool.discreet."


def _entries(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, object, str]]:
    """Key, value and source of each entry, the section's entries included. `_` in a key counts as `-`."""
    for name, value in table.items():
        if name == SECTION and isinstance(value, dict):
            yield from ((_dashed(key), inner, f"{prefix}{SECTION}.{key}") for key, inner in value.items())
        else:
            yield _dashed(name), value, prefix + name


def _dashed(key: str) -> str:
    return key.replace("_", "-")


def _text(directory: str, name: str) -> str | None:
    """The file's text; None if there is no such file."""
    try:
        with open(os.path.join(directory, name), "rb", opener=_open_without_blocking) as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise UsageError(f"{name}: cannot be read: {exc.strerror}") from exc
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"{name}: larger than {_LARGEST_FILE} bytes")
    try:
        return content.decode().removeprefix("\ufeff")  # the byte order mark of Windows' editors
    except UnicodeDecodeError as exc:
        raise UsageError(f"{name}: not UTF-8 at byte {exc.start}") from exc


def _open_without_blocking(path: str, flags: int) -> int:
    """Opening a FIFO of that name would otherwise wait for its writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parsed(text: str, name: str) -> dict[str, Any]:
    import tomllib  # late: most directories have no settings file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"{name}: not valid TOML{_line_of(str(exc))}") from exc
    except RecursionError as exc:
        raise UsageError(f"{name}: nested too deeply") from exc


def _line_of(message: str) -> str:
    """Return the place at which the parser stopped. The rest of its message may quote the file and is dropped."""
    _, found, place = message.rpartition("(at line ")
    line = place.partition(",")[0]
    return f", line {line}" if found and line.isdigit() else ", at its end"


class Resolved(Struct, frozen=True):
    """The settings, and by field the source of each that is not a default."""

    settings: Settings
    sources: dict[str, str]
    ignored: str = ""
    """One line on what a file set that was merely found and may not set it; empty where there is nothing."""


def resolve_here(flags: Mapping[str, RawValue], file: SettingsFile = FOUND) -> Resolved:
    """Resolve the settings of this process, with its environment and its working directory. Raises `UsageError`."""
    try:
        directory = os.getcwd()
    except OSError as exc:
        raise UsageError("the working directory no longer exists") from exc
    return resolve_settings(flags, os.environ, directory, file)


def resolve_settings(
    flags: Mapping[str, RawValue], environ: Mapping[str, str], directory: str, file: SettingsFile = FOUND
) -> Resolved:
    """Resolve the settings from flags that have been parsed, in this directory (an absolute path). Raises `UsageError`.

    Reads only the settings file, and checks that the root is a directory.
    """
    if file.isolated and file.named is not None:
        raise UsageError("--isolated reads no file, and --config names one")
    given = {**({} if file.isolated else from_environment(environ)), **flags}
    ignored: dict[str, RawValue] = {}
    if file.named is not None:
        given = from_named_file(file.named, directory) | given
    elif not file.isolated:
        for field, value in from_found_file(directory).items():
            if field not in given:
                if _may_set(OPTION_OF[field], value):
                    given[field] = value
                else:
                    ignored[field] = value
    values: dict[str, Any] = {  # checked: `parse_value` gives what the option's field declares
        option.field: parse_value(option, given[option.field], directory) for option in OPTIONS if option.field in given
    }
    values.setdefault("root", absolute(Settings().root, directory))
    settings = Settings(**values)
    if settings.reload and sys.platform == "win32":
        raise UsageError(f"{given['reload'].source}: not available on Windows")
    if settings.backend != "asyncio":
        _require_installed(settings.backend, given["backend"].source)
    return Resolved(settings, {field: value.source for field, value in given.items()}, _about_ignored(ignored))


_FOR_GRPC_TOO: Final = frozenset(
    (
        "grpc no_stdio http_open http_cert http_key card_key http_keep_alive http_max_connections http_max_requests"
    ).split()
)
"""The fields of settings that stand with those of HTTP, and count for gRPC as well."""


def require_listener(flags: Mapping[str, RawValue], settings: Settings) -> None:
    """Raises `UsageError` for a flag that means nothing where HTTP is not served, or MCP not by it. What other sources say is for
    other starts."""
    if settings.http is not None:
        if "mcp_key" in flags and not settings.http_mcp:
            raise UsageError(f"{flags['mcp_key'].source} is for MCP by HTTP; add --http-mcp")
        return
    for option in OPTIONS:
        if option.field == "no_stdio" and settings.role == "worker":  # its work comes from the store
            continue
        given = flags.get(option.field)
        if settings.grpc is not None and option.field in _FOR_GRPC_TOO:
            continue
        if option.group == HTTP and given is not None and given.value is not False:
            raise UsageError(f"{given.source} is for HTTP; add --http HOST:PORT")


def _may_set(option: Option, given: RawValue) -> bool:
    """Whether a file that was merely found may set this value. Raises `UsageError` for a value that is none."""
    if option.row.found_file != "lower":
        return option.row.found_file == "yes"
    value = parse_value(option, given, given.directory)
    return isinstance(value, int | float) and value <= option.default


def _about_ignored(values: Mapping[str, RawValue]) -> str:
    file = keys = ""
    for field, value in values.items():
        file, _, key = value.source.partition(": ")
        keys += f", {key}" + (" (not below the default)" if OPTION_OF[field].row.found_file == "lower" else "")
    if not keys:
        return ""
    return f"{file}: ignored: {keys[2:]}: a file that is merely found may not set that; --config {file} applies it"


def _require_installed(backend: str, source: str) -> None:
    from importlib.util import find_spec  # late: only the other choices need it

    if find_spec(backend) is None:
        raise UsageError(f"{source}: {backend} is not installed; pip install {backend}")
