"""Settings given as keyword arguments, read by the same rules as flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...errors.nearest import nearest_hint
from .option import MANY, NONE_WORD, Option, RawValue, UsageError
from .table import OPTION_OF, OPTIONS

_FIELD_OF_KEY: Final = {option.key: option.field for option in OPTIONS}


def from_keywords(arguments: Mapping[str, Any]) -> dict[str, RawValue]:
    """The values by field, where None stands for the option's word for it. Raises `TypeError` for an unknown setting,
    and for a string in place of a list; `UsageError` for a value that is no number or no bool where one belongs.
    """
    found: dict[str, RawValue] = {}
    for field, value in arguments.items():
        option = OPTION_OF.get(field)
        if option is None:
            spelled = _FIELD_OF_KEY.get(field)
            near = f"; nearest: {spelled}" if spelled else nearest_hint(field, OPTION_OF)
            raise TypeError(f"there is no setting {field}{near}")
        if value is None:
            if option.has_none_word:
                found[field] = RawValue(NONE_WORD, field)
            continue
        found[field] = RawValue(_raw(option, value), field, typed=isinstance(value, bool))
    return found


def _raw(option: Option, value: Any) -> object:
    """The value as a flag has it."""
    if option.kind in MANY:
        if isinstance(value, str):
            raise TypeError(f"{option.field} must be a list of strings, not one string")
        return list(value) if option.kind == "apps" else " ".join(value)
    is_bool = isinstance(value, bool)
    if option.kind == "switch" and not is_bool:
        raise UsageError(f"{option.field}: expected True or False, not {type(value).__name__}")
    if option.kind in ("integer", "seconds") and (is_bool or not isinstance(value, int | float)):
        raise UsageError(f"{option.field}: expected a number, not {type(value).__name__}")
    return value if is_bool else str(value)


def in_keywords(message: str) -> str:
    """A message on settings for who gave them as keyword arguments: with those names in place of the flags."""
    return re.sub(_FLAG, lambda found: _keyword(*found.groups("")), message)


def _keyword(flag: str, value: str) -> str:
    field = _FIELD_OF_KEY.get(flag, flag) if flag in (*_FIELD_OF_KEY, "config", "isolated") else ""
    return (f'{field}="{value}"' if value else field) if field else f"--{flag}"


_FLAG: Final = r"--([a-z]+(?:-[a-z]+)*)(?: ([A-Z]+(?::[A-Z]+)*))?(?![\w:])"
