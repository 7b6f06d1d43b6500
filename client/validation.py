"""Checks arguments before anything is started or sent. Raises `TypeError` and `ValueError` only."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, get_args

import msgspec

from ..framing.events import Framing
from .json_path import Path, format_path

StrPath: TypeAlias = "str | os.PathLike[str]"

_encode = msgspec.json.Encoder().encode
_NULL: Final = b"null"


def check_command(command: Sequence[StrPath]) -> None:
    """Raises `TypeError` for a single string instead of a list, and `ValueError` for an empty command."""
    if isinstance(command, str | bytes | os.PathLike):
        raise TypeError(f'command must be a list of words, such as ["discreet", "serve"], not {type(command).__name__}')
    if not command:
        raise ValueError("command must not be empty")


def check_framing(framing: object) -> None:
    """Raises `ValueError` for anything but a framing or None."""
    known = get_args(Framing)
    if framing is not None and framing not in known:
        raise ValueError(f"framing must be {' or '.join(known)}, not {framing!r}")


def check_timeout(timeout: object) -> None:
    """Raises `ValueError` for anything but None or a number of seconds, 0 or more."""
    if timeout is not None and not (isinstance(timeout, int | float) and timeout >= 0):
        raise ValueError(f"timeout must be None or a number of seconds, 0 or more, not {timeout!r}")


def encode_params(params: object) -> bytes:
    """The JSON text of params. Raises `TypeError` for a type that JSON does not have.

    Raises `ValueError` for numbers and texts that it does not have (NaN, infinity, lone surrogates), and names the place.
    """
    try:
        text = _encode(params)
    except UnicodeEncodeError as exc:
        raise ValueError(f"{_first(params, _has_surrogate)} holds a lone surrogate") from exc
    except RecursionError as exc:
        raise ValueError("params are nested too deeply") from exc
    if _NULL in text and (place := _first(params, _is_not_finite)):  # msgspec writes these numbers as null
        raise ValueError(f"{place} is NaN or infinite, which JSON can't hold")
    return text


def _has_surrogate(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


def _is_not_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _first(params: object, wanted: Callable[[object], bool]) -> str:
    """The first place of a value or key for which `wanted` is true; empty if there is none."""
    plain: object = msgspec.to_builtins(params, enc_hook=lambda _: None)  # `Raw` is JSON already
    return next((format_path(path) for path, value in _walk(plain, ("params",)) if wanted(value)), "")


def _walk(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    yield path, value
    match value:
        case dict():
            for key, item in value.items():
                yield path, key
                yield from _walk(item, (*path, str(key)))
        case list() | tuple():
            for place, item in enumerate(value):
                yield from _walk(item, (*path, place))
        case _:
            return
