"""What a server announces, derived from the methods that it registers: by the tables of the meta model, never by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from .declarations import check_declaration, needed_by
from .generated.tables import NOTIFICATIONS, OPTIONS, REQUESTS, Method, Option

INCREMENTAL: Final = 2
"""`TextDocumentSyncKind.Incremental`: the client sends changes, which are applied before any handler sees them."""

SYNC: Final[dict[str, Any]] = {"openClose": True, "change": INCREMENTAL}


class Registration(msgspec.Struct, frozen=True):
    """What is registered with `client/registerCapability`, where the client has `client_capability`."""

    method: str
    client_capability: str
    options: dict[str, Any]


class Announcement(msgspec.Struct, frozen=True):
    """`ServerCapabilities` as JSON, and what is registered after the handshake."""

    capabilities: dict[str, Any]
    registrations: tuple[Registration, ...]


def announcement(specs: Sequence[OperationSpec]) -> Announcement:
    """Announce these operations to the client. Raises `DeclarationError` for one that can't be announced, or that editors never
    call.
    """
    declared = {spec.name for spec in specs}
    for spec in specs:
        if (first := needed_by(spec.name)) is not None and first not in declared:
            raise DeclarationError(f"operation {spec.name}: editors call it behind {first} alone; declare that, too")
    folders = {"supported": True, "changeNotifications": True}
    capabilities: dict[str, Any] = {"textDocumentSync": dict(SYNC), "workspace": {"workspaceFolders": folders}}
    registrations: list[Registration] = []
    commands: list[str] = []
    for spec in specs:
        check_declaration(spec)
        row = REQUESTS.get(spec.name) or NOTIFICATIONS.get(spec.name)
        if spec.command:
            commands.append(command_of(spec))
        elif row is not None and (path := row.get("server_capability")):
            _announce(capabilities, spec, path)
        elif row is not None and (allowed_by := row.get("dynamic_registration")):
            registrations.append(_registration(spec, row, allowed_by))
        elif row is not None and row.get("registration_method") == "notebookDocument/sync" and spec.options is not None:
            capabilities["notebookDocumentSync"] = _options(spec)
        elif spec.name == "notebookDocument/didOpen":
            raise DeclarationError(
                "operation notebookDocument/didOpen: LSP needs its options to have notebookSelector: options={…}"
            )
    if commands:
        capabilities["executeCommandProvider"] = {"commands": commands}
    _complete(capabilities, "ServerCapabilities", "")
    return Announcement(capabilities, tuple(registrations))


def command_of(spec: OperationSpec) -> str:
    """The identifier under which a client runs this operation as a command."""
    return spec.name.replace("/", ".")


def has_capability(capabilities: Mapping[str, Any], path: str) -> bool:
    """Whether a client's capabilities have something at this path, other than false."""
    found: Any = capabilities
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return found is not False and found is not None


def _options(spec: OperationSpec) -> dict[str, Any]:
    if spec.options is None:
        return {}
    try:
        options = msgspec.to_builtins(spec.options)
    except (TypeError, ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise DeclarationError(f"operation {spec.name}: options must be a struct of discreet.lsp or a dict")
    return options


def _announce(capabilities: dict[str, Any], spec: OperationSpec, capability: str) -> None:
    """Set what the path of this method leads to: true, or its options where there are any."""
    *path, last = capability.split(".")
    place, owner = capabilities, "ServerCapabilities"
    for name in path:
        owner = _options_type(OPTIONS[owner][name])
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    member, options, before = OPTIONS[owner][last], _options(spec), place.get(last)
    if (part := _part_of(spec.name, member)) is not None:
        options = {part: True, **options}
    if isinstance(before, dict):
        more_is_known = {
            name for name, value in options.items() if value is True and isinstance(before.get(name), dict)
        }
        before.update({name: value for name, value in options.items() if name not in more_is_known})
    else:
        place[last] = options or ("bool" in member["types"] or {})


def _part_of(method: str, member: Option) -> str | None:
    """The member of the options that stands for this very method: `full` for `textDocument/semanticTokens/full`."""
    part = method.rpartition("/")[2]
    options = OPTIONS.get(_options_type(member), {})
    return part if method.count("/") > 1 and "bool" in options.get(part, _NO_OPTION)["types"] else None


_NO_OPTION: Final[Option] = {"types": (), "required": False}


def _options_type(member: Option) -> str:
    """The type of the options that a member takes; empty where it takes none."""
    return next((name for name in member["types"] if name in OPTIONS), "")


def _complete(given: dict[str, Any], options_type: str, path: str) -> None:
    """Add what options need: false for switches that are not given. Raises `DeclarationError` for anything else."""
    for name, member in OPTIONS.get(options_type, {}).items():
        where = f"{path}.{name}" if path else name
        value = given.get(name)
        if isinstance(value, dict):
            _complete(value, _options_type(member), where)
        elif member["required"] and name not in given and member["types"] == ("bool",):
            given[name] = False
        elif member["required"] and name not in given and "None" not in member["types"]:
            wanted = " | ".join(member["types"])
            raise DeclarationError(
                f"LSP needs {where} ({wanted}) of this server: give its method options={{{name!r}: …}}"
            )


def _registration(spec: OperationSpec, row: Method, allowed_by: str) -> Registration:
    options = _options(spec)
    for options_type in row.get("registration_options", ()):
        _complete(options, options_type, spec.name)
    return Registration(row.get("registration_method", spec.name), allowed_by, options)
