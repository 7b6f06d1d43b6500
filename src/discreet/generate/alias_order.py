"""Orders aliases so that each follows the aliases that it refers to, since some languages read them in order.

An alias that refers to itself through other aliases alone can't be written in order: there, the reference becomes `ANY_TYPE`.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ir import ANY_TYPE, Alias, Type, TypeReference, map_references, references


def in_order(aliases: Iterable[Alias]) -> tuple[Alias, ...]:
    """Return the aliases, each after those that it refers to. An order that is right already is kept."""
    return tuple(_Sorter({alias.name: alias for alias in aliases}).sort())


class _Sorter:
    """One depth-first walk along the references between aliases."""

    def __init__(self, aliases: dict[str, Alias]) -> None:
        self._aliases = aliases
        self._done: dict[str, Alias] = {}
        self._path: set[str] = set()

    def sort(self) -> Iterable[Alias]:
        for alias in self._aliases.values():
            self._visit(alias)
        return self._done.values()

    def _visit(self, alias: Alias) -> None:
        if alias.name in self._done:
            return
        self._path.add(alias.name)
        tp = map_references(alias.type, self._without_cycle)
        for name in references(tp):
            if name in self._aliases:
                self._visit(self._aliases[name])
        self._path.remove(alias.name)
        self._done[alias.name] = Alias(alias.name, alias.description, tp)

    def _without_cycle(self, reference: TypeReference) -> Type:
        return ANY_TYPE if reference.name in self._path else reference
