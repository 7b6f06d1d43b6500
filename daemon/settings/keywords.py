"""Settings given as keyword arguments, read by the same rules as flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .option import RawValue
from .table import OPTIONS

_OPTION_OF_FIELD: Final = {option.field: option for option in OPTIONS}


def from_keywords(arguments: Mapping[str, Any]) -> dict[str, RawValue]:
    """The values by field, where None stands for the option's word for it. Raises `TypeError` for an unknown setting."""
    for field in arguments:
        if field not in _OPTION_OF_FIELD:
            raise TypeError(f"there is no setting {field}")
    return {
        field: RawValue(_text(field, value), field, typed=isinstance(value, bool))
        for field, value in arguments.items()
        if value is not None or _OPTION_OF_FIELD[field].info.none_word
    }


def _text(field: str, value: Any) -> object:
    if _OPTION_OF_FIELD[field].kind == "apps":
        return list(value)
    if value is None:
        return _OPTION_OF_FIELD[field].info.none_word
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(value)
    return value if isinstance(value, bool) else str(value)
