"""The model between a schema and Python: structures, enumerations, aliases, types of members. Reads and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Plain:
    """`str`, `int`, `float`, `bool`, `None` or `Any`."""

    text: str


@dataclass(frozen=True)
class Named:
    """A structure, an enumeration or an alias."""

    name: str


@dataclass(frozen=True)
class Exactly:
    """One of these strings or numbers."""

    values: tuple[str | int, ...]


@dataclass(frozen=True)
class ListOf:
    item: Type


@dataclass(frozen=True)
class MapOf:
    """An object with any names."""

    value: Type


@dataclass(frozen=True)
class TupleOf:
    items: tuple[Type, ...]


@dataclass(frozen=True)
class OneOf:
    items: tuple[Type, ...]


Type: TypeAlias = Plain | Named | Exactly | ListOf | MapOf | TupleOf | OneOf

ANY = Plain("Any")
NONE = Plain("None")


@dataclass(frozen=True)
class Member:
    name: str
    """On the wire."""
    type: Type
    optional: bool = False
    three_states: bool = False
    """Absent and null differ: absent is UNSET, null is None."""


@dataclass(frozen=True)
class Structure:
    name: str
    members: tuple[Member, ...]
    base: str | None = None
    """The structure that it extends. `members` are the further ones."""
    tag: tuple[str, str] | None = None
    """A member that always has this one value."""


@dataclass(frozen=True)
class Enumeration:
    name: str
    plain: str
    """`str` or `int`."""
    values: tuple[tuple[str, str | int], ...]


@dataclass
class Model:
    structures: dict[str, Structure] = field(default_factory=dict)
    enumerations: dict[str, Enumeration] = field(default_factory=dict)
    aliases: dict[str, Type] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)
    """Aliases that the schema does not name."""

    @property
    def public(self) -> set[str]:
        return (self.structures.keys() | self.enumerations.keys() | self.aliases.keys()) - self.unnamed

    def all_members(self, name: str) -> tuple[Member, ...]:
        """With those of what it extends."""
        structure = self.structures[name]
        inherited = self.all_members(structure.base) if structure.base else ()
        return inherited + structure.members

    def tag_of(self, name: str) -> tuple[str, str] | None:
        structure = self.structures[name]
        return structure.tag or (self.tag_of(structure.base) if structure.base else None)

    def mentioned(self, name: str) -> set[str]:
        """The names that a definition refers to itself."""
        if name in self.aliases:
            return names_in(self.aliases[name])
        if name in self.enumerations:
            return set()
        structure = self.structures[name]
        found = {structure.base} if structure.base else set()
        return found.union(*(names_in(member.type) for member in structure.members))

    def reachable(self, *names: str) -> set[str]:
        """These names and all that they lead to."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self.mentioned(name)
        return found

    def follow(self, of: Type) -> Type:
        """What an alias stands for, and any other type itself."""
        while isinstance(of, Named) and of.name in self.aliases:
            of = self.aliases[of.name]
        return of


def names_in(of: Type) -> set[str]:
    match of:
        case Named(name):
            return {name}
        case ListOf(inner) | MapOf(inner):
            return names_in(inner)
        case TupleOf(items) | OneOf(items):
            return set[str]().union(*map(names_in, items))
        case _:
            return set()


def one_of(*items: Type) -> Type:
    """The union, flat and without repetitions; the only type, if there is one. What a plain type covers is left out."""
    flat: list[Type] = []
    for item in items:
        for part in item.items if isinstance(item, OneOf) else (item,):
            if part not in flat:
                flat.append(part)
    if ANY in flat:
        return ANY
    flat = [part for part in flat if not (isinstance(part, Exactly) and Plain(_plain(part)) in flat)]
    literals = [part for part in flat if isinstance(part, Exactly)]
    if len(literals) > 1:
        merged = Exactly(tuple(value for part in literals for value in part.values))
        flat = [merged, *(part for part in flat if part not in literals)]
    if NONE in flat:
        flat = [*(part for part in flat if part != NONE), NONE]
    return flat[0] if len(flat) == 1 else OneOf(tuple(flat))


def _plain(of: Exactly) -> str:
    return type(of.values[0]).__name__


def without_none(of: Type) -> Type:
    return one_of(*(item for item in of.items if item != NONE)) if isinstance(of, OneOf) else of
