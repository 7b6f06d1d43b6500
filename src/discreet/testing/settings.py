"""Settings given as keyword arguments of tests, read by the same rules as flags. Reads no environment and no file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from ..daemon.settings import Settings
from ..daemon.settings.flags import to_argv
from ..daemon.settings.option import RawValue, parse_value
from ..daemon.settings.sources import closest_match
from ..daemon.settings.table import OPTIONS
from ..framing.events import Framing

_OPTION_OF_FIELD: Final = {option.field: option for option in OPTIONS}
_NEAREST: Final = {option.key: option.field for option in OPTIONS}
"""The names of flags, for those who write them here."""
_LISTS: Final = ("words", "tokens", "files", "apps")


def settings_of(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a daemon in memory. Raises `TypeError` for an unknown one, `UsageError` for a wrong value."""
    directory = os.getcwd()
    values: dict[str, Any] = {
        field: parse_value(_OPTION_OF_FIELD[field], given, directory) for field, given in _as_text(arguments).items()
    }
    return Settings(**values)


def flags_of(apps: tuple[str, ...], arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a `discreet serve` that hosts these apps. Raises `TypeError` for an unknown setting."""
    return to_argv({"apps": RawValue([*apps], "apps"), **_as_text(arguments)})


def client_framing(setting: str | None) -> Framing:
    """Return the framing for the client. A daemon with `auto` accepts either."""
    return "newline" if setting == "newline" else "content-length"


def _as_text(arguments: Mapping[str, Any]) -> dict[str, RawValue]:
    """Return the values as the text of flags. A switch that is off, and None where there is no word for it, are left out."""
    for field in arguments:
        if field not in _OPTION_OF_FIELD:
            nearest = _NEAREST.get(field) or closest_match(field, _OPTION_OF_FIELD)
            raise TypeError(f"there is no setting {field}; nearest: {nearest}")
        if _OPTION_OF_FIELD[field].kind in _LISTS and isinstance(arguments[field], str):
            raise TypeError(f"{field} is a list of strings, not one string")
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
