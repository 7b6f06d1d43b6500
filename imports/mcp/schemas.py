"""Turns the schemas of tools into JSON Schema 2020-12 whose shared types stand beside all others of the import.

A tool's schema is a document of its own: `$defs`, `definitions` and pointers in it mean places in it. Its definitions become
those of the import, by the name of the tool and their own, and references are written anew. Fetches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, final

from ..model import JsonSchema, Note, Schema

MAX_DEPTH: Final = 100
"""Of a schema. What lies deeper may be anything."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_LOCAL: Final = re.compile(r"#/(?:\$defs|definitions)/([^/]+)((?:/.*)?)")
_ONE: Final = frozenset(
    "additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems"
    " unevaluatedProperties".split()
)
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
_DROPPED: Final = frozenset(
    "$schema $id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $defs definitions id".split()
)
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_OF_OLD_DRAFTS: Final = frozenset({"items", "additionalItems", "dependencies", "exclusiveMinimum", "exclusiveMaximum"})
_BESIDE_REFERENCES: Final = _REFERENCES | {"title", "description", "default", "examples", "deprecated"}
"""What may stand beside a reference up to draft 7, where all else there has no meaning."""


@final
class Schemas:
    """Collects the definitions of one import, and notes what can't be kept."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self.notes: list[Note] = []

    def read(self, schema: JsonSchema, owner: str, pointer: str) -> JsonSchema:
        """A tool's schema, in the terms of the import. `owner` begins the names of its definitions."""
        return _Document(self, schema, _NOT_IN_NAMES.sub("_", owner), pointer).read()

    def free_name(self, name: str) -> str:
        """A name that no definition has."""
        wanted, number = name, 2
        while name in self.definitions:
            name, number = f"{wanted}_{number}", number + 1
        return name


@final
class _Document:
    """One schema with what it defines."""

    def __init__(self, schemas: Schemas, root: JsonSchema, owner: str, pointer: str) -> None:
        self._schemas = schemas
        self._root = root
        self._owner = owner
        self._pointer = pointer
        self._names: dict[str, str] = {}
        self._ahead: list[tuple[str, Any]] = []  # definitions that are still to be made
        declared = root.get("$schema")
        self._old = isinstance(declared, str) and re.search(r"draft-0[3-7]", declared) is not None
        base = root.get("$id")
        self._base = base.rstrip("#") if isinstance(base, str) else ""

    def read(self) -> JsonSchema:
        found = self._schema(self._root, 0)
        while self._ahead:
            full, schema = self._ahead.pop()
            self._schemas.definitions[full] = self._schema(schema, 0)
        return found if isinstance(found, dict) else {}

    def _note(self, reason: str) -> None:
        note = Note(self._pointer, "changed", reason)
        if note not in self._schemas.notes:
            self._schemas.notes.append(note)

    def _schema(self, part: Any, depth: int) -> Any:  # Any: JSON, here and below
        if not isinstance(part, dict):
            return part if isinstance(part, bool) else {}
        if depth > MAX_DEPTH:
            self._note(f"nested more than {MAX_DEPTH} deep")
            return {}
        return dict(self._members(part, depth + 1))

    def _members(self, part: JsonSchema, depth: int) -> Iterator[tuple[str, Any]]:
        refers = not _REFERENCES.isdisjoint(part)
        for word, value in part.items():
            if word in _DROPPED or (refers and self._old and word not in _BESIDE_REFERENCES):
                continue
            if word in _REFERENCES:
                if isinstance(value, str) and (target := self._target(value)) is not None:
                    yield "$ref", target
            elif word in _ONE and not isinstance(value, list):
                yield word, self._schema(value, depth)
            elif word in _MANY and isinstance(value, list):
                yield word, [self._schema(each, depth) for each in value]
            elif word in _NAMED and isinstance(value, dict):
                yield word, {name: self._schema(each, depth) for name, each in value.items()}
            elif word in _OF_OLD_DRAFTS:
                yield from self._old_word(part, word, depth)
            else:
                yield word, value

    def _old_word(self, part: JsonSchema, word: str, depth: int) -> Iterator[tuple[str, Any]]:
        """What a word of an earlier draft is called now."""
        value = part[word]
        match word:
            case "items" if isinstance(value, list):  # up to draft 2019-09
                yield "prefixItems", [self._schema(each, depth) for each in value]
                if "additionalItems" in part:
                    yield "items", self._schema(part["additionalItems"], depth)
            case "dependencies" if isinstance(value, dict):  # up to draft 7
                yield from self._dependencies(value, depth)
            case "exclusiveMinimum" | "exclusiveMaximum" if isinstance(value, bool):  # draft 4
                bound = part.get("minimum" if word == "exclusiveMinimum" else "maximum")
                if value and isinstance(bound, int | float):
                    yield word, bound
            case "exclusiveMinimum" | "exclusiveMaximum":
                yield word, value
            case _:
                return

    def _dependencies(self, value: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
        required = {name: each for name, each in value.items() if isinstance(each, list)}
        schemas = {name: self._schema(each, depth) for name, each in value.items() if not isinstance(each, list)}
        if required:
            yield "dependentRequired", required
        if schemas:
            yield "dependentSchemas", schemas

    # -- references -------------------------------------------------------------------------------------------------

    def _target(self, reference: str) -> str | None:
        """What a reference is called in the import; None where it leads out of the document, so that anything fits."""
        if self._base and reference.startswith(self._base):
            reference = reference[len(self._base) :] or "#"
        if reference == "#":
            return self._defined("", self._root)
        if found := _LOCAL.fullmatch(reference):
            name = _unescaped(found[1])
            for group in (self._root.get("$defs"), self._root.get("definitions")):
                if isinstance(group, dict) and name in group:
                    defined = self._defined(name, group[name])
                    return defined + found[2]
        elif reference.startswith("#/"):
            place = self._at(reference)
            if place is not None:
                return self._defined(reference[2:].replace("/", "."), place)
        elif reference.startswith("#"):
            anchored = _anchored(self._root, reference[1:], 0)
            if anchored is not None:
                return self._defined(reference[1:], anchored)
        self._note("a reference leads nowhere in its schema; anything fits it here")
        return None

    def _defined(self, name: str, schema: Any) -> str:
        """The reference to a definition, which is made when the first one asks for it."""
        if name not in self._names:
            full = f"{self._owner}.{_NOT_IN_NAMES.sub('_', name)}" if name else self._owner
            self._names[name] = full = self._schemas.free_name(full)
            self._schemas.definitions[full] = {}
            self._ahead.append((full, schema))
        return f"#/$defs/{self._names[name]}"

    def _at(self, reference: str) -> Any:
        place: Any = self._root
        for step in reference[2:].split("/"):
            name = _unescaped(step)
            if isinstance(place, dict) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdecimal() and len(name) < 6 and int(name) < len(place):
                place = place[int(name)]
            else:
                return None
        return place if isinstance(place, dict | bool) else None


def _unescaped(step: str) -> str:
    from urllib.parse import unquote  # late: few schemas need it

    return unquote(step).replace("~1", "/").replace("~0", "~")


def _anchored(part: Any, anchor: str, depth: int) -> Any:
    """The schema with this anchor, anywhere in the document."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(part, dict):
        if anchor in (part.get("$anchor"), part.get("$dynamicAnchor")) or part.get("$id") == f"#{anchor}":
            return part
        children: list[Any] = list(part.values())
    elif isinstance(part, list):
        children = part
    else:
        return None
    return next((found for each in children if (found := _anchored(each, anchor, depth + 1)) is not None), None)
