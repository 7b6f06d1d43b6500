"""Reads the schemas of OpenAPI as JSON Schema 2020-12, whose references lead to the shared types of the import.

What a schema says is kept: other keywords, alternatives and discriminators stay as they are. A keyword with a value that it can't
have is left out, and a reference that leads nowhere accepts anything; a note says so. Parts that stay the same are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, final

from msgspec import UNSET, UnsetType

from ...archive import references
from ...model import JsonSchema, Schema
from ..documents.nodes import Document, Node, PartError, Path, quoted, type_name
from ..documents.references import Documents
from .keywords import (
    APPLICATORS,
    CHECKS,
    DROPPED,
    Applicator,
    is_pattern,
    read_types,
    with_bounds,
    with_encoding,
    with_example,
    with_null,
    with_prefix_items,
)
from .shared import Direction, Place, SharedType, SharedTypes

_MARKS: Final[Mapping[Direction, str]] = {"input": "readOnly", "output": "writeOnly"}
"""Members so marked need not be there: they are never sent in this direction."""

_REFERENCES: Final = ("$ref", "$dynamicRef")

_MAX_SCHEMAS: Final = 50
"""How deep schemas may be nested in one that is no reference."""

_MAX_BRANCHES: Final = 50
"""In how many branches of `allOf` the declaration of a required member is looked for."""


@final
class SchemaReader:
    """Reads all schemas of one import. `note` is told what became of a wrong part: document, place, reason."""

    def __init__(self, documents: Documents, note: Callable[[Document, Path, str], None], *, has_marks: bool) -> None:
        self._documents = documents
        self._note = note
        self._has_marks = has_marks
        components = documents.first.root.get("components")
        schemas = components and components.get("schemas")
        self.types = SharedTypes(schemas.value if schemas and isinstance(schemas.value, dict) else ())
        self._read: dict[tuple[int, Direction], Schema] = {}

    def read(self, node: Node, direction: Direction, *, shared: bool = False) -> Schema:
        """The schema at a node. A large one becomes a shared type if it stands in what is `shared` by operations.

        Raises `PartError` if it is nothing but a reference, and that leads nowhere.
        """
        direction = direction if self._has_marks else "output"  # without marks both are the same
        key = (id(node.value), direction)  # the documents live as long as this
        if key in self._read:
            return self._read[key]
        if isinstance(node.value, dict) and isinstance(node.value.get("$ref"), str):
            self._documents.follow(node)
        elif not isinstance(node.value, dict | bool):
            raise node.wrong(f"a schema must be an object or a boolean, not {type_name(node.value)}")
        if shared and _is_large(node.value):
            schema: Schema = self.types.form(node, direction).reference
        else:
            schema = _Reading(self, node, direction, None).schema(node.value, node.path)
        if isinstance(node.value, dict) and len(node.value) > 1:  # smaller ones are in many places at once (`parsing`)
            self._read[key] = schema
        return schema

    def extended(self, schema: Schema, words: Mapping[str, Any]) -> Schema:
        """A schema with more words, where it does not have them."""
        return self.types.extended(schema, words)

    def finish(self) -> dict[str, Schema]:
        """All shared types that were referred to."""
        self._read_queued()
        self.types.queue.extend(self.types.find_circles())
        self._read_queued()
        return self.types.finish()

    def find_unbounded(self, definitions: Mapping[str, Schema]) -> set[str]:
        """The names of shared types, as `finish` gives them, that can't be checked, and of those that need these."""
        unbounded = self.types.find_unbounded() & definitions.keys()
        if not unbounded:
            return unbounded
        needed_by: dict[str, list[str]] = {}
        for name, schema in definitions.items():
            for other in references(schema):
                needed_by.setdefault(other, []).append(name)
        waiting = [*unbounded]
        while waiting:
            more = [name for name in needed_by.get(waiting.pop(), ()) if name not in unbounded]
            unbounded.update(more)
            waiting += more
        return unbounded

    def _read_queued(self) -> None:
        queue = self.types.queue
        while queue:
            form = queue.popleft()
            node = form.target.node
            form.schema = _Reading(self, node, form.direction, form).schema(node.value, node.path)


_LARGE: Final = ("properties", "patternProperties", "allOf", "anyOf", "oneOf", "prefixItems")
_MANY: Final = 20
"""An `enum` of more values makes a schema large."""


def _is_large(raw: Any) -> bool:
    while isinstance(raw, dict) and "$ref" not in raw:
        if any(word in raw for word in _LARGE) or (isinstance(raw.get("enum"), list) and len(raw["enum"]) > _MANY):
            return True
        raw = raw.get("items")
    return False


class _Circle(Exception):
    """A reference leads back to the type that is being read, in an alternative."""


@final
class _Reading:
    """The reading of one schema, with all that it holds."""

    def __init__(self, owner: SchemaReader, node: Node, direction: Direction, form: SharedType | None) -> None:
        self._documents = owner._documents
        self._types = owner.types
        self._note = owner._note
        self._has_marks = owner._has_marks
        self._document = node.document
        self._base = owner._documents.base_at(node)
        self._depth = 0
        self._direction: Direction = direction
        self._form = form

    def schema(self, raw: Any, path: Path, place: Place = "all", around: JsonSchema | None = None) -> Schema:
        """One schema. `around` is the one that has it in its `allOf`."""
        if type(raw) is not dict:
            if isinstance(raw, bool):
                return raw
            self._changed(path, f"a schema must be an object or a boolean, not {type_name(raw)}; accepts anything")
            return True
        if self._form is not None and place != "inner":
            self._form.count(raw, self._depth + 1)
        if self._depth == _MAX_SCHEMAS:
            self._changed(path, f"nested in more than {_MAX_SCHEMAS} schemas; accepts anything")
            return True
        outer = self._base
        self._depth += 1
        if "$id" in raw and not self._document.is_old:
            self._base = self._documents.base_of(raw, outer)
        try:
            return self._object(raw, path, place, around)
        finally:
            self._base = outer
            self._depth -= 1

    def _object(self, raw: JsonSchema, path: Path, place: Place, around: JsonSchema | None) -> Schema:
        ref = raw.get("$ref")
        if isinstance(ref, str) and self._document.is_old:
            return self._reference(ref, path, place)  # what stands beside it has no meaning in 3.0
        raw = with_prefix_items(raw)
        changes: dict[str, Any] = {}
        for word, value in raw.items():
            changed = self._keyword(word, value, (path, word), place, raw, around)
            if changed is not value:
                changes[word] = changed
        words = raw
        if changes:
            words = {
                word: changes.get(word, value) for word, value in raw.items() if changes.get(word, value) is not UNSET
            }
        words = with_encoding(with_example(with_bounds(words), raw))
        result: Schema = words
        word = "$ref" if isinstance(ref, str) else "$dynamicRef"
        if isinstance(raw.get(word), str):
            rest = {name: value for name, value in words.items() if name not in _REFERENCES}
            result = self._types.extended(self._reference(raw[word], path, place), rest)
        if raw.get("nullable") is True and isinstance(result, dict):
            return self._with_null(result)
        return result

    def _with_null(self, schema: JsonSchema) -> JsonSchema:
        nullable = with_null(schema)
        if "$ref" in schema:
            self._types.track(nullable["anyOf"][0])
        return nullable

    def _keyword(
        self, word: str, value: Any, path: Path, place: Place, raw: JsonSchema, around: JsonSchema | None
    ) -> Any:  # Any: JSON, or UNSET for nothing
        applicator = APPLICATORS.get(word)
        if applicator is not None:
            return self._applied(applicator, word, value, path, place, raw)
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

    # -- schemas in schemas --------------------------------------------------------------------------

    def _applied(
        self, applicator: Applicator, word: str, value: Any, path: Path, place: Place, raw: JsonSchema
    ) -> Any:  # Any: JSON, or UNSET
        kind, _, shape = applicator.partition("-")
        if kind == "inner":
            within: Place = "inner"
        elif kind == "all" or place != "all":
            within = place
        else:
            try:
                return self._shaped(shape, word, value, path, "any", raw)
            except _Circle:
                if self._form is None or not self._form.trimmed:
                    self._changed(
                        path, "refers to the type that it is in before it says anything of the value; left out"
                    )
                return UNSET
        return self._shaped(shape, word, value, path, within, raw)

    def _shaped(self, shape: str, word: str, value: Any, path: Path, place: Place, raw: JsonSchema) -> Any:
        if shape == "map":
            return self._map(value, path, place, patterns=word == "patternProperties")
        if shape == "list":
            return self._list(value, path, place, raw if word == "allOf" else None)
        return self.schema(value, path, place)

    def _map(self, value: Any, path: Path, place: Place, *, patterns: bool) -> Any:
        if type(value) is not dict:
            return self._left_out(path, f"must be an object, not {type_name(value)}")
        changes: dict[str, Any] = {}
        for name, each in value.items():
            schema: Schema | UnsetType = self.schema(each, (path, name), place)
            if patterns and not is_pattern(name):
                schema = self._left_out((path, name), f"{quoted(name)!r} is no regular expression that can be checked")
            if schema is not each:
                changes[name] = schema
        if not changes:
            return value
        return {name: each for name, each in {**value, **changes}.items() if each is not UNSET}

    def _list(self, value: Any, path: Path, place: Place, around: JsonSchema | None) -> Any:
        if type(value) is not list or not value:
            return self._left_out(path, "must be an array of schemas, and not empty")
        schemas = [self.schema(each, (path, str(at)), place, around) for at, each in enumerate(value)]
        return value if all(new is old for new, old in zip(schemas, value, strict=True)) else schemas

    # -- references -----------------------------------------------------------------------------------

    def _reference(self, ref: str, path: Path, place: Place) -> Schema:
        try:
            node = self._target(ref, path)
        except PartError as exc:
            self._changed((path, "$ref"), f"{exc.reason}; accepts anything")
            return True
        form = self._types.form(node, self._direction)
        own = self._form
        if own is not None and place != "inner" and self._same(self._types.circles, own, form):
            if place == "any":
                if own.trimmed or self._same(self._types.any_circles, own, form):
                    raise _Circle
            elif self._same(self._types.all_circles, own, form):
                self._changed(
                    (path, "$ref"), "refers to the type that it is in before it says anything of the value; left out"
                )
                return True
            else:
                form = self._types.form(node, self._direction, trimmed=True)
        if own is not None:
            own.edges.append((form, place))
        return form.reference

    @staticmethod
    def _same(circles: Mapping[Any, int], own: SharedType, other: SharedType) -> bool:
        return own.target in circles and circles.get(other.target) == circles[own.target]

    def _target(self, ref: str, path: Path) -> Node:
        """What a reference refers to, behind those that say nothing else."""
        node = self._documents.locate(self._document, self._base, ref, path)
        self._documents.follow(node)
        while isinstance(node.value, dict) and isinstance(node.value.get("$ref"), str):
            if len(node.value) > 1 and not node.document.is_old:
                break
            node = self._documents.locate(node.document, self._documents.base_at(node), node.value["$ref"], node.path)
        return node

    # -- single keywords -----------------------------------------------------------------------------

    def _required(self, value: Any, path: Path, raw: JsonSchema, around: JsonSchema | None) -> Any:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            return self._left_out(path, f"must be an array of names, not {type_name(value)}")
        mark = _MARKS[self._direction]
        other = _MARKS["output" if self._direction == "input" else "input"]
        names = [name for name in dict.fromkeys(value) if not self._is_marked(name, mark, raw, around)]
        if self._form is not None and (
            len(names) < len(value) or any(self._is_marked(name, other, raw, around) for name in names)
        ):
            self._form.relaxed = True
        return value if names == value else names

    def _is_marked(self, name: str, mark: str, *schemas: JsonSchema | None) -> bool:
        return self._has_marks and any(member.get(mark) is True for member in self._declarations(name, schemas))

    def _declarations(self, name: str, schemas: tuple[JsonSchema | None, ...]) -> Iterator[JsonSchema]:
        """What declares a member: in these schemas, or in the branches of their `allOf`."""
        waiting = [Node(self._document, None, each) for each in schemas if each is not None]
        for _ in range(_MAX_BRANCHES):
            if not waiting:
                return
            schema = self._followed(waiting.pop())
            members = schema.get("properties")
            own = members.get(name) if members else None
            if own is not None:
                yield from (each.value for each in (own, self._followed(own)) if isinstance(each.value, dict))
            branches = schema.get("allOf")
            if branches is not None and isinstance(branches.value, list):
                waiting += islice(branches.items(), _MAX_BRANCHES)

    def _followed(self, node: Node) -> Node:
        try:
            return self._documents.follow(node)
        except PartError:
            return node

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
            form = self._types.form(node, self._direction)
            if self._form is not None:
                self._form.edges.append((form, "inner"))
            self._types.use(form, mended, name)
        return {**value, "mapping": mended}

    def _changed(self, path: Path, reason: str) -> None:
        self._note(self._document, path, reason)

    def _left_out(self, path: Path, reason: str) -> UnsetType:
        self._changed(path, f"{reason}; left out")
        return UNSET
