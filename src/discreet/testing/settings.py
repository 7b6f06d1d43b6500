"""Settings given as keyword arguments of tests, read by the same rules as flags. Reads no environment and no file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from ..client.validation import StrPath
from ..daemon.settings import Settings
from ..daemon.settings.flags import to_argv
from ..daemon.settings.option import RawValue, parse_value
from ..daemon.settings.table import OPTIONS
from ..framing.events import Framing

_OPTION_OF_FIELD: Final = {option.field: option for option in OPTIONS}


def settings_of(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a daemon in memory. Raises `TypeError` for an unknown one, `UsageError` for a wrong value."""
    directory = os.getcwd()
    values: dict[str, Any] = {
        field: parse_value(_OPTION_OF_FIELD[field], given, directory) for field, given in _as_text(arguments).items()
    }
    return Settings(**values)


def flags_of(apps: tuple[str, ...], arguments: Mapping[str, Any], directory: StrPath) -> list[str]:
    """Return the arguments of a `discreet serve` that hosts these apps and runs in this directory. Raises as `settings_of`."""
    values = _as_text(arguments)
    for field, given in values.items():
        parse_value(_OPTION_OF_FIELD[field], given, os.path.abspath(directory))
    return to_argv({"apps": RawValue([*apps], "apps"), **values})


def client_framing(setting: str | None) -> Framing:
    """Return the framing for the client. A daemon with `auto` accepts either."""
    return "newline" if setting == "newline" else "content-length"


def _as_text(arguments: Mapping[str, Any]) -> dict[str, RawValue]:
    """Return the values as the text of flags. A switch that is off, and None where there is no word for it, are left out."""
    for field in arguments:
        if field not in _OPTION_OF_FIELD:
            raise TypeError(f"there is no setting {field}")
    return {
        field: RawValue(_text(field, value), field, typed=isinstance(value, bool))
        for field, value in arguments.items()
        if value is not False and (value is not None or _OPTION_OF_FIELD[field].info.none_word)
    }


def _text(field: str, value: Any) -> object:
    if _OPTION_OF_FIELD[field].kind == "apps":
        return list(value)
    if value is None:
        return _OPTION_OF_FIELD[field].info.none_word
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(value)
    return value if value is True else str(value)
