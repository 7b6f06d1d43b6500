"""JSON Schemas that another program has written, where a Python type would stand. Checks no value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final


@final
class ExternalSchema:
    """A schema as a document of its own: no reference leads out of it, and named types are in its `$defs`. `load` is called each
    time that somebody reads it, so nothing is kept of a large one.

    It stands where a type would: `decoders` takes it for a type with any values, and whoever writes a schema of the type
    writes the given one.
    """

    __slots__ = ("load",)

    def __init__(self, load: Callable[[], dict[str, Any]]) -> None:
        self.load: Final = load
