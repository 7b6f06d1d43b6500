"""Settings given as keyword arguments of tests, read by the same rules as flags. Reads no environment and no file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..client.validation import StrPath
from ..daemon.operations.service import Service
from ..daemon.settings import Settings
from ..daemon.settings.keywords import from_keywords
from ..daemon.settings.option import RawValue, parse_value
from ..daemon.settings.table import OPTION_OF
from ..flags import to_argv
from ..framing.events import Framing


def settings_of(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a daemon in memory. Raises `TypeError` for an unknown one, `UsageError` for a wrong value."""
    directory = os.getcwd()
    values: dict[str, Any] = {
        field: parse_value(OPTION_OF[field], given, directory) for field, given in from_keywords(arguments).items()
    }
    return Settings(**values)


def flags_of(apps: tuple[str, ...], arguments: Mapping[str, Any], directory: StrPath) -> list[str]:
    """Return the arguments of a `discreet serve` that hosts these apps and runs in this directory. Raises as `settings_of`."""
    values = {field: value for field, value in from_keywords(arguments).items() if value.value is not False}
    for field, given in values.items():
        parse_value(OPTION_OF[field], given, os.path.abspath(directory))
    return to_argv({"apps": RawValue([*apps], "apps"), **values})


def client_framing(settings: Settings, hosted: Sequence[object] = ()) -> Framing:
    """Return the framing for the client of a daemon that hosts these. A daemon with `auto` accepts either."""
    dialect: str | None = settings.dialect
    for found in hosted:
        if isinstance(found, Service):
            dialect = dialect or found.dialect
    return "newline" if settings.framing_in(dialect or "plain") == "newline" else "content-length"
