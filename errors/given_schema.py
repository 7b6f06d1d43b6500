"""JSON Schemas that another program has written, where a Python type would stand. Checks no value.

A type with one is `Annotated[Any, GivenSchema(load)]`: msgspec takes any value for it, and whoever writes a schema of the type
writes the given one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, final


@final
class GivenSchema:
    """A schema as a document of its own: no reference leads out of it, and named types are in its `$defs`. `load` is called each
    time that somebody reads it, so nothing is kept of a large one.
    """

    __slots__ = ("load",)

    def __init__(self, load: Callable[[], dict[str, Any]]) -> None:
        self.load: Final = load


def given_type(load: Callable[[], dict[str, Any]]) -> Any:
    """The type whose schema `load` returns."""
    return Annotated[Any, GivenSchema(load)]


def given_schema(tp: Any) -> GivenSchema | None:
    """The schema that a type was given; None where the type itself says what its values are."""
    return next((mark for mark in getattr(tp, "__metadata__", ()) if isinstance(mark, GivenSchema)), None)
