"""Calls foreign code such as `__repr__`, `__str__`, `__iter__` and properties. Never raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

ResultT = TypeVar("ResultT")

_TYPE_NAME: Final = type.__dict__["__name__"]
"""Python's own name of a type: a metaclass may define another, whose code runs."""


def call_or_none(call: Callable[[], ResultT]) -> ResultT | None:
    """The call's result, or None if it raises an `Exception`."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - foreign code may raise anything, and writing a log line must not fail
        return None


def type_name(value: object) -> str:
    """The name of the value's type, whatever its metaclass says."""
    return cast("str", _TYPE_NAME.__get__(type(value)))


def text_of(value: object) -> str:
    """The value as text: None is empty, bytes are decoded, any other value is its `str()`, or its type's name if that raises."""
    if type(value) is str:
        return value
    text = call_or_none(lambda: _text(value))
    return f"<{type_name(value)}>" if text is None else text


def pairs_of(value: object) -> list[tuple[str, object]]:
    """The items of a mapping with text keys; of any other value, one item that holds it, and none of None."""
    if value is None:
        return []
    pairs = call_or_none(lambda: [(text_of(key), item) for key, item in cast("Mapping[object, object]", value).items()])
    return [("value", value)] if pairs is None else pairs


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return str.__str__(value)
        case bytes() | bytearray():
            return bytes(value).decode(errors="replace")
        case _:
            return str.__str__(str(value))
