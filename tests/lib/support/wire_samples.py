"""JSON for any struct: as little as it takes, or all that there is. For tests that read and write every struct."""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints  # Any: samples are JSON

import msgspec
from msgspec import Struct, UnsetType

from discreet.dialects.structs import StructUnion

LEADS_BACK: Any = object()
"""Instead of a sample that would hold a struct within itself."""

PLAIN: dict[Any, Any] = {str: "text", int: 7, float: 0.5, bool: True, Any: "any"}


def sample(struct: type[Struct], *, full: bool, within: tuple[Any, ...] = ()) -> dict[str, Any]:
    """An object with the required members of a struct; with `full`, with every member but those that lead back to it."""
    hints = get_type_hints(struct, include_extras=True)
    config = struct.__struct_config__
    found: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(struct):
        if field.required or full:
            value = _sample_of(hints[field.name], full, (*within, struct))
            if value is not LEADS_BACK:
                found[field.encode_name] = value
    return found


def _sample_of(of: Any, full: bool, within: tuple[Any, ...]) -> Any:
    arguments = get_args(of)
    match get_origin(of):
        case origin if origin is Annotated:
            union: StructUnion = arguments[1]
            value = _first([struct for _, struct in union.candidates], full, within)
            return [value] if union.lists and value is not LEADS_BACK else value
        case origin if origin in {Union, UnionType}:
            return _first([one for one in arguments if one not in {NoneType, UnsetType}], full, within)
        case origin if origin is Literal:
            return arguments[0]
        case origin if origin is list:
            item = _sample_of(arguments[0], full, within)
            return [] if item is LEADS_BACK else [item]
        case origin if origin is dict and arguments[1] is Any:
            return {"type": "object"}  # what a tool's schema must have; anything elsewhere
        case origin if origin is dict:
            value = _sample_of(arguments[1], full, within)
            return {} if value is LEADS_BACK else {"key": value}
        case origin if origin is tuple:
            return [_sample_of(one, full, within) for one in arguments]
        case _ if isinstance(of, type) and issubclass(of, Struct):
            return LEADS_BACK if of in within else sample(of, full=full, within=within)
        case _ if isinstance(of, type) and issubclass(of, Enum):
            return next(iter(of)).value
        case _:
            return PLAIN[of]


def _first(alternatives: list[Any], full: bool, within: tuple[Any, ...]) -> Any:
    """Of the structs, else of the first."""
    structs = [one for one in alternatives if isinstance(one, type) and issubclass(one, Struct)]
    return _sample_of((structs or alternatives)[0], full, within)
