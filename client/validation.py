"""Checks arguments before anything is started or sent. Raises `TypeError` and `ValueError` only."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Final, TypeAlias, get_args

import msgspec

from ..errors.exceptions import OperationError
from ..framing.events import Framing
from .json_path import Path, format_path

StrPath: TypeAlias = "str | os.PathLike[str]"

_encode = msgspec.json.Encoder().encode
_NULL: Final = b"null"
_STARTS_CONTAINER: Final = (b"{", b"[")


def check_command(command: Sequence[StrPath]) -> None:
    """Raises `TypeError` for a single string instead of a list, and `ValueError` for an empty command."""
    if isinstance(command, str | bytes | os.PathLike):
        raise TypeError(f'command must be a list of words, such as ["discreet", "serve"], not {type(command).__name__}')
    if not command:
        raise ValueError("command must not be empty")
    for word in command:
        if not isinstance(word, str | bytes | os.PathLike):
            raise TypeError(f"command must be a list of words, and {_kind(word)} is none")


def check_framing(framing: object) -> None:
    """Raises `ValueError` for anything but a framing or None."""
    known = get_args(Framing)
    if framing is not None and framing not in known:
        raise ValueError(f"framing must be {' or '.join(known)}, not {framing!r}")


def check_timeout(timeout: object) -> None:
    """Raises for anything but None or a number of seconds, 0 or more."""
    if timeout is not None:
        check_seconds("timeout", timeout)


def check_seconds(name: str, value: object) -> None:
    """Raises `TypeError` for what is no number, and `ValueError` for one that is not 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {_kind(value)}")
    if not value >= 0:
        raise ValueError(f"{name} must be a number of seconds, 0 or more, not {value!r}")


def check_count(name: str, value: object, minimum: int) -> None:
    """Raises `TypeError` for what is no whole number, and `ValueError` for one below the minimum."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {_kind(value)}")
    if value < minimum:
        raise ValueError(f"{name} must be {minimum} or more, not {value}")


def check_instance(name: str, value: object, kind: type, *, or_none: bool = False) -> None:
    """Raises `TypeError` for anything but an instance of `kind`."""
    if not (isinstance(value, kind) or (or_none and value is None)):
        raise TypeError(f"{name} must be {_article(kind.__name__)} {kind.__name__}, not {_kind(value)}")


def check_errors(errors: object, name: str = "errors") -> None:
    """Raises `TypeError` for anything but a list of classes that declare errors."""
    if isinstance(errors, type) or not isinstance(errors, Iterable):
        raise TypeError(f"{name} must be a list of classes, not {_kind(errors)}")
    for cls in errors:
        if not is_declared(cls):
            raise TypeError(f"{name} must be subclasses of OperationError, not {_kind(cls)}")


def is_declared(cls: object) -> bool:
    """Whether this is a class that declares an error."""
    return isinstance(cls, type) and issubclass(cls, OperationError) and cls is not OperationError


def check_method(method: object) -> None:
    """Raises `TypeError` for anything but a text."""
    if not isinstance(method, str):
        raise TypeError(f"method must be a string, not {_kind(method)}")


def check_strings(name: str, value: object) -> None:
    """Raises `TypeError` for anything but None or a mapping from strings to strings."""
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise TypeError(f"{name} must map strings to strings")


def check_callback(name: str, handler: object) -> None:
    """Raises `TypeError` for anything but a plain function: what it returns is not awaited."""
    if not callable(handler):
        raise TypeError(f"{name} must be a function, not {_kind(handler)}")
    if is_async(handler):
        raise TypeError(f"{name} must be a plain function: it is called while nothing else is read, and not awaited")


def is_async(handler: object) -> bool:
    """Whether calling this gives a coroutine."""
    return iscoroutinefunction(handler) or iscoroutinefunction(getattr(type(handler), "__call__", None))  # noqa: B004 - asks for its kind


def _kind(value: object) -> str:
    """What was given instead, in a word: a class by its name, anything else by its type."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _article(name: str) -> str:
    return "an" if name[0] in "AEIOU" else "a"


def encode_params(params: object) -> bytes:
    """The JSON text of params. Raises `TypeError` for a type that JSON does not have, and for text, numbers and the like:
    JSON-RPC 2.0 section 4.2 allows objects and arrays only.

    Raises `ValueError` for numbers and texts that it does not have (NaN, infinity, lone surrogates), and names the place.
    """
    try:
        text = _encode(params)
    except UnicodeEncodeError as exc:
        raise ValueError(f"{_first(params, _has_surrogate)} holds a lone surrogate") from exc
    except RecursionError as exc:
        raise ValueError("params are nested too deeply") from exc
    if text.lstrip()[:1] not in _STARTS_CONTAINER:
        raise TypeError(f"params must be an object or an array in JSON, not {_kind(params)}")
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
