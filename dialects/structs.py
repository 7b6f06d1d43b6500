"""Defines the base of the generated structs: open enumerations and unions of structs. Knows no protocol.

Authors may rely on this:

- Members are in snake_case here and in camelCase on the wire. Members that a protocol does not name are ignored when reading.
- An optional member that is absent is None, and None is not written. Where a protocol tells null from absent, absent is
  UNSET and None is null.
- A value that an enumeration does not name is kept: `SymbolKind(99)` has that value and is written as it came.
- Structs of LSP that hold numbers only, such as Position and Range, are values: frozen, ordered, with members by position.
- A member with one fixed value, such as `kind="create"`, is a class variable. It is written, and need not be passed.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Final, Self, final  # Any: what stands in JSON until a struct is made of it

from msgspec import Struct, ValidationError

from ..errors.decoders import convert


class WireStruct(Struct, rename="camel", omit_defaults=True):
    """Can be changed: what a handler has read it may complete and return."""


class FrozenWireStruct(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Can't be changed."""


class OpenStr(StrEnum):
    """An enumeration of strings that takes any other string too. Members compare equal to their strings."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        return member


class OpenInt(IntEnum):
    """An enumeration of integers that takes any other integer too. Members compare equal to their integers."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = str(int(value))
        member._value_ = int(value)
        return member


@final
class StructUnion:
    """A union that msgspec can't tell apart: several structs without a tag, or several lists.

    An object becomes the first struct whose required members are there and fit. The candidates stand in this order: those
    with most required members first, then as in the protocol.
    """

    __slots__ = ("_plain", "candidates", "lists")

    def __init__(
        self, plain: tuple[type, ...], candidates: tuple[tuple[str, type[Struct]], ...], *, lists: bool
    ) -> None:
        """`candidates` are structs with their required members. `plain` are the types beside them. With `lists`, an array
        of what the union takes is taken too.
        """
        self._plain: Final = (Struct, *plain)
        self.candidates: Final = tuple((required.split(), struct) for required, struct in candidates)
        self.lists: Final = lists

    def read(self, value: Any) -> Any:
        """A struct for an object, a list of structs for an array. Structs and plain values are returned as they are.

        Raises TypeError if the union has no such type, and ValidationError if no struct fits. Within `__post_init__`
        msgspec makes both a ValidationError.
        """
        if type(value) is dict:
            return self._struct_of(value)
        if self.lists and isinstance(value, list | tuple):
            return [self._struct_of(item) if type(item) is dict else self._checked(item) for item in value]
        return self._checked(value)

    def _checked(self, value: Any) -> Any:
        if isinstance(value, self._plain):
            return value
        raise TypeError(f"Expected {self._expected()}")

    def _struct_of(self, members: dict[str, Any]) -> Struct:
        refused: ValidationError | None = None
        for required, struct in self.candidates:
            if all(name in members for name in required):
                try:
                    found: Struct = convert(members, struct)
                except ValidationError as error:
                    refused = refused or error
                else:
                    return found
        raise refused or TypeError(f"Expected {self._expected()}")

    def _expected(self) -> str:
        return " | ".join(
            [struct.__name__ for _, struct in self.candidates] + [plain.__name__ for plain in self._plain[1:]]
        )
