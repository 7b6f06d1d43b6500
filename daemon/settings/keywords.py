"""Settings given as keyword arguments, read by the same rules as flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...errors.nearest import nearest_hint
from .option import Option, RawValue, UsageError
from .table import OPTIONS

_OPTION_OF_FIELD: Final = {option.field: option for option in OPTIONS}
_FIELD_OF_KEY: Final = {option.key: option.field for option in OPTIONS}
_LISTS: Final = ("words", "tokens", "files", "apps", "imports")


def from_keywords(arguments: Mapping[str, Any]) -> dict[str, RawValue]:
    """The values by field, where None stands for the option's word for it. Raises `TypeError` for an unknown setting,
    and for a string in place of a list; `UsageError` for a value that is no number or no bool where one belongs.
    """
    for field in arguments:
        if field not in _OPTION_OF_FIELD:
            spelled = _FIELD_OF_KEY.get(field)
            near = f"; nearest: {spelled}" if spelled else nearest_hint(field, _OPTION_OF_FIELD)
            raise TypeError(f"there is no setting {field}{near}")
        if _OPTION_OF_FIELD[field].kind in _LISTS and isinstance(arguments[field], str):
            raise TypeError(f"{field} must be a list of strings, not one string")
        _check_type(_OPTION_OF_FIELD[field], arguments[field])
    return {
        field: RawValue(_text(field, value), field, typed=isinstance(value, bool))
        for field, value in arguments.items()
        if value is not None or _OPTION_OF_FIELD[field].info.none_word
    }


def in_keywords(message: str) -> str:
    """A message on settings for who gave them as keyword arguments: with those names in place of the flags."""
    return _FLAG.sub(lambda found: _keyword(*found.groups("")), message)


def _keyword(flag: str, value: str) -> str:
    field = _FIELD_OF_KEY.get(flag, flag) if flag in (*_FIELD_OF_KEY, "config", "isolated") else ""
    return (f'{field}="{value}"' if value else field) if field else f"--{flag}"


_FLAG: Final = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: ([A-Z]+(?::[A-Z]+)*))?(?![\w:])")


def _check_type(option: Option, value: object) -> None:
    if value is None:
        return
    if option.kind == "switch" and not isinstance(value, bool):
        raise UsageError(f"{option.field}: expected True or False, not {type(value).__name__}")
    if option.kind in ("integer", "seconds") and not (isinstance(value, int | float) and not isinstance(value, bool)):
        raise UsageError(f"{option.field}: expected a number, not {type(value).__name__}")


def _text(field: str, value: Any) -> object:
    if _OPTION_OF_FIELD[field].kind == "apps":
        return list(value)
    if value is None:
        return _OPTION_OF_FIELD[field].info.none_word
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(value)
    return value if isinstance(value, bool) else str(value)
