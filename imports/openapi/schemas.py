"""Reads the schemas of OpenAPI as JSON Schema 2020-12, whose references lead to the shared types of the import.

What a schema says is kept: other keywords, alternatives and discriminators stay as they are. A keyword with a value that it can't
have is left out, and a reference that leads nowhere accepts anything; a note says so. Parts that stay the same are not copied.

The types that operations share are read once for each direction that they are needed in, and named. References are handed out
before it is known which forms of a type are the same; `finish` mends them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, final

from msgspec import UNSET, UnsetType

from ...schemas.cycles import circles
from ..archive import references
from ..arguments import UniqueNames
from ..complexity import DEEPEST_IN_PLACE, MOST_IN_PLACE, RESCANNING
from ..model import JsonSchema, Schema
from .document import Node, PartError, base_of, type_name
from .keywords import (
    APPLICATORS,
    CHECKS,
    DROPPED,
    SPOKEN,
    Place,
    as_written_today,
    from_older_drafts,
    is_pattern,
    read_types,
    with_null,
)
from .parsing import Path, quoted

Direction: TypeAlias = Literal["input", "output"]

DEFS: Final = "#/$defs/"
_MARKS: Final[Mapping[Direction, str]] = {"input": "readOnly", "output": "writeOnly"}
"""Members so marked need not be there: they are never sent in this direction."""

_COMPONENT: Final = ["components", "schemas"]
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARACTERS: Final = 100

_MAX_SCHEMAS: Final = 50
"""How deep schemas may be nested in one that is no reference."""

_MAX_BRANCHES: Final = 50
"""In how many branches of `allOf` the declaration of a required member is looked for."""

_LARGE: Final = ("properties", "patternProperties", "allOf", "anyOf", "oneOf", "prefixItems")
_MANY: Final = 20
"""An `enum` of more values makes a schema large."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

_LEADS_BACK: Final = "refers to the type that it is in before it says anything of the value; left out"


@final
class Target:
    """A place that references lead to. `name` is that of the type, and `trimmed_name` that of its common part."""

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
        """Forget what was read, which is read again."""
        self.relaxed = self.rescans = False
        self.applied = self.depth = 0
        self.edges: list[tuple[SharedType, Place]] = []

    def in_place(self) -> Iterator[SharedType]:
        """Yield the types that apply to the value itself."""
        return (other for other, place in self.edges if place != "inner")


@final
class SchemaReader:
    """Reads all schemas of one import. `reserved` are names that only types called so may have."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = {_name_of(name) for name in reserved}
        self._names = UniqueNames(self._reserved)
        self._targets: dict[tuple[str, str], Target] = {}
        self._forms: dict[tuple[Target, Direction, bool], SharedType] = {}
        self._by_ref: dict[str, SharedType] = {}
        self._queue: deque[SharedType] = deque()
        self._circles: dict[Target, int] = {}
        self._all_circles: dict[Target, int] = {}
        self._any_circles: dict[Target, int] = {}

    def read(self, node: Node, direction: Direction, *, shared: bool = False) -> Schema:
        """Return the schema at a node. A large one becomes a shared type if it stands in what is `shared` by operations.

        Raises `PartError` if it is nothing but a reference, and that leads nowhere.
        """
        if isinstance(node.value, dict) and isinstance(node.value.get("$ref"), str):
            node.followed()
        elif not isinstance(node.value, dict | bool):
            raise node.wrong(f"a schema must be an object or a boolean, not {type_name(node.value)}")
        if shared and _is_large(node.value):
            return self.form(node, direction).reference
        return _Reading(self, node, direction, None).schema(node.value, node.path)

    def extended(self, schema: Schema, words: Mapping[str, Any]) -> Schema:
        """Return a schema with more words, where it does not have them. Never changes the one that is given."""
        if schema is False:
            return schema
        given: JsonSchema = {} if schema is True else schema
        more = {word: value for word, value in words.items() if word not in given}
        if not more:
            return schema
        copy = {**given, **more}
        self.track(copy)
        return copy

    def finish(self) -> dict[str, Schema]:
        """Return all shared types that were referred to, by name. One that is the same in both directions stands there once."""
        self._read_queued()
        self._queue.extend(self._find_circles())
        self._read_queued()
        differing = self._differing()
        definitions: dict[str, Schema] = {}
        for (target, direction, trimmed), form in self._forms.items():
            is_second = direction == "input" and (target, "output", trimmed) in self._forms
            if direction == "input" and not (is_second and target in differing):
                form.ref = DEFS + self._stem(target, trimmed=trimmed)
            for holder, member in form.uses:
                holder[member] = form.ref
            if not is_second or target in differing:
                definitions[form.ref.removeprefix(DEFS)] = form.schema
        return definitions

    def find_unbounded(self, definitions: Mapping[str, Schema]) -> set[str]:
        """Return the names of shared types, as `finish` gives them, that can't be checked, and of those that need these.

        They apply too many schemas to one part of a value, as `complexity` counts them. Counts references alone, so it is little
        work. What it misses is found when a check is made.
        """
        counts: dict[SharedType, tuple[int, int, int]] = {}
        for start in self._forms.values():
            path, entered = [(start, start.in_place())], {start}
            while path:
                form, ahead = path[-1]
                found = next((each for each in ahead if each not in counts and each not in entered), None)
                if found is not None:
                    path.append((found, found.in_place()))
                    entered.add(found)
                    continue
                path.pop()
                if form not in counts:
                    counts[form] = _count(form, counts)
        unbounded = {
            form.ref.removeprefix(DEFS)
            for form, (applied, marked, depth) in counts.items()
            if max(applied, marked) > MOST_IN_PLACE or depth > DEEPEST_IN_PLACE
        }
        unbounded &= definitions.keys()
        if not unbounded:
            return unbounded
        needs = {name: set(references(schema)) for name, schema in definitions.items()}
        return _with_users(unbounded, needs)

    # -- shared types ------------------------------------------------------------------------------------------

    def form(self, node: Node, direction: Direction, *, trimmed: bool = False) -> SharedType:
        """Return the form of the type at a node. It is queued when it is asked for the first time."""
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
            self._queue.append(form)
        return form

    def track(self, copy: JsonSchema) -> None:
        """Remember an object with a copied reference, which `finish` mends, too."""
        form = self._by_ref.get(copy.get("$ref", ""))
        if form is not None:
            form.uses.append((copy, "$ref"))

    def same_circle(self, place: Place | None, one: Target, other: Target) -> bool:
        """Whether two types lead to each other before any value is met, by references in `place` alone if it is given."""
        found = {"all": self._all_circles, "any": self._any_circles}.get(place or "", self._circles)
        return one in found and found.get(other) == found[one]

    def _read_queued(self) -> None:
        while self._queue:
            form = self._queue.popleft()
            node = form.target.node
            form.schema = _Reading(self, node, form.direction, form).schema(node.value, node.path)

    def _find_circles(self) -> list[SharedType]:
        """The forms whose references lead back to them before any value is met. They must be read again, without these."""
        self._circles = circles(self._graph("all", "any"))
        if not self._circles:
            return []
        self._all_circles = circles(self._graph("all"))
        self._any_circles = circles(self._graph("any"))
        found = [form for form in self._forms.values() if form.target in self._circles]
        for form in found:
            form.forget()
        return found

    def _graph(self, *places: Place) -> dict[Target, set[Target]]:
        graph: dict[Target, set[Target]] = {}
        for form in self._forms.values():
            graph.setdefault(form.target, set()).update(other.target for other, place in form.edges if place in places)
        return graph

    def _differing(self) -> set[Target]:
        """The types whose forms differ by direction, by themselves or by what they refer to."""
        relaxed = {form.target for form in self._forms.values() if form.relaxed}
        return _with_users(relaxed, self._graph("inner", "all", "any")) if relaxed else relaxed

    def _stem(self, target: Target, *, trimmed: bool) -> str:
        if not trimmed:
            return target.name
        target.trimmed_name = target.trimmed_name or self._unique(f"{target.name}_base")
        return target.trimmed_name

    def _name(self, node: Node) -> str:
        tokens = [token for token in node.tokens if token not in ("$defs", "definitions")]
        document = node.document
        if document.stem and not document.label:  # a schema that is a document of its own
            return self._unique(_name_of(".".join([document.stem, *tokens])))
        if tokens[:2] == _COMPONENT:
            return self._unique(_name_of("_".join(tokens[2:])), own=len(tokens) == 3 and not document.label)
        if tokens[:1] == _COMPONENT[:1] and tokens[1:2] != _COMPONENT[1:] and tokens[-1] == "schema":
            return self._unique(_name_of("_".join(tokens[1:3])))
        return self._unique(_name_of("_".join(([document.stem] if document.stem else []) + tokens)))

    def _unique(self, name: str, *, own: bool = False) -> str:
        """The name with a number, if it is taken, or another type's."""
        if own and name in self._reserved:
            self._reserved.remove(name)
            return name
        return self._names.add(name)


def _is_large(raw: Any) -> bool:
    while isinstance(raw, dict) and "$ref" not in raw:
        if any(word in raw for word in _LARGE) or (isinstance(raw.get("enum"), list) and len(raw["enum"]) > _MANY):
            return True
        raw = raw.get("items")
    return False


def _with_users(found: set[Any], needs: Mapping[Any, set[Any]]) -> set[Any]:
    """These, and all that need one of them, directly or through others."""
    needed_by: dict[Any, list[Any]] = {}
    for user, needed in needs.items():
        for each in needed:
            needed_by.setdefault(each, []).append(user)
    waiting = [*found]
    while waiting:
        more = [user for user in needed_by.get(waiting.pop(), ()) if user not in found]
        found.update(more)
        waiting += more
    return found


def _count(form: SharedType, counts: Mapping[SharedType, tuple[int, int, int]]) -> tuple[int, int, int]:
    """The schemas that a type applies to a value; those that look once more for what was evaluated; how far all are nested.

    By those of all references in it. Stays small, however often they double.
    """
    referred = [counts[each] for each in form.in_place() if each in counts]
    applied = form.applied + sum(each[0] for each in referred)
    marked = applied + sum(each[1] for each in referred)
    depth = form.depth + max((each[2] for each in referred), default=0)
    most = MOST_IN_PLACE + 1
    return min(applied + (marked if form.rescans else 0), most), min(marked if form.rescans else applied, most), depth


def _name_of(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)[-_NAME_CHARACTERS:] or "_"


class _Circle(Exception):
    """A reference leads back to the type that is being read, in an alternative."""


@final
class _Reading:
    """The reading of one schema, with all that it holds. `form` is the shared type that it is, if it is one."""

    def __init__(self, owner: SchemaReader, node: Node, direction: Direction, form: SharedType | None) -> None:
        self._owner = owner
        self._document = node.document
        self._base = node.document.documents.base_at(node)
        self._depth = 0
        self._direction: Direction = direction
        self._form = form

    def schema(self, raw: Any, path: Path, place: Place = "all", around: JsonSchema | None = None) -> Schema:
        """Return one schema. `around` is the one that has it in its `allOf`."""
        if type(raw) is not dict:
            if isinstance(raw, bool):
                return raw
            self._changed(path, f"a schema must be an object or a boolean, not {type_name(raw)}; accepts anything")
            return True
        form = self._form
        if form is not None and place != "inner":
            form.applied += 1
            form.depth = max(form.depth, self._depth + 1)
            form.rescans = form.rescans or not RESCANNING.isdisjoint(raw)
        if self._depth == _MAX_SCHEMAS:
            self._changed(path, f"nested in more than {_MAX_SCHEMAS} schemas; accepts anything")
            return True
        outer = self._base
        self._depth += 1
        if "$id" in raw and not self._document.is_old:
            self._base = base_of(raw, outer)
        try:
            return self._object(raw, path, place, around)
        finally:
            self._base = outer
            self._depth -= 1

    def _object(self, raw: JsonSchema, path: Path, place: Place, around: JsonSchema | None) -> Schema:
        ref = next((raw[word] for word in _REFERENCES if isinstance(raw.get(word), str)), None)
        if ref is not None and self._document.is_old:  # what stands beside it has no meaning, unless it is for people
            spoken = {word: value for word, value in raw.items() if word in SPOKEN and self._document.stem}
            return self._owner.extended(self._reference(ref, path, place), spoken)
        raw = from_older_drafts(raw)
        read = _changed_only(raw, {word: self._keyword(word, path, place, raw, around) for word in raw})
        words = as_written_today(read, raw)
        result: Schema = words
        if ref is not None:
            rest = {word: value for word, value in words.items() if word not in _REFERENCES}
            result = self._owner.extended(self._reference(ref, path, place), rest)
        if raw.get("nullable") is True and isinstance(result, dict):
            nullable = with_null(result)
            if "$ref" in result:
                self._owner.track(nullable["anyOf"][0])
            return nullable
        return result

    def _keyword(
        self, word: str, path: Path, place: Place, raw: JsonSchema, around: JsonSchema | None
    ) -> Any:  # Any: JSON, or UNSET for nothing
        value, path = raw[word], (path, word)
        if word in APPLICATORS:
            return self._applied(word, value, path, place, raw)
        check = CHECKS.get(word)
        if check is not None and not check[0](value):
            return self._left_out(path, f"must be {check[1]}, not {type_name(value)}")
        if word == "pattern" and not is_pattern(value):
            return self._left_out(path, f"{quoted(value)!r} is no regular expression that can be checked")
        if word in DROPPED:
            return UNSET
        match word:
            case "type":
                types = read_types(value)
                return self._left_out(path, f"{quoted(value)!r} is no type") if types is None else types
            case "required":
                return self._required(value, path, raw, around)
            case "discriminator":
                return self._discriminator(value, path)
            case "$ref" | "$dynamicRef" if not isinstance(value, str):
                return self._left_out(path, f"must be a string, not {type_name(value)}")
            case _:
                return value

    # -- schemas in schemas ------------------------------------------------------------------------------------

    def _applied(self, word: str, value: Any, path: Path, place: Place, raw: JsonSchema) -> Any:  # Any: JSON, or UNSET
        within = APPLICATORS[word][0]
        if within == "all" or (within == "any" and place != "all"):
            within = place
        try:
            return self._shaped(word, value, path, within, raw)
        except _Circle:
            if within != "any" or place != "all":
                raise
            if self._form is None or not self._form.trimmed:
                self._changed(path, _LEADS_BACK)
            return UNSET

    def _shaped(self, word: str, value: Any, path: Path, place: Place, raw: JsonSchema) -> Any:
        match APPLICATORS[word][1]:
            case "map":
                if type(value) is not dict:
                    return self._left_out(path, f"must be an object, not {type_name(value)}")
                return _changed_only(
                    value, {name: self._member(word, name, each, (path, name), place) for name, each in value.items()}
                )
            case "list":
                if type(value) is not list or not value:
                    return self._left_out(path, "must be an array of schemas, and not empty")
                around = raw if word == "allOf" else None
                schemas = [self.schema(each, (path, str(at)), place, around) for at, each in enumerate(value)]
                return value if all(new is old for new, old in zip(schemas, value, strict=True)) else schemas
            case "one":
                return self.schema(value, path, place)

    def _member(self, word: str, name: str, value: Any, path: Path, place: Place) -> Schema | UnsetType:
        schema = self.schema(value, path, place)
        if word == "patternProperties" and not is_pattern(name):
            return self._left_out(path, f"{quoted(name)!r} is no regular expression that can be checked")
        return schema

    # -- references --------------------------------------------------------------------------------------------

    def _reference(self, ref: str, path: Path, place: Place) -> Schema:
        try:
            node = self._target(ref, path)
        except PartError as exc:
            self._changed((path, "$ref"), f"{exc.reason}; accepts anything")
            return True
        owner, own = self._owner, self._form
        form = owner.form(node, self._direction)
        if own is not None and place != "inner" and owner.same_circle(None, own.target, form.target):
            if place == "any":
                if own.trimmed or owner.same_circle("any", own.target, form.target):
                    raise _Circle
            elif owner.same_circle("all", own.target, form.target):
                self._changed((path, "$ref"), _LEADS_BACK)
                return True
            else:
                form = owner.form(node, self._direction, trimmed=True)
        if own is not None:
            own.edges.append((form, place))
        return form.reference

    def _target(self, ref: str, path: Path) -> Node:
        """Return the target of a reference, behind references that say nothing else."""
        node = Node(self._document, path, None).located(ref, self._base)
        node.followed()
        while isinstance(node.value, dict) and isinstance(node.value.get("$ref"), str):
            if len(node.value) > 1 and not node.document.is_old:
                break
            node = node.located(node.value["$ref"])
        return node

    # -- single keywords ---------------------------------------------------------------------------------------

    def _required(self, value: Any, path: Path, raw: JsonSchema, around: JsonSchema | None) -> Any:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            return self._left_out(path, f"must be an array of names, not {type_name(value)}")
        marks = {name: self._marks(name, raw, around) for name in value}
        names = [name for name, found in marks.items() if _MARKS[self._direction] not in found]
        if self._form is not None and (len(names) < len(value) or any(marks.values())):
            self._form.relaxed = True
        return value if names == value else names

    def _marks(self, name: str, *schemas: JsonSchema | None) -> set[str]:
        """The marks of a member where it is declared: in these schemas, or in the branches of their `allOf`."""
        found: set[str] = set()
        waiting = [Node(self._document, None, each) for each in schemas if each is not None]
        for _ in range(_MAX_BRANCHES):
            if not waiting:
                break
            schema = _followed(waiting.pop())
            members = schema.get("properties")
            own = members.get(name) if members else None
            if own is not None:
                for each in (own.value, _followed(own).value):
                    found.update(mark for mark in _MARKS.values() if isinstance(each, dict) and each.get(mark) is True)
            branches = schema.get("allOf")
            if branches is not None and isinstance(branches.value, list):
                waiting += islice(branches.items(), _MAX_BRANCHES)
        return found

    def _discriminator(self, value: JsonSchema, path: Path) -> Any:
        mapping = value.get("mapping")
        if not isinstance(mapping, dict):
            return value
        mended = dict(mapping)
        for name, ref in mapping.items():
            if not isinstance(ref, str) or not ("#" in ref or "/" in ref):
                continue  # a name of a type, which may be a value of the member too
            try:
                node = self._target(ref, (path, "mapping"))
            except PartError as exc:
                self._changed(((path, "mapping"), name), f"{exc.reason}; stays as it is")
                continue
            form = self._owner.form(node, self._direction)
            if self._form is not None:
                self._form.edges.append((form, "inner"))
            mended[name] = form.ref
            form.uses.append((mended, name))
        return {**value, "mapping": mended}

    def _changed(self, path: Path, reason: str) -> None:
        Node(self._document, path, None).note("changed", reason)

    def _left_out(self, path: Path, reason: str) -> UnsetType:
        self._changed(path, f"{reason}; left out")
        return UNSET


def _followed(node: Node) -> Node:
    try:
        return node.followed()
    except PartError:
        return node


def _changed_only(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new members without those that are UNSET; the old object itself where all are the same."""
    if all(new[name] is value for name, value in old.items()):
        return old
    return {name: value for name, value in new.items() if value is not UNSET}
