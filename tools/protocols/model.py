"""The model between a schema and Python: structures, enumerations, aliases and types of members; and Python's names for those of
the wire. Writes nothing.
"""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias  # Any: a schema is JSON

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+")


def snake(name: str) -> str:
    """`textDocument` → `text_document`, `io.example/clientInfo` → `client_info`, `_meta` → `meta`, `from` → `from_`."""
    found = "_".join(_WORDS.findall(name.rpartition("/")[2])).lower()
    return f"{found}_" if keyword.iskeyword(found) or found in {"self"} else found


def camel(name: str) -> str:
    """What msgspec makes of a name with `rename="camel"`."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part.title() for part in rest)


def constant(name: str) -> str:
    """`RefactorExtract` → `REFACTOR_EXTRACT`, `c++` → `C_PLUS_PLUS`, `LaTeX` → `LATEX`."""
    name = name.replace("+", " Plus ").replace("#", " Sharp ").replace("TeX", "Tex")
    words = "_".join(_WORDS.findall(name)).upper()
    return words if words and not words[0].isdigit() else f"N_{words}"


def pascal(name: str) -> str:
    """`agent_message_chunk` → `AgentMessageChunk`."""
    return "".join(word[0].upper() + word[1:] for word in _WORDS.findall(name.rpartition("/")[2]))


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


def load(path: Path) -> dict[str, Any]:
    """The schema in a file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
