"""What callers hand in, checked before anything is started or sent. Raises `TypeError` and `ValueError` only."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, get_args

import msgspec

from ..framing.events import Framing
from .json_path import Path, show

StrPath: TypeAlias = "str | os.PathLike[str]"

_encode = msgspec.json.Encoder().encode
_NULL: Final = b"null"


def check_command(command: Sequence[StrPath]) -> None:
    """Raises `TypeError` for a text, which is no list of words, and `ValueError` for an empty command."""
    if isinstance(command, str | bytes | os.PathLike):
        raise TypeError(f'the command is a list of words, such as ["discreet", "serve"], not {type(command).__name__}')
    if not command:
        raise ValueError("the command is empty")


def check_framing(framing: object) -> None:
    """Raises `ValueError` for what is no framing; None stands for somebody else's choice."""
    known = get_args(Framing)
    if framing is not None and framing not in known:
        raise ValueError(f"framing is {' or '.join(known)}, not {framing!r}")


def check_timeout(timeout: object) -> None:
    """Raises `ValueError` for what is neither None nor a number of seconds, 0 or more."""
    if timeout is not None and not (isinstance(timeout, int | float) and timeout >= 0):
        raise ValueError(f"timeout is None or a number of seconds, 0 or more, not {timeout!r}")


def encode_params(params: object) -> bytes:
    """The JSON text of params. Raises `TypeError` for a type that JSON does not have.

    Raises `ValueError`, which names the place, for numbers and texts that it does not have: NaN, infinity, half a character.
    """
    try:
        text = _encode(params)
    except UnicodeEncodeError as exc:
        raise ValueError(f"{_first(params, _is_broken)} holds half a character (a lone surrogate)") from exc
    except RecursionError as exc:
        raise ValueError("params are nested too deeply") from exc
    if _NULL in text and (place := _first(params, _is_no_number)):  # what msgspec makes of these numbers
        raise ValueError(f"{place} is no number that JSON has")
    return text


def _is_broken(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _first(params: object, wanted: Callable[[object], bool]) -> str:
    """The first place of such a value or key; empty where there is none."""
    plain: object = msgspec.to_builtins(params, enc_hook=lambda _: None)  # `Raw` is JSON already
    return next((show(path) for path, value in _walk(plain, ("params",)) if wanted(value)), "")


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
