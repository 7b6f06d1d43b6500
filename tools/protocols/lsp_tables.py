"""The tables of LSP: methods, error codes and the options of capabilities and registrations, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final  # Any: the meta model is JSON

from lsp_model import type_of
from model import ListOf, Model, OneOf, Type, names_in
from python_text import type_text

HEAD: Final = '''"""Methods, error codes, and the members of options. Plain data, no structs.

Types are written as in Python, with the names of the structs. Paths lead from `ServerCapabilities` and
`ClientCapabilities` along members as they are on the wire.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Method(NamedTuple):
    """What is empty, the protocol does not give."""

    params: str = ""
    result: str = ""
    partial_result: str = ""
    server_capability: str = ""
    dynamic_registration: str = ""
    """The client capability that allows `client/registerCapability` for this method."""
    registration_method: str = ""
    """Under which name it is registered, if not under its own."""
    registration_options: tuple[str, ...] = ()
    """Rows of OPTIONS, all of which apply. Only of methods without a server capability."""
    direction: Literal["clientToServer", "serverToClient", "both"] = "clientToServer"

'''


def tables_module(raw: dict[str, Any], model: Model) -> str:
    """`model` is as it was read: unions have no names yet."""
    rows = raw["requests"] + raw["notifications"]
    roots = {of["name"] for row in rows for of in _registration_options(row)}
    owners = sorted(model.reachable("ServerCapabilities", *roots) & model.structures.keys())
    members = {name: model.all_members(name) for name in owners}
    options = {owner: {one.name: _text(one.type, model) for one in found} for owner, found in members.items()}
    required = {owner: tuple(one.name for one in found if not one.optional) for owner, found in members.items()}
    codes = [each for name in ("ErrorCodes", "LSPErrorCodes") for each in model.enumerations[name].values]
    return "\n".join(
        [
            HEAD,
            f"REQUESTS: Final[dict[str, Method]] = {_methods(raw['requests'], model)}\n",
            f"NOTIFICATIONS: Final[dict[str, Method]] = {_methods(raw['notifications'], model)}\n",
            f"OPTIONS: Final[dict[str, dict[str, str]]] = {options!r}",
            '"""The type of each member, by its name on the wire."""\n',
            f"REQUIRED: Final[dict[str, tuple[str, ...]]] = { ({key: names for key, names in required.items() if names})!r}",
            '"""The members of options that must be there."""\n',
            f"ERROR_CODES: Final[dict[str, int]] = {dict(codes)!r}\n",
        ]
    )


def _methods(rows: list[dict[str, Any]], model: Model) -> str:
    """A dict as text."""
    written = "".join(
        f"{row['method']!r}: Method({', '.join(_arguments(row, model))}), "
        for row in sorted(rows, key=lambda row: str(row["method"]))
    )
    return f"{{{written}}}"


def _arguments(row: dict[str, Any], model: Model) -> Iterator[str]:
    for name, value in _method(row, model):
        if name in ("params", "result"):
            yield repr(value)
        elif value:
            yield f"{name}={value!r}"


def _method(row: dict[str, Any], model: Model) -> Iterator[tuple[str, Any]]:
    for key, name in (("params", "params"), ("result", "result"), ("partialResult", "partial_result")):
        yield name, type_text(type_of(row[key])) if key in row else ""
    if path := row.get("serverCapability"):
        yield "server_capability", _checked(path, "ServerCapabilities", model)
    if path := row.get("clientCapability"):
        yield "dynamic_registration", _dynamic_registration(_checked(path, "ClientCapabilities", model), model)
    yield "registration_method", row.get("registrationMethod")
    yield "registration_options", tuple(option["name"] for option in _registration_options(row))
    if row["messageDirection"] != "clientToServer":
        yield "direction", row["messageDirection"]


def _registration_options(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The types of a method's options, all of which apply; none where a server capability tells of it."""
    raw = row.get("registrationOptions")
    if raw is None or "serverCapability" in row:
        return []
    found: list[dict[str, Any]] = raw["items"] if raw["kind"] == "and" else [raw]
    return found


def structures_at(path: str, root: str, model: Model) -> list[set[str]]:
    """The structures on the way, from the root to the last member; an empty set where a member is none."""
    found = [{root}]
    for name in path.split("."):
        types = [member.type for at in found[-1] for member in model.all_members(at) if member.name == name]
        if not types:
            raise ValueError(f"{root} has no {path}")
        found.append({part for of in types for part in names_in(of) if part in model.structures})
    return found


def _checked(path: str, root: str, model: Model) -> str:
    structures_at(path, root, model)
    return path


def _dynamic_registration(path: str, model: Model) -> str | None:
    """The member `dynamicRegistration` nearest to the end of the path."""
    steps = path.split(".")
    on_the_way = structures_at(path, "ClientCapabilities", model)
    for depth in range(len(steps), 0, -1):
        names = {member.name for at in on_the_way[depth] for member in model.all_members(at)}
        if "dynamicRegistration" in names:
            return ".".join([*steps[:depth], "dynamicRegistration"])
    return None


def _text(of: Type, model: Model) -> str:
    """The type of a member. Aliases are followed, since the tables have rows of structures alone."""
    of = model.follow(of)
    parts = of.items if isinstance(of, OneOf) else (of,)
    return " | ".join(
        type_text(ListOf(model.follow(part.item)) if isinstance(part, ListOf) else part) for part in parts
    )
