"""Unions as msgspec can decode them: members that it can't tell apart become one wider type. Writes no code.

By the JSON type of a value msgspec chooses among at most one type for arrays, one for objects and one for texts. Only
tagged records and literals may stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..ir import (
    ANY_TYPE,
    ArrayType,
    Client,
    LiteralType,
    MapType,
    Record,
    ScalarKind,
    ScalarType,
    TupleType,
    Type,
    TypeReference,
    UnionType,
)

_TEXTS: Final[frozenset[ScalarKind]] = frozenset(
    {"string", "bytes", "date", "datetime", "decimal", "duration", "time", "uuid"}
)
_STRING: Final = ScalarType("string")


class DecodableUnions:
    """Widens the unions of one client."""

    def __init__(self, client: Client) -> None:
        self._records: Mapping[str, Record] = {record.name: record for record in client.records}
        self._aliases: Mapping[str, Type] = {alias.name: alias.type for alias in client.aliases}

    def members(self, union: UnionType) -> tuple[Type, ...]:
        """The members of the union, or wider ones in their place. Those that can be told apart stay as they are."""
        flat = tuple(dict.fromkeys(part for member in union.members for part in self._parts(member)))
        wider = self._arrays(self._objects(_texts(flat)))
        return union.members if wider == flat else tuple(dict.fromkeys(wider))

    def _parts(self, member: Type) -> Iterator[Type]:
        match member:
            case TypeReference(name=name) if name in self._aliases:
                yield from self._parts(self._aliases[name])
            case UnionType(members=members):
                for part in members:
                    yield from self._parts(part)
            case _:
                yield member

    def _objects(self, members: tuple[Type, ...]) -> tuple[Type, ...]:
        found = [member for member in members if self._is_object(member)]
        if len(found) < 2 or self._are_tagged(found):
            return members
        return _replaced(members, found, MapType(ANY_TYPE))

    def _arrays(self, members: tuple[Type, ...]) -> tuple[Type, ...]:
        found = [member for member in members if self._is_array(member)]
        beside_record = any(self._is_object(member) and self._record(member) is not None for member in members)
        if len(found) > 1 and (beside_record or not self._are_tagged(found)):
            return _replaced(members, found, ArrayType(ANY_TYPE))
        record = self._record(found[0]) if len(found) == 1 else None
        if record is None or not beside_record:
            return members
        return _replaced(members, found, _as_array(record))

    def _record(self, member: Type) -> Record | None:
        return self._records.get(member.name) if isinstance(member, TypeReference) else None

    def _is_object(self, member: Type) -> bool:
        record = self._record(member)
        return isinstance(member, MapType) if record is None else not record.positional

    def _is_array(self, member: Type) -> bool:
        record = self._record(member)
        return isinstance(member, ArrayType | TupleType) if record is None else record.positional

    def _are_tagged(self, members: list[Type]) -> bool:
        """Whether all are records with different values of one tag."""
        tags = [record.tag for record in map(self._record, members) if record is not None and record.tag is not None]
        same_place = len({(tag.wire_name, type(tag.value)) for tag in tags}) == 1
        return len(tags) == len(members) == len({tag.value for tag in tags}) and same_place


def _texts(members: tuple[Type, ...]) -> tuple[Type, ...]:
    texts = [member for member in members if isinstance(member, ScalarType) and member.kind in _TEXTS]
    literals = [m for m in members if isinstance(m, LiteralType) and any(isinstance(value, str) for value in m.values)]
    if len(texts) > 1 or (literals and texts and texts != [_STRING]):
        return _replaced(members, texts, _STRING)
    return members


def _as_array(record: Record) -> Type:
    if record.tag is None and all(field.required for field in record.fields):
        return TupleType(tuple(field.type for field in record.fields))
    return ArrayType(ANY_TYPE)


def _replaced(members: tuple[Type, ...], found: Sequence[Type], wider: Type) -> tuple[Type, ...]:
    """The members, with one wider type in place of those that were found."""
    first = found[0]
    return tuple(wider if member == first else member for member in members if member == first or member not in found)
