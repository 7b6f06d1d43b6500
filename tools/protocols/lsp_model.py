"""Reads the meta model of LSP into the model. Takes names, types and values, and none of the documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final  # Any: the meta model is JSON

from model import (
    ANY,
    NONE,
    Enumeration,
    Exactly,
    ListOf,
    MapOf,
    Member,
    Model,
    Named,
    OneOf,
    Plain,
    Structure,
    TupleOf,
    Type,
    one_of,
)

BASE_TYPES: Final = {
    "string": "str",
    "URI": "str",
    "DocumentUri": "str",
    "RegExp": "str",
    "integer": "int",
    "uinteger": "int",
    "decimal": "float",
    "boolean": "bool",
    "null": "None",
}

JSON_ALIASES: Final[dict[str, Type]] = {"LSPAny": ANY, "LSPArray": ListOf(ANY), "LSPObject": MapOf(ANY)}


def read_model(raw: dict[str, Any]) -> Model:
    model = Model()
    structures = {structure["name"]: structure for structure in raw["structures"]}
    for name in structures:
        if not name.startswith("_"):
            model.structures[name] = _structure(name, structures)
    for enumeration in raw["enumerations"]:
        values = tuple((value["name"], value["value"]) for value in enumeration["values"])
        plain = BASE_TYPES[enumeration["type"]["name"]]
        model.enumerations[enumeration["name"]] = Enumeration(enumeration["name"], plain, values)
    for alias in raw["typeAliases"]:
        model.aliases[alias["name"]] = JSON_ALIASES.get(alias["name"]) or type_of(alias["type"])
    model.structures.pop("LSPObject", None)
    _forgive_absent_members(raw, model)
    return model


def _forgive_absent_members(raw: dict[str, Any], model: Model) -> None:
    """In what a server only reads, a member that must be there but may be null may be absent too: clients forget them."""
    rows = raw["requests"] + raw["notifications"]
    read, written = set[str](), set[str]()
    for row in rows:
        from_client = row["messageDirection"] != "serverToClient"
        to_client = row["messageDirection"] != "clientToServer"
        for key, was_read, was_written in (
            ("params", from_client, to_client),
            ("result", to_client, from_client),
            ("partialResult", to_client, from_client),
            ("registrationOptions", False, True),
            ("errorData", False, True),
        ):
            names = names_in_json(row[key]) if key in row else set()
            read |= names if was_read else set()
            written |= names if was_written else set()
    for name in model.reachable(*read) - model.reachable(
        *written, "ServerCapabilities", "TextDocumentRegistrationOptions"
    ):
        if structure := model.structures.get(name):
            members = tuple(
                replace(member, optional=member.optional or _may_be_null(member.type)) for member in structure.members
            )
            model.structures[name] = replace(structure, members=members)


def _may_be_null(of: Type) -> bool:
    return isinstance(of, OneOf) and NONE in of.items


def names_in_json(of: Any) -> set[str]:
    """What a type of the meta model refers to."""
    match of:
        case {"kind": "reference", "name": str(name)}:
            return {name}
        case dict():
            return set[str]().union(*map(names_in_json, of.values()))
        case list():
            return set[str]().union(*map(names_in_json, of))
        case _:
            return set()


def _structure(name: str, structures: dict[str, Any]) -> Structure:
    """A struct extends the first structure that it extends here, if that is the only one and none of its members changes."""
    raw = structures[name]
    extended = [base["name"] for base in raw.get("extends", ())]
    own = {member["name"] for member in raw["properties"]}
    base = extended[0] if len(extended) == 1 and not extended[0].startswith("_") else None
    if base and own & {member.name for member in _all_members(base, structures)}:
        base = None
    flattened = [other for other in extended if other != base] + [mixin["name"] for mixin in raw.get("mixins", ())]
    members = {member.name: member for other in flattened for member in _all_members(other, structures)}
    if base:
        for member in _all_members(base, structures):
            members.pop(member.name, None)
    members |= {member["name"]: _member(member) for member in raw["properties"]}
    tag = next(
        ((member.name, str(of.values[0])) for member in members.values() if isinstance(of := member.type, Exactly)),
        None,
    )
    if tag:
        del members[tag[0]]
    return Structure(name, tuple(members.values()), base, tag)


def _all_members(name: str, structures: dict[str, Any]) -> list[Member]:
    raw = structures[name]
    others = [other["name"] for other in (*raw.get("extends", ()), *raw.get("mixins", ()))]
    found = {member.name: member for other in others for member in _all_members(other, structures)}
    return list((found | {member["name"]: _member(member) for member in raw["properties"]}).values())


def _member(raw: dict[str, Any]) -> Member:
    optional = raw.get("optional", False)
    of = type_of(raw["type"])
    return Member(raw["name"], of, optional, three_states=optional and _may_be_null(of))


def type_of(raw: dict[str, Any]) -> Type:
    match raw:
        case {"kind": "base", "name": name}:
            return Plain(BASE_TYPES[name])
        case {"kind": "reference", "name": name}:
            return JSON_ALIASES.get(name) or Named(name)
        case {"kind": "array", "element": element}:
            return ListOf(type_of(element))
        case {"kind": "map", "value": value}:
            return MapOf(type_of(value))
        case {"kind": "tuple", "items": items}:
            return TupleOf(tuple(map(type_of, items)))
        case {"kind": "or", "items": items}:
            return one_of(*map(type_of, items))
        case {"kind": "stringLiteral", "value": value}:
            return Exactly((value,))
        case {"kind": "literal", "value": {"properties": []}}:
            return MapOf(ANY)
        case _:
            raise NotImplementedError(f"{raw}")
