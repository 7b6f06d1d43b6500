"""The types that the operations of an import share: each read once for each direction that it is needed in, and named.

Reads none itself: `reader` does, as long as there are some in the queue.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, final

from ....daemon.schemas.cycles import circles
from ...complexity import DEEPEST_IN_PLACE, MOST_IN_PLACE, RESCANNING
from ...model import JsonSchema, Schema
from ..documents.nodes import Node

Direction: TypeAlias = Literal["input", "output"]

Place: TypeAlias = Literal["inner", "all", "any"]
"""Where a reference stands in a schema: in one for a part of the value, or in one for the value itself, which must match it,
or not necessarily."""

DEFS: Final = "#/$defs/"
_COMPONENT: Final = ("components", "schemas")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARACTERS: Final = 100


@final
class Target:
    """A place that references lead to. `name` is that of the type, and `trimmed_name` that of its common part."""

    __slots__ = ("name", "node", "trimmed_name")

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = name
        self.trimmed_name = ""


@final
class SharedType:
    """One form of a type: for one direction; and `trimmed`, as the common part of the alternatives that extend it.

    `reference` is the schema that is nothing but a reference to it; `uses` are all places that refer to it. `relaxed` says that
    this form differs from that of the other direction by itself. `edges` lead to the types that it needs. `applied` is how many
    schemas of its own apply to a value itself, `depth` how far they are nested, and `rescans` whether one has `unevaluated...`.
    """

    __slots__ = (
        "applied", "depth", "direction", "edges", "ref", "reference", "relaxed", "rescans", "schema", "target", "trimmed", "uses",
    )  # fmt: skip

    def __init__(self, target: Target, direction: Direction, ref: str, *, trimmed: bool) -> None:
        self.target = target
        self.direction: Direction = direction
        self.trimmed = trimmed
        self.ref = ref
        self.reference: JsonSchema = {"$ref": ref}
        self.schema: Schema = True
        self.uses: list[tuple[dict[str, Any], str]] = [(self.reference, "$ref")]
        self.forget()

    def forget(self) -> None:
        """Before it is read again."""
        self.relaxed = self.rescans = False
        self.applied = self.depth = 0
        self.edges: list[tuple[SharedType, Place]] = []

    def count(self, raw: Mapping[str, Any], depth: int) -> None:
        """Says that one of its schemas applies to a value itself."""
        self.applied += 1
        self.depth = max(self.depth, depth)
        self.rescans = self.rescans or not RESCANNING.isdisjoint(raw)


@final
class SharedTypes:
    """All of one import. References are handed out before it is known which forms of a type are the same; `finish` mends them."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._targets: dict[tuple[str, str], Target] = {}
        self._forms: dict[tuple[Target, Direction, bool], SharedType] = {}
        self._by_ref: dict[str, SharedType] = {}
        self._names: set[str] = set()
        self._reserved = {_name_of(name) for name in reserved}
        self._counts: dict[str, int] = {}
        self.queue: deque[SharedType] = deque()
        self.all_circles: dict[Target, int] = {}
        self.any_circles: dict[Target, int] = {}
        self.circles: dict[Target, int] = {}

    def form(self, node: Node, direction: Direction, *, trimmed: bool = False) -> SharedType:
        """The form of the type at a node. It is queued when it is asked for the first time."""
        place = (node.document.uri, node.pointer)
        target = self._targets.get(place)
        if target is None:
            target = self._targets[place] = Target(node, self._name(node))
        form = self._forms.get((target, direction, trimmed))
        if form is None:
            stem = self._stem(target, trimmed=trimmed)
            ref = DEFS + (self._unique(f"{stem}_input") if direction == "input" else stem)
            form = self._forms[target, direction, trimmed] = SharedType(target, direction, ref, trimmed=trimmed)
            self._by_ref[ref] = form
            self.queue.append(form)
        return form

    def use(self, form: SharedType, holder: dict[str, Any], member: str) -> None:
        """Says that a member of an object is the reference to a form."""
        holder[member] = form.ref
        form.uses.append((holder, member))

    def extended(self, schema: Schema, words: Mapping[str, Any]) -> Schema:
        """A schema with more words, where it does not have them. Never changes the one that is given."""
        if schema is False:
            return schema
        given: JsonSchema = {} if schema is True else schema
        more = {word: value for word, value in words.items() if word not in given}
        if not more:
            return schema
        copy = {**given, **more}
        self.track(copy)
        return copy

    def track(self, copy: JsonSchema) -> None:
        """Says that an object holds a reference that was copied."""
        form = self._by_ref.get(copy.get("$ref", ""))
        if form is not None:
            self.use(form, copy, "$ref")

    def find_circles(self) -> list[SharedType]:
        """The forms whose references lead back to them before any value is met. They must be read again, without these."""
        self.circles = circles(self._graph({"all", "any"}))
        if not self.circles:
            return []
        self.all_circles = circles(self._graph({"all"}))
        self.any_circles = circles(self._graph({"any"}))
        found = [form for form in self._forms.values() if form.target in self.circles]
        for form in found:
            form.forget()
        return found

    def _graph(self, places: set[Place]) -> dict[Target, set[Target]]:
        graph: dict[Target, set[Target]] = {}
        for form in self._forms.values():
            graph.setdefault(form.target, set()).update(other.target for other, place in form.edges if place in places)
        return graph

    def finish(self) -> dict[str, Schema]:
        """All types by name. A type that is the same in both directions stands there once."""
        differing = self._differing()
        definitions: dict[str, Schema] = {}
        for (target, direction, trimmed), form in self._forms.items():
            other = self._forms.get((target, "output", trimmed)) if direction == "input" else None
            ref = form.ref
            if direction == "input" and (other is None or target not in differing):
                ref = DEFS + self._stem(target, trimmed=trimmed)
            for holder, member in form.uses:
                holder[member] = ref
            if other is None or ref == form.ref:
                definitions[ref.removeprefix(DEFS)] = form.schema
        return definitions

    def find_unbounded(self) -> set[str]:
        """The names of types that can't be checked: they apply too many schemas to one part of a value, as `complexity` counts
        them. Counts references alone, so it is little work. What it misses is found when a check is made.
        """
        counts: dict[SharedType, _Count] = {}
        for start in self._forms.values():
            path, entered = [(start, _in_place(start))], {start}
            while path:
                form, ahead = path[-1]
                found = next((each for each in ahead if each not in counts and each not in entered), None)
                if found is not None:
                    path.append((found, _in_place(found)))
                    entered.add(found)
                    continue
                path.pop()
                if form not in counts:
                    counts[form] = _count(form, [counts[each] for each in _in_place(form) if each in counts])
        return {
            form.ref.removeprefix(DEFS)
            for form, (applied, marked, depth) in counts.items()
            if max(applied, marked) > MOST_IN_PLACE or depth > DEEPEST_IN_PLACE
        }

    def _differing(self) -> set[Target]:
        needed_by: dict[Target, set[Target]] = {}
        for form in self._forms.values():
            for other, _ in form.edges:
                needed_by.setdefault(other.target, set()).add(form.target)
        waiting = [form.target for form in self._forms.values() if form.relaxed]
        differing = set(waiting)
        while waiting:
            for target in needed_by.get(waiting.pop(), ()):
                if target not in differing:
                    differing.add(target)
                    waiting.append(target)
        return differing

    def _stem(self, target: Target, *, trimmed: bool) -> str:
        if not trimmed:
            return target.name
        target.trimmed_name = target.trimmed_name or self._unique(f"{target.name}_base")
        return target.trimmed_name

    def _name(self, node: Node) -> str:
        tokens: list[str] = []
        path = node.path
        while path is not None:
            path, token = path
            tokens.append(token)
        tokens = [token for token in reversed(tokens) if token != "$defs"]
        if len(tokens) == 3 and (tokens[0], tokens[1]) == _COMPONENT:
            plain = _name_of(tokens[2])
            if not node.document.label:
                return self._unique(plain, own=True)
        elif tokens[:1] == ["components"] and tokens[1:2] != ["schemas"] and tokens[-1] == "schema":
            plain = _name_of("_".join(tokens[1:3]))
        elif tuple(tokens[:2]) == _COMPONENT:
            plain = _name_of("_".join(tokens[2:]))
        else:
            stem = node.document.label.rpartition("/")[2].partition(".")[0]
            plain = _name_of("_".join(([stem] if stem else []) + tokens))
        return self._unique(plain)

    def _unique(self, name: str, *, own: bool = False) -> str:
        """The name with a number, if it is taken, or another type's."""
        unique = name
        while unique in self._names or (not own and unique in self._reserved):
            own = False
            self._counts[name] = self._counts.get(name, 1) + 1
            unique = f"{name}_{self._counts[name]}"
        self._names.add(unique)
        return unique


_Count: TypeAlias = tuple[int, int, int]
"""The schemas that a type applies to a value; those that look once more for what was evaluated; how far all are nested."""


def _in_place(form: SharedType) -> Iterator[SharedType]:
    return (other for other, place in form.edges if place != "inner")


def _count(form: SharedType, referred: list[_Count]) -> _Count:
    """That of one form, by those of all references in it. Stays small, however often they double."""
    applied = form.applied + sum(each[0] for each in referred)
    marked = applied + sum(each[1] for each in referred)
    depth = form.depth + max((each[2] for each in referred), default=0)
    most = MOST_IN_PLACE + 1
    return min(applied + (marked if form.rescans else 0), most), min(marked if form.rescans else applied, most), depth


def _name_of(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)[-_NAME_CHARACTERS:] or "_"
