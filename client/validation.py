"""Checks arguments before anything is started or sent. Raises `TypeError` and `ValueError` only."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from ..errors.exceptions import OperationError
from ..framing.events import Framing
from .json_path import Path, format_path

StrPath: TypeAlias = "str | os.PathLike[str]"

Backend: TypeAlias = Literal["asyncio", "trio"]

StderrChoice: TypeAlias = Literal["inherit", "collect"]

StderrMode: TypeAlias = StderrChoice | Callable[[str], object]
"""The use of a child's stderr: it is this process's own, its end is kept in memory, or a callback gets each line.

The callback gets lines without their line ends and must return at once. An exception of the callback ends the connection.
"""

_encode = msgspec.json.Encoder().encode
_NULL: Final = b"null"
URL_SCHEMES: Final = ("http:", "https:", "unix:")
_STARTS_CONTAINER: Final = (b"{", b"[")


def check_command(command: Sequence[StrPath]) -> None:
    """Raises `TypeError` for a single string instead of a list, and `ValueError` for an empty command."""
    if isinstance(command, str | bytes | os.PathLike):
        raise TypeError(
            f'command must be a list of words, such as ["discreet", "serve"], or a URL (http:, https:, unix:), not'
            f" {type(command).__name__}"
        )
    if not command:
        raise ValueError("command must not be empty")
    for word in command:
        if not isinstance(word, str | bytes | os.PathLike):
            raise TypeError(f"command must be a list of words, not of {type(word).__name__}")


def is_url(text: str) -> bool:
    """Whether this names a server by its address: with one of the schemes that the client speaks."""
    return text.lower().startswith(URL_SCHEMES)


def check_unused(of: str, **options: object) -> None:
    """Raises `TypeError` for an option that is set, and has a meaning for `of` only."""
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"{name} is for {of}")


def check_framing(framing: object, name: str = "framing") -> None:
    """Raises `ValueError` for anything but a framing or None."""
    if framing is not None:
        check_choice(name, framing, get_args(Framing))


def check_stderr(stderr: object) -> None:
    """Raises `ValueError` for anything but a mode or a callback."""
    if not callable(stderr):
        check_choice("stderr", stderr, get_args(StderrChoice), otherwise="a function that takes a line")


def check_errors(errors: object, name: str = "errors") -> None:
    """Raises `TypeError` for anything but a sequence of classes that declare errors."""
    if not isinstance(errors, Sequence) or not all(
        isinstance(cls, type) and issubclass(cls, OperationError) and cls is not OperationError for cls in errors
    ):
        raise TypeError(f"{name} must be a list of subclasses of OperationError, not {errors!r}")


def check_strings(name: str, value: object) -> None:
    """Raises `TypeError` for anything but None or a mapping from strings to strings."""
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise TypeError(f"{name} must map strings to strings")


def check_choice(name: str, value: object, known: Sequence[str], *, otherwise: str = "") -> None:
    """Raises `ValueError` for anything but one of these words."""
    if value not in known:
        expected = ", ".join(map(repr, known)) + (f" or {otherwise}" if otherwise else "")
        raise ValueError(f"{name} must be one of {expected}, not {value!r}")


def check_instance(name: str, value: object, expected: type, *, optional: bool = False) -> None:
    """Raises `TypeError` for anything but an instance of this class, or None if it is optional."""
    if not (isinstance(value, expected) or (optional and value is None)):
        or_none = " or None" if optional else ""
        raise TypeError(f"{name} must be an instance of {expected.__name__}{or_none}, not {value!r}")


def check_callback(name: str, value: object) -> None:
    """Raises `TypeError` for what can't be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {value!r}")


def check_plain_function(name: str, value: object) -> None:
    """Raise `TypeError` for a value that can't be called, and for a coroutine function: its result is not awaited."""
    check_callback(name, value)
    if iscoroutinefunction(value) or iscoroutinefunction(getattr(type(value), "__call__", None)):  # noqa: B004 - its kind
        raise TypeError(f"{name} must be a plain function: it is called while nothing else is read, and not awaited")


def check_count(name: str, value: object, minimum: int) -> None:
    """Raises `ValueError` for anything but a whole number from this one on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(f"{name} must be a whole number, {minimum} or more, not {value!r}")


def check_timeout(timeout: object) -> None:
    """Raises `ValueError` for anything but None or a number of seconds, 0 or more."""
    if timeout is not None:
        check_seconds("timeout", timeout, or_else="None or ")


def check_seconds(name: str, value: object, *, or_else: str = "") -> None:
    """Raises `ValueError` for anything but a number of seconds, 0 or more."""
    if isinstance(value, bool) or not (isinstance(value, int | float) and value >= 0):
        raise ValueError(f"{name} must be {or_else}a number of seconds, 0 or more, not {value!r}")


def encode_params(params: object) -> bytes:
    """The JSON text of params. Raises `TypeError` for a type that JSON does not have, and for what is neither an object nor
    an array: JSON-RPC 2.0 section 4.2 allows no other params.

    Raises `ValueError` for numbers and texts that it does not have (NaN, infinity, lone surrogates), and names the place.
    """
    try:
        text = _encode(params)
    except UnicodeEncodeError as exc:
        raise ValueError(f"{_first(params, _has_surrogate)} holds a lone surrogate") from exc
    except RecursionError as exc:
        raise ValueError("params are nested too deeply") from exc
    except TypeError as exc:
        raise TypeError(f"{_first(params, _is_unsupported) or 'params'}: {exc}") from exc
    if text.lstrip()[:1] not in _STARTS_CONTAINER:
        raise TypeError(f"params must be an object or an array in JSON, not {type(params).__name__}")
    if _NULL in text and (place := _first(params, _is_not_finite)):  # msgspec writes these numbers as null
        raise ValueError(f"{place} is NaN or infinite, which JSON can't hold")
    return text


def _has_surrogate(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


def _is_not_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


_UNSUPPORTED: Final = "\0a value of a type that JSON does not have"


def _is_unsupported(value: object) -> bool:
    return value == _UNSUPPORTED


def _first(params: object, wanted: Callable[[object], bool]) -> str:
    """The first place of a value or key for which `wanted` is true; empty if there is none."""
    try:
        plain: object = msgspec.to_builtins(params, enc_hook=_plain)
    except TypeError:  # keys that are no texts
        return ""
    return next((format_path(path) for path, value in _walk(plain, ("params",)) if wanted(value)), "")


def _plain(value: object) -> object:
    """Return the stand-in for a value that msgspec has no plain type for: `Raw` is JSON already."""
    return None if isinstance(value, msgspec.Raw) else _UNSUPPORTED


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
