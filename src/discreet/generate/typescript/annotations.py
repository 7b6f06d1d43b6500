"""Types as TypeScript expressions, and the aliases that a module must declare for them. Declares nothing."""

from __future__ import annotations

from typing import Final, assert_never, final

import msgspec

from ..ir import ArrayType, LiteralType, MapType, ScalarKind, ScalarType, TupleType, Type, TypeReference, UnionType
from .syntax import constant


class TextAlias(msgspec.Struct, frozen=True):
    """The alias for a kind of value that JSON has no type for."""

    name: str
    type: str
    description: str


TEXT_ALIASES: Final[dict[ScalarKind, TextAlias]] = {
    "bytes": TextAlias("Base64", "string", "Bytes in base64."),
    "date": TextAlias("DateText", "string", "A day, as in `2026-07-14`."),
    "datetime": TextAlias(
        "DateTimeText", "string", "A moment in the form of RFC 3339; without an offset if it has no time zone."
    ),
    "decimal": TextAlias("DecimalText", "string | number", "A decimal number. As text it keeps all its digits."),
    "duration": TextAlias(
        "DurationText", "string", "A duration in the form of ISO 8601, in days or less: `P1DT2H30M`."
    ),
    "time": TextAlias("TimeText", "string", "A time of day, as in `12:30:00`."),
    "uuid": TextAlias("UuidText", "string", "A UUID."),
}

_SCALARS: Final[dict[ScalarKind, str]] = {
    "any": "unknown",
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "string",
    **{kind: alias.name for kind, alias in TEXT_ALIASES.items()},
}


@final
class Annotations:
    """Writes the types of one module. `used` collects the kinds of scalars, so that their aliases can be declared."""

    def __init__(self) -> None:
        self.used: set[ScalarKind] = set()

    def annotation(self, tp: Type) -> str:
        """Return a type as an expression."""
        return " | ".join(self.alternatives(tp))

    def optional_item(self, tp: Type) -> str:
        """Return the type of a tuple's item that may be left out."""
        written = self.annotation(tp)
        needs_brackets = len(self.alternatives(tp)) > 1 or written.startswith("readonly ")
        return f"({written})?" if needs_brackets else f"{written}?"

    def alternatives(self, tp: Type) -> list[str]:
        """Return the members of a union, each as an expression; any other type is its only member."""
        match tp:
            case ScalarType():
                self.used.add(tp.kind)
                return [_SCALARS[tp.kind]]
            case TypeReference():
                return [tp.name]
            case LiteralType():
                return [constant(value) for value in tp.values]
            case ArrayType():
                items = self.alternatives(tp.items)
                is_simple = len(items) == 1 and not items[0].startswith("readonly ")
                return [f"readonly {items[0]}[]" if is_simple else f"readonly ({' | '.join(items)})[]"]
            case TupleType():
                return [f"readonly [{', '.join(map(self.annotation, tp.items))}]"]
            case MapType(keys=()):
                return [f"{{ readonly [name: string]: {self.annotation(tp.values)} }}"]
            case MapType():
                keys = self.annotation(LiteralType(tp.keys))
                return [f"{{ readonly [name in {keys}]?: {self.annotation(tp.values)} }}"]
            case UnionType():
                written = (part for member in tp.members for part in self.alternatives(member))
                return list(dict.fromkeys(written))
            case _:
                assert_never(tp)
