"""The tables of LSP: methods, error codes and the options of capabilities and registrations, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final  # Any: the meta model is JSON

from lsp_model import type_of
from model import ListOf, Model, Named, OneOf, Structure, Type, names_in
from python_text import type_text

HEAD: Final = '''"""Methods, error codes, and the members of options. Plain data, no structs.

Types are written as in Python, with the names of the structs. Paths lead from `ServerCapabilities` and
`ClientCapabilities` along members as they are on the wire.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict


class Method(TypedDict):
    """What is not there, the protocol does not give."""

    direction: Literal["clientToServer", "serverToClient", "both"]
    params: NotRequired[str]
    result: NotRequired[str]
    partial_result: NotRequired[str]
    error_data: NotRequired[str]
    server_capability: NotRequired[str]
    client_capability: NotRequired[str]
    dynamic_registration: NotRequired[str]
    """The client capability that allows `client/registerCapability` for this method."""
    registration_method: NotRequired[str]
    """Under which name it is registered, if not under its own."""
    registration_options: NotRequired[tuple[str, ...]]
    """Rows of OPTIONS, all of which apply."""


class Option(TypedDict):
    """A member of a structure of options, by its name on the wire."""

    types: tuple[str, ...]
    required: bool

'''


def tables_module(raw: dict[str, Any], model: Model) -> str:
    """`model` is as it was read: unions have no names yet."""
    return "\n".join(
        [
            HEAD,
            f"REQUESTS: Final[dict[str, Method]] = {_methods(raw['requests'], model)!r}\n",
            f"NOTIFICATIONS: Final[dict[str, Method]] = {_methods(raw['notifications'], model)!r}\n",
            f"OPTIONS: Final[dict[str, dict[str, Option]]] = {dict(_options(raw, model))!r}\n",
            f"ERROR_CODES: Final[dict[str, int]] = {dict(_error_codes(model))!r}\n",
        ]
    )


def _methods(rows: list[dict[str, Any]], model: Model) -> dict[str, Any]:
    return {row["method"]: dict(_method(row, model)) for row in sorted(rows, key=lambda row: str(row["method"]))}


def _method(row: dict[str, Any], model: Model) -> Iterator[tuple[str, Any]]:
    yield "direction", row["messageDirection"]
    for key, name in (
        ("params", "params"),
        ("result", "result"),
        ("partialResult", "partial_result"),
        ("errorData", "error_data"),
    ):
        if key in row:
            yield name, type_text(type_of(row[key]))
    if path := row.get("serverCapability"):
        yield "server_capability", _checked(path, "ServerCapabilities", model)
    if path := row.get("clientCapability"):
        yield "client_capability", _checked(path, "ClientCapabilities", model)
        if dynamic := _dynamic_registration(path, model):
            yield "dynamic_registration", dynamic
    if "registrationMethod" in row:
        yield "registration_method", row["registrationMethod"]
    if "registrationOptions" in row:
        yield "registration_options", tuple(option["name"] for option in _option_types(row["registrationOptions"]))


def _option_types(raw: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = raw["items"] if raw["kind"] == "and" else [raw]
    return found


def _structures_at(path: str, root: str, model: Model) -> list[set[str]]:
    """The structures on the way, from the root to the last member; an empty set where a member is none."""
    found = [{root}]
    for name in path.split("."):
        types = [member.type for at in found[-1] for member in model.all_members(at) if member.name == name]
        if not types:
            raise ValueError(f"{root} has no {path}")
        found.append({part for of in types for part in names_in(of) if part in model.structures})
    return found


def _checked(path: str, root: str, model: Model) -> str:
    _structures_at(path, root, model)
    return path


def _dynamic_registration(path: str, model: Model) -> str | None:
    """The member `dynamicRegistration` nearest to the end of the path."""
    steps = path.split(".")
    on_the_way = _structures_at(path, "ClientCapabilities", model)
    for depth in range(len(steps), 0, -1):
        names = {member.name for at in on_the_way[depth] for member in model.all_members(at)}
        if "dynamicRegistration" in names:
            return ".".join([*steps[:depth], "dynamicRegistration"])
    return None


def _options(raw: dict[str, Any], model: Model) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = raw["requests"] + raw["notifications"]
    roots = {option["name"] for row in rows if (of := row.get("registrationOptions")) for option in _option_types(of)}
    for name in sorted(model.reachable("ServerCapabilities", *roots)):
        if name in model.structures:
            yield name, dict(_members(model.structures[name], model))


def _members(structure: Structure, model: Model) -> Iterator[tuple[str, dict[str, Any]]]:
    for member in model.all_members(structure.name):
        yield member.name, {"types": tuple(_alternatives(member.type, model)), "required": not member.optional}


def _alternatives(of: Type, model: Model) -> Iterator[str]:
    of = model.follow(of) if not isinstance(of, Named) or of.name in model.aliases else of
    for part in of.items if isinstance(of, OneOf) else (of,):
        yield type_text(ListOf(model.follow(part.item)) if isinstance(part, ListOf) else part)


def _error_codes(model: Model) -> Iterator[tuple[str, int | str]]:
    for name in ("ErrorCodes", "LSPErrorCodes"):
        yield from model.enumerations[name].values
