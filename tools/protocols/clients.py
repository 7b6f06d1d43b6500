"""Writes the classes that a typed client of a protocol has: a method for each request and notification that a server takes, and a
handler for each that it sends. The types are those that the other modules of the protocol export.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final  # Any: a schema is JSON

import acp
import lsp
import lsp_source
import mcp
from lsp_model import read_model, type_of
from model import NONE, Model, Named, Plain, Type, load, names_in, one_of, snake
from python_text import heading, type_text

OF_THE_CONNECTION: Final = frozenset(
    "initialize initialized shutdown exit $/cancelRequest $/cancel_request notifications/initialized "
    "notifications/cancelled".split()
)
"""What the client sends and takes itself."""


@dataclass(frozen=True)
class Row:
    method: str
    params: Type
    result: Type | None
    """None of a notification."""
    to_server: bool
    to_client: bool
    capabilities: tuple[str, ...] = ()
    """Those that a client has that takes it, as paths."""


def client_module(protocol: str, schemas: Path, modules: dict[str, str]) -> str:
    """The text of the module `client`. `modules` are the texts of the others by their names."""
    homes = {name: module for module, text in reversed(modules.items()) for name in _exported(text)}  # drafts come last
    rows = sorted(_ROWS[protocol](schemas, homes), key=lambda row: row.method)
    known = [row for row in rows if row.method not in OF_THE_CONNECTION and _names(row) <= homes.keys()]
    methods = "".join(_method(row) for row in known if row.to_server)
    taken = [row for row in known if row.to_client]
    handlers = "".join(f"    {_name(row)}: {_handler(row)} | None = None\n" for row in taken)
    messages = "".join(f"    {_name(row)!r}: Taken({_taken(row)}),\n" for row in taken)
    used = {module: set[str]() for module in homes.values()}
    for name in set[str]().union(*map(_names, known)):
        used[homes[name]].add(name)
    imports = "".join(
        f"    from .{module} import {', '.join(sorted(names))}\n" for module, names in sorted(used.items()) if names
    )
    source = next(iter(modules.values())).partition("\n")[0].removeprefix("# Written by tools/protocols from ")
    core = [
        name
        for name in ("Answer", "Listener", "Notification", "Request", "Taken")
        if name in methods + handlers + messages
    ]
    any_ = "Any, " if re.search(r"\bAny\b", methods + handlers) else ""
    return (
        f'{heading(source.removesuffix(". Do not edit."))}"""The methods of servers, and the handlers of clients."""\n\n'
        f"from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, {any_}Final\n\nfrom msgspec import Struct\n\n"
        f"from ...client import {', '.join(core)}\n\nif TYPE_CHECKING:\n{imports}\n\n"
        f'class Methods:\n    """The methods of a server, each with the struct of its params."""\n\n{methods}\n\n'
        "class Handlers(Struct, frozen=True, kw_only=True):\n"
        '    """Handlers of what a server sends, each called with the struct of the params."""\n\n'
        f"{handlers}\n\nTAKEN: Final = {{\n{messages}}}\n"
        '"""The message of each handler."""\n'
    )


def _exported(text: str) -> list[str]:
    found = re.search(r"^__all__ = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    return re.findall(r'"(\w+)"', found[1]) if found else []


def _names(row: Row) -> set[str]:
    return names_in(row.params) | (names_in(row.result) if row.result else set())


def _name(row: Row) -> str:
    return snake(re.sub(r"[^A-Za-z]+", "_", row.method))


def _method(row: Row) -> str:
    params = type_text(row.params)
    if row.result is None:
        return f"    {_name(row)}: Notification[{params}] = Notification({row.method!r})\n"
    result = type_text(row.result)
    return f"    {_name(row)}: Request[{params}, {result}] = Request({row.method!r}, {result!r})\n"


def _handler(row: Row) -> str:
    params = type_text(row.params)
    return f"Listener[{params}]" if row.result is None else f"Answer[{params}, {type_text(row.result)}]"


def _taken(row: Row) -> str:
    capabilities = f", capabilities={row.capabilities!r}" if row.capabilities else ""
    return f"{row.method!r}, {type_text(row.params)!r}, answers={row.result is not None}{capabilities}"


def _of_lsp(_schemas: Path, homes: Mapping[str, str]) -> Iterator[Row]:
    raw = lsp_source.read()
    model = read_model(raw)
    for row in raw["requests"] + raw["notifications"]:
        result = type_of(row["result"]) if "result" in row else None
        name = row["typeName"].removesuffix("Request") + "Result"
        if result and name in homes and result != Named(name):  # a union has a name, with which it can be read
            result = one_of(Named(name), NONE) if NONE in getattr(result, "items", ()) else Named(name)
        params = type_of(row["params"]) if "params" in row else NONE
        direction = row["messageDirection"]
        capabilities = tuple(_told(row["clientCapability"], model)) if "clientCapability" in row else ()
        yield Row(
            row["method"], params, result, direction != "serverToClient", direction != "clientToServer", capabilities
        )


def _told(path: str, model: Model) -> Iterator[str]:
    """The capability at this path, or what stands in it and is said by true, but for registrations."""
    found = lsp.structures_at(path, "ClientCapabilities", model)[-1]
    members = [member for name in sorted(found) for member in model.all_members(name)]
    said = [one.name for one in members if one.type == Plain("bool") and one.name != "dynamicRegistration"]
    yield from (f"{path}.{name}" for name in said) if members else (path,)


def _of_mcp(schemas: Path, homes: Mapping[str, str]) -> Iterator[Row]:
    revision = mcp.read_last(schemas)
    taken = mcp.sent_by_servers(revision)
    for method, (params, result) in revision.types.items():
        if "tasks/" not in method:  # an experiment that the next revision has dropped
            yield Row(
                method, params or mcp.EMPTY, result, method in revision.methods, method in taken and method != "ping"
            )


def _of_acp(schemas: Path, homes: Mapping[str, str]) -> Iterator[Row]:
    """Methods of which the structs are not written are left out."""
    found: dict[str, dict[str, Any]] = {}
    for name, schema in load(schemas / "acp" / f"v{acp.VERSION}.json")["$defs"].items():
        if method := schema.get("x-method"):
            kind = next(kind for kind in ("Request", "Response", "Notification") if name.endswith(kind))
            found.setdefault(method, {"side": schema["x-side"]})[kind] = Named(name)
    for method, parts in found.items():
        params = parts.get("Request") or parts["Notification"]
        yield Row(method, params, parts.get("Response"), parts["side"] != "client", parts["side"] != "agent")


_ROWS: Final[dict[str, Callable[[Path, Mapping[str, str]], Iterator[Row]]]] = {
    "lsp": _of_lsp,
    "mcp": _of_mcp,
    "acp": _of_acp,
}
