"""Reads the definitions of a JSON Schema into the model. Takes names, types and values, and none of the documentation.

An object of which the schema allows further members by a rule of its own is a dict, so that they are not lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias  # Any: a schema is JSON

from model import ANY, Enumeration, Exactly, ListOf, MapOf, Member, Model, Named, Plain, Structure, Type, one_of, pascal

Schema: TypeAlias = dict[str, Any]

PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
UNIONS: Final = ("anyOf", "oneOf")


class Reader:
    """Reads what it is asked for and all that this leads to."""

    def __init__(
        self,
        definitions: dict[str, Schema],
        *,
        known: dict[str, Type],
        enumerations: bool,
        three_states: Callable[[str, Type, bool], bool],
    ) -> None:
        """`known` are definitions with a type of ours. With `enumerations`, strings that have a name are enumerations.

        `three_states` decides it for a structure's optional member, by its type and whether it may be null.
        """
        self.model: Final = Model()
        self._definitions: Final = definitions
        self._known: Final = known
        self._enumerations: Final = enumerations
        self._three_states: Final = three_states
        self._references: Final = Counter(_references(definitions))

    def define(self, name: str, schema: Schema | None = None) -> Type:
        """The type of a definition, or of a schema that gets this name."""
        if name in self._known:
            return self._known[name]
        model = self.model
        if name in model.structures or name in model.enumerations or name in model.aliases:
            return Named(name)
        schema = self._definitions[name] if schema is None else schema
        if self._enumerations and (values := _named_values(schema)):
            model.enumerations[name] = Enumeration(name, type(values[0][1]).__name__, tuple(values))
        elif _is_structure(schema):
            model.structures[name] = Structure(name, ())  # for definitions that lead to themselves
            model.structures[name] = self._structure(name, schema)
        else:
            model.aliases[name] = ANY
            model.aliases[name] = self.type_of(schema, name)
            if model.aliases[name] in {ANY, MapOf(ANY)}:
                return model.aliases.pop(name)
        return Named(name)

    def type_of(self, schema: Schema | bool, name: str) -> Type:
        """The type of a schema. What needs a structure of its own gets this name."""
        if isinstance(schema, bool):
            return ANY
        match schema:
            case {"$ref": str(target)}:
                return self.define(_name(target))
            case {"allOf": [only]}:
                return self.type_of(only, name)
            case {"const": value}:
                return Exactly((value,))
            case {"enum": values}:
                return Exactly(tuple(values))
            case {"anyOf": parts} | {"oneOf": parts}:
                variants = (self._variant(part, name) for part in parts if not _is_for_unknown_tags(part))
                return one_of(*(self.type_of(part, name) if of is None else of for part, of in variants))
            case {"type": list(types)}:
                return one_of(*(self.type_of({**schema, "type": one}, name) for one in types))
            case {"type": "array"}:
                return ListOf(self.type_of(schema.get("items", True), f"{name}Item"))
            case {"type": "object"}:
                if _is_structure(schema):
                    return self.define(name, schema)
                return MapOf(self.type_of(_further_members(schema), f"{name}Value"))
            case {"type": str(plain)}:
                return Plain(PLAIN[plain])
            case _:
                return ANY

    def _variant(self, schema: Schema, union: str) -> tuple[Schema, Type | None]:
        """An alternative that adds a tag to a structure: the structure itself, if nothing else refers to it."""
        tag = _tag(schema)
        if tag is None or "$ref" in schema or set(schema["properties"]) != {tag[0]}:
            return schema, None
        targets = [_name(part["$ref"]) for part in schema.get("allOf", ())]
        if not targets:
            name = f"{union}{pascal(tag[1])}"
            self.model.structures[name] = Structure(name, (), tag=tag)
            return schema, Named(name)
        (target,) = targets
        self.define(target)
        if (
            self.model.aliases.pop(target, None) is not None
        ):  # it has alternatives of its own, told apart by another member
            self.model.structures[target] = self._structure(target, self._definitions[target])
        if self._references[target] == 1:
            self.model.structures[target] = replace(self.model.structures[target], tag=tag)
            return schema, Named(target)
        name = pascal(tag[1]) if pascal(tag[1]) not in self._definitions else f"{union}{pascal(tag[1])}"
        self.model.structures[name] = Structure(name, (), base=target, tag=tag)
        return schema, Named(name)

    def _structure(self, name: str, schema: Schema) -> Structure:
        """Where an object has alternatives, a member that not all of them need is optional."""
        alternatives = list(self._alternatives(schema))
        members = []
        for member in dict.fromkeys(member for one in alternatives for member in one):
            found = [one[member] for one in alternatives if member in one]
            of = one_of(*(self.type_of(part, f"{name}{pascal(member)}") for part, _ in found))
            optional = len(found) < len(alternatives) or not all(required for _, required in found)
            null = Plain("None") in getattr(of, "items", ())
            members.append(Member(member, of, optional, optional and self._three_states(name, of, null)))
        tag = next(
            (
                (member.name, member.type.values[0])
                for member in members
                if isinstance(member.type, Exactly) and len(member.type.values) == 1 and not member.optional
            ),
            None,
        )
        if tag and isinstance(tag[1], str):
            return Structure(name, tuple(member for member in members if member.name != tag[0]), tag=(tag[0], tag[1]))
        return Structure(name, tuple(members))

    def _alternatives(self, schema: Schema) -> Iterator[dict[str, tuple[Schema, bool]]]:
        """Each way to satisfy it: members with their schemas and whether they are required."""
        if "$ref" in schema:
            schema = self._definitions[_name(schema["$ref"])]
        required = schema.get("required", ())
        found = [{name: (part, name in required) for name, part in schema.get("properties", {}).items()}]
        for part in schema.get("allOf", ()):
            found = [one | other for one in found for other in self._alternatives(part)]
        for union in UNIONS:
            if union in schema:
                found = [one | other for one in found for part in schema[union] for other in self._alternatives(part)]
        return iter(found)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(target := schema.get("$ref"), str):
            yield _name(target)
        for part in schema.values():
            yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _is_structure(schema: Schema) -> bool:
    if len(schema.get("allOf", ())) > 1:
        return True
    return "properties" in schema and "additionalProperties" not in schema


def _further_members(schema: Schema) -> Schema | bool:
    found: Schema | bool = True if "properties" in schema else schema.get("additionalProperties", True)
    return found


def _named_values(schema: Schema) -> list[tuple[str, str | int]]:
    """The values of an enumeration: constants, maybe with a plain type for others."""
    if "enum" in schema:
        return [(str(value), value) for value in schema["enum"]]
    parts = schema.get("oneOf") or schema.get("anyOf") or ()
    values = [(str(part.get("title", part["const"])), part["const"]) for part in parts if "const" in part]
    others = [part for part in parts if "const" not in part]
    return values if all(part.get("type") in {"string", "integer"} for part in others) else []


def _tag(schema: Schema) -> tuple[str, str] | None:
    for name, part in schema.get("properties", {}).items():
        if "const" in part and name in schema.get("required", ()):
            return name, str(part["const"])
    return None


def _is_for_unknown_tags(schema: Schema) -> bool:
    """Whether an alternative only leaves room for tags that the schema does not know."""
    return "not" in schema and not {"allOf", *UNIONS} & schema.keys()
