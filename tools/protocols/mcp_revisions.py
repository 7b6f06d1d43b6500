"""Which structs and members of MCP's last legacy revision each older one knows.

Older revisions name things otherwise, or do not name them. So definitions are compared from the methods on, member by
member: what stands in the same place is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from json_schema import Schema
from model import ListOf, MapOf, Model, Named, OneOf, Type

Roots = Mapping[str, tuple[Type | None, Type | None]]
"""For each method its params and its result."""


class Comparison:
    """What an older revision knows of the last one."""

    def __init__(self, last: Model, older: Model) -> None:
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        """By the names of the last revision. A struct without a row is unknown."""
        self._last = last
        self._older = older
        self._compared: set[tuple[str, str]] = set()

    def compare_methods(self, last: Roots, older: Roots, always: Mapping[int, set[str]]) -> None:
        """`always` are members that all params (0) have, though the older schema does not repeat them."""
        for method in last.keys() & older.keys():
            for place, (new, old) in enumerate(zip(last[method], older[method], strict=True)):
                if new is not None and old is not None:
                    self._compare(new, old)
                for name in self._structures(new, self._last) if new is not None else ():
                    if old is None or name in self.members:
                        self.members[name] |= always.get(place, set())

    def _compare(self, last: Type, older: Type) -> None:
        ours, theirs = list(self._structures(last, self._last)), list(self._structures(older, self._older))
        for name in ours:
            if name in theirs:
                self._compare_structures(name, name)
            elif len(ours) == len(theirs) == 1:
                self._compare_structures(name, theirs[0])
            elif same := [other for other in theirs if self._same_tag(name, other) and self._holds(name, other)]:
                self._compare_structures(name, same[0])

    def _holds(self, name: str, other: str) -> bool:
        """Whether the structure has all members of the older one."""
        known = {member.name for member in self._last.all_members(name)}
        return {member.name for member in self._older.all_members(other)} <= known

    def _compare_structures(self, name: str, other: str) -> None:
        if (name, other) in self._compared:
            return
        self._compared.add((name, other))
        known = {member.name: member for member in self._older.all_members(other)}
        tag = self._last.tag_of(name)
        self.members[name] |= {tag[0]} if tag else set()
        for member in self._last.all_members(name):
            if member.name in known:
                self.members[name].add(member.name)
                self._compare(member.type, known[member.name].type)

    def _same_tag(self, name: str, other: str) -> bool:
        return self._last.tag_of(name) == self._older.tag_of(other)

    def _structures(self, of: Type, model: Model) -> Iterator[str]:
        """The structures that may stand here, also in lists and maps."""
        match model.follow(of):
            case Named(name) if name in model.structures:
                yield name
            case ListOf(inner) | MapOf(inner):
                yield from self._structures(inner, model)
            case OneOf(items):
                for item in items:
                    yield from self._structures(item, model)
            case _:
                pass


def members_of_all_params(definitions: dict[str, Schema]) -> set[str]:
    params = definitions["Request"]["properties"].get("params", {})
    return set(params.get("properties", {}))
