"""Chooses among the sources of each setting: flags, then the environment, then the file, then the default."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .option import RawValue, UsageError, absolute, parse_value
from .sources import from_environment, from_file
from .table import OPTIONS, Settings


class Resolved(Struct, frozen=True):
    """The settings, and by field the source of each that is not a default."""

    settings: Settings
    sources: dict[str, str]


def load_settings(argv: Sequence[str], environ: Mapping[str, str], directory: str) -> Settings:
    """The settings of `discreet serve ARGV` with this environment in this directory (an absolute path).

    Raises `UsageError`. Reads only `discreet.toml` or `pyproject.toml` of the directory, and checks that the root is a
    directory.
    """
    from .flags import FlagParser, add_setting_flags, from_flags  # late: argparse, which not every caller needs

    parser = FlagParser("discreet serve", "[APP ...] [FLAG ...]")
    add_setting_flags(parser)
    return resolve_settings(from_flags(parser.read(argv)), environ, directory).settings


def resolve_settings(flags: Mapping[str, RawValue], environ: Mapping[str, str], directory: str) -> Resolved:
    """The settings, from flags that have been parsed. Raises as `load_settings` does."""
    ranked = (flags, from_environment(environ), from_file(directory))
    given = {field: value for source in reversed(ranked) for field, value in source.items()}
    values: dict[str, Any] = {  # checked: `parse_value` gives what the option's field declares
        option.field: parse_value(option, given[option.field], directory) for option in OPTIONS if option.field in given
    }
    values.setdefault("root", absolute(Settings().root, directory))
    settings = Settings(**values)
    if settings.reload and sys.platform == "win32":
        raise UsageError(f"{given['reload'].source}: not available on Windows")
    if settings.backend == "trio":
        _require_trio(given["backend"].source)
    return Resolved(settings, {field: value.source for field, value in given.items()})


def _require_trio(source: str) -> None:
    from importlib.util import find_spec  # late: only the advanced choice needs it

    if find_spec("trio") is None:
        raise UsageError(f"{source}: trio is not installed")
