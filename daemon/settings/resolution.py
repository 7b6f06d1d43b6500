"""Chooses among the sources of each setting: flags, then the environment, then the file, then the default."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .option import Option, RawValue, UsageError, absolute, parse_value
from .sources import FOUND, SettingsFile, from_environment, from_found_file, from_named_file
from .table import HTTP, OPTIONS, Settings


class Resolved(Struct, frozen=True):
    """The settings, and by field the source of each that is not a default."""

    settings: Settings
    sources: dict[str, str]
    ignored: str = ""
    """One line on what a file set that was merely found and may not set it; empty where there is nothing."""


def load_settings(argv: Sequence[str], environ: Mapping[str, str], directory: str) -> Settings:
    """The settings of `discreet serve ARGV` with this environment in this directory (an absolute path).

    Raises `UsageError`. Reads only the settings file, and checks that the root is a directory.
    """
    from .flags import (
        FlagParser,
        add_setting_flags,
        file_from_flags,
        from_flags,
    )  # late: not every caller needs argparse

    parser = FlagParser("discreet serve", "[APP ...] [FLAG ...]")
    add_setting_flags(parser)
    args = parser.read(argv)
    return resolve_settings(from_flags(args), environ, directory, file_from_flags(args)).settings


def resolve_here(flags: Mapping[str, RawValue], file: SettingsFile = FOUND) -> Resolved:
    """The settings of this process, with its environment and its working directory. Raises as `load_settings` does."""
    try:
        directory = os.getcwd()
    except OSError as exc:
        raise UsageError("the working directory no longer exists") from exc
    return resolve_settings(flags, os.environ, directory, file)


def resolve_settings(
    flags: Mapping[str, RawValue], environ: Mapping[str, str], directory: str, file: SettingsFile = FOUND
) -> Resolved:
    """The settings, from flags that have been parsed. Raises as `load_settings` does."""
    if file.isolated and file.named is not None:
        raise UsageError("--isolated reads no file, and --config names one")
    given = {**({} if file.isolated else from_environment(environ)), **flags}
    ignored = ""
    if file.named is not None:
        given = from_named_file(file.named, directory) | given
    elif not file.isolated:
        found = {field: value for field, value in from_found_file(directory).items() if field not in given}
        allowed = {
            option.field for option in OPTIONS if option.field in found and _may_set(option, found[option.field])
        }
        ignored = _ignored({key: value for key, value in found.items() if key not in allowed})
        given |= {field: found[field] for field in allowed}
    values: dict[str, Any] = {  # checked: `parse_value` gives what the option's field declares
        option.field: parse_value(option, given[option.field], directory) for option in OPTIONS if option.field in given
    }
    values.setdefault("root", absolute(Settings().root, directory))
    settings = Settings(**values)
    if settings.reload and sys.platform == "win32":
        raise UsageError(f"{given['reload'].source}: not available on Windows")
    if settings.backend == "trio":
        _require_trio(given["backend"].source)
    return Resolved(settings, {field: value.source for field, value in given.items()}, ignored)


def require_listener(flags: Mapping[str, RawValue], settings: Settings) -> None:
    """Raises `UsageError` for a flag that means nothing where HTTP is not served. What other sources say is for other starts."""
    if settings.http is not None:
        return
    for option in OPTIONS:
        if option.field == "no_stdio" and settings.role == "worker":  # its work comes from the store
            continue
        given = flags.get(option.field)
        if option.info.group == HTTP and given is not None and given.value is not False:
            raise UsageError(f"{given.source} is for HTTP; add --http HOST:PORT")


def _may_set(option: Option, given: RawValue) -> bool:
    """Whether a file that was merely found may set this value. Raises `UsageError` for a value that is none."""
    match option.info.found_file:
        case "yes":
            return True
        case "lower":
            value = parse_value(option, given, given.directory)
            return isinstance(value, int | float) and value <= option.default
        case "no":
            return False


def _ignored(values: Mapping[str, RawValue]) -> str:
    if not values:
        return ""
    file = next(iter(values.values())).source.partition(": ")[0]
    keys = [
        values[option.field].source.partition(": ")[2]
        + (" (not below the default)" if option.info.found_file == "lower" else "")
        for option in OPTIONS
        if option.field in values
    ]
    return (
        f"{file}: ignored: {', '.join(keys)}: a file that is merely found may not set that; --config {file} applies it"
    )


def _require_trio(source: str) -> None:
    from importlib.util import find_spec  # late: only the advanced choice needs it

    if find_spec("trio") is None:
        raise UsageError(f"{source}: trio is not installed; pip install trio")
