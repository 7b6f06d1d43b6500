"""Types as TypeScript, and the other small parts of its modules, as prettier spells them. Declares nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from .model import Either, Field, Keyed, Many, Named, Places, Scalar, ScalarKind, Type, Values
from .prose import paragraphs

WIDTH: Final = 80
"""What prettier breaks at when nobody tells it otherwise."""

TEXTS: Final[dict[ScalarKind, tuple[str, str, str]]] = {
    "bytes": ("Base64", "string", "Bytes in base64."),
    "date": ("DateText", "string", "A day, as in `2026-07-14`."),
    "datetime": ("DateTimeText", "string", "A moment as RFC 3339 writes it; without an offset where it has no time zone."),
    "decimal": ("DecimalText", "string | number", "A decimal number. As text it keeps all its digits."),
    "duration": ("DurationText", "string", "A duration as ISO 8601 writes it, in days or less: `P1DT2H30M`."),
    "time": ("TimeText", "string", "A time of day, as in `12:30:00`."),
    "uuid": ("UuidText", "string", "A UUID."),
}  # fmt: skip
"""What JSON has no type for: the name, type and description of its alias."""

_SCALARS: Final[dict[ScalarKind, str]] = {
    "any": "unknown",
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "string",
    **{kind: name for kind, (name, _, _) in TEXTS.items()},
}

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def annotation(tp: Type) -> str:
    """A type as an expression."""
    return " | ".join(alternatives(tp))


def alternatives(tp: Type) -> list[str]:
    """The types of a union, each an expression; one for any other type."""
    match tp:
        case Scalar():
            return [_SCALARS[tp.kind]]
        case Named():
            return [tp.name]
        case Values():
            return [literal(value) for value in tp.values]
        case Many():
            items = alternatives(tp.items)
            alone = len(items) == 1 and not items[0].startswith("readonly ")
            return [f"readonly {items[0]}[]" if alone else f"readonly ({' | '.join(items)})[]"]
        case Places():
            return [f"readonly [{', '.join(map(annotation, tp.types))}]"]
        case Keyed(keys=()):
            return [f"{{ readonly [name: string]: {annotation(tp.values)} }}"]
        case Keyed():
            return [f"{{ readonly [name in {annotation(Values(tp.keys))}]?: {annotation(tp.values)} }}"]
        case Either():
            return list(dict.fromkeys(part for inner in tp.types for part in alternatives(inner)))
        case _:
            assert_never(tp)


def literal(value: str | int) -> str:
    """A constant as an expression."""
    return text(value) if isinstance(value, str) else json.dumps(value)


def text(value: str) -> str:
    """A string, in the quotes that need fewer escapes."""
    shown = "".join(json.dumps(char, ensure_ascii=not char.isprintable())[1:-1] for char in value)
    if value.count('"') <= value.count("'"):
        return f'"{shown}"'
    return "'" + shown.replace('\\"', '"').replace("'", "\\'") + "'"


def union(left: str, parts: Sequence[str], *, margin: str = "") -> Iterator[str]:
    """`left` and the union of some types: `export type A =` or `readonly a:`."""
    whole = f"{' | '.join(parts)};"
    if len(f"{margin}{left} {whole}") <= WIDTH or len(parts) == 1:
        yield from _whole(f"{margin}{left} {whole}", margin)
    elif len(f"{margin}  {whole}") <= WIDTH:
        yield from (margin + left, f"{margin}  {whole}")
    else:
        yield margin + left
        yield from (f"{margin}  | {part}" for part in parts[:-1])
        yield f"{margin}  | {parts[-1]};"


def _whole(line: str, margin: str) -> Iterator[str]:
    """A line that is no union; one that is too long breaks within its braces, if it has some."""
    before, brace, rest = line.partition("{ ")
    inner, end, after = rest.rpartition(" }")
    if len(line) <= WIDTH or not (brace and end):
        yield line
    else:
        yield from (f"{before}{{", f"{margin}  {inner};", f"{margin}}}{after}")


def comment(*blocks: str | Sequence[str], margin: str = "") -> list[str]:
    """The lines of a JSDoc comment; none where nothing is to be said."""
    found = [line.replace("*/", "*\\/") for line in paragraphs(*blocks, width=WIDTH - len(margin) - len(" *  */"))]
    if not found:
        return []
    whole = f"{margin}/** {found[0]} */"
    if len(found) == 1 and len(whole) <= WIDTH:
        return [whole]
    return [f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in found), f"{margin} */"]


def members(fields: Sequence[Field], *, margin: str = "  ") -> Iterator[str]:
    """The members of an interface."""
    for field in fields:
        name = field.wire if _IDENTIFIER.fullmatch(field.wire) else text(field.wire)
        yield from comment(field.full_doc, margin=margin)
        left = f"readonly {name}{'' if field.required else '?'}:"
        yield from union(left, alternatives(field.type), margin=margin)
