"""Derives a server's capabilities from the methods that it registers: by the tables of the meta model, never by hand.

Checks that operations are what LSP says of their methods: their kind, their params, their results, their errors. Loads no
module of structs but those that a wrong declaration needs for its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, get_args, get_origin

import msgspec

from ...daemon.declarations import AfterEdits, Command
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.nearest import closest_match
from .generated.names import HOMES
from .generated.tables import ERROR_CODES, NOTIFICATIONS, OPTIONS, REQUESTS, REQUIRED, Method

INCREMENTAL: Final = 2
"""`TextDocumentSyncKind.Incremental`: the client sends changes, which are applied before any handler sees them."""

SYNC: Final[dict[str, Any]] = {"openClose": True, "change": INCREMENTAL}
FOLDERS: Final[dict[str, Any]] = {"supported": True, "changeNotifications": True}


class Registration(msgspec.Struct, frozen=True):
    """A registration with `client/registerCapability`, for clients that have `client_capability`."""

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
        if (first := _needed_by(spec.name)) is not None and first not in declared:
            raise _wrong(spec, f"editors call it behind {first} alone; declare that, too")
    capabilities: dict[str, Any] = {"textDocumentSync": dict(SYNC), "workspace": {"workspaceFolders": dict(FOLDERS)}}
    registrations: list[Registration] = []
    commands: list[str] = []
    for spec in specs:
        check_declaration(spec)
        row = _row(spec.name)
        if isinstance(spec.offer, Command):
            commands.append(command_of(spec))
        elif row.server_capability:
            _announce(capabilities, spec, row.server_capability)
        elif row.dynamic_registration:
            options = _options(spec)
            for options_type in row.registration_options:
                _complete(options, options_type, spec.name)
            registrations.append(Registration(row.registration_method or spec.name, row.dynamic_registration, options))
        elif row.registration_method == "notebookDocument/sync" and spec.options is not None:
            capabilities["notebookDocumentSync"] = _options(spec)
        elif spec.name == "notebookDocument/didOpen":
            raise DeclarationError(
                "operation notebookDocument/didOpen: LSP needs its options to have notebookSelector: options={…}"
            )
    if any(isinstance(spec.offer, AfterEdits) and "save" in spec.offer.on for spec in specs):
        capabilities["textDocumentSync"].setdefault("save", True)
    if commands:
        capabilities["executeCommandProvider"] = {"commands": commands}
    _complete(capabilities, "ServerCapabilities", "")
    return Announcement(capabilities, tuple(registrations))


def _wrong(spec: OperationSpec, why: str) -> DeclarationError:
    return DeclarationError(f"operation {spec.name}: {why}")


def _row(method: str) -> Method:
    return REQUESTS.get(method) or NOTIFICATIONS.get(method) or Method()


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


ANNOUNCED: Final = {
    "inlineCompletionProvider": "textDocument.inlineCompletion",
    "workspace.textDocumentContent": "workspace.textDocumentContent",
    "documentRangeFormattingProvider.rangesSupport": "textDocument.rangeFormatting.rangesSupport",
    "codeActionProvider.documentation": "textDocument.codeAction.documentationSupport",
}
"""Capabilities of the server since 3.18, and those of the client without which they are not announced."""

FILTER_PATTERNS: Final = "textDocument.filters.relativePatternSupport"
WATCHER_PATTERNS: Final = "workspace.didChangeWatchedFiles.relativePatternSupport"


def announced_to(client: Mapping[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
    """Return what a client with these capabilities is told of the server's."""
    found: dict[str, Any] = with_patterns(client, capabilities)
    for path, needed in ANNOUNCED.items():
        if not has_capability(client, needed):
            *names, last = path.split(".")
            place = found
            for name in names:
                inner = place.get(name)
                place = inner if isinstance(inner, dict) else {}
            place.pop(last, None)
    return found


def with_patterns(client: Mapping[str, Any], options: Any) -> Any:  # Any: JSON
    """Return a copy of these options. Relative patterns that this client can't read become globs of whole paths."""
    if isinstance(options, list):
        return [with_patterns(client, inner) for inner in options]
    if not isinstance(options, dict):
        return options
    return {
        name: _whole_glob(value)
        if isinstance(value, dict)
        and "baseUri" in value
        and not has_capability(client, WATCHER_PATTERNS if name == "globPattern" else FILTER_PATTERNS)
        else with_patterns(client, value)
        for name, value in options.items()
    }


def _whole_glob(pattern: dict[str, Any]) -> str:
    from urllib.parse import unquote, urlsplit  # late: few servers have such patterns

    base = pattern["baseUri"]
    path = unquote(urlsplit(base["uri"] if isinstance(base, dict) else base).path).rstrip("/")
    escaped = re.sub(r"([*?{}[])", r"[\1]", path)
    return f"{escaped}/{pattern['pattern']}"


def _options(spec: OperationSpec) -> dict[str, Any]:
    if spec.options is None:
        return {}
    try:
        options = msgspec.to_builtins(spec.options)
    except (TypeError, ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise _wrong(spec, "options must be a struct of discreet.lsp or a dict")
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
        place[last] = options or ("bool" in alternatives(member) or {})


def _part_of(method: str, member: str) -> str | None:
    """The member of the options that stands for this very method: `full` for `textDocument/semanticTokens/full`."""
    part = method.rpartition("/")[2]
    options = OPTIONS.get(_options_type(member), {})
    return part if method.count("/") > 1 and "bool" in alternatives(options.get(part, "")) else None


def alternatives(member: str) -> list[str]:
    """The types that a member of options may have."""
    return member.split(" | ")


def _options_type(member: str) -> str:
    return next((name for name in alternatives(member) if name in OPTIONS), "")


def _complete(given: dict[str, Any], options_type: str, path: str) -> None:
    """Add what options need: false for switches that are not given. Raises `DeclarationError` for anything else."""
    required = REQUIRED.get(options_type, ())
    for name, member in OPTIONS.get(options_type, {}).items():
        where = f"{path}.{name}" if path else name
        value = given.get(name)
        if isinstance(value, dict):
            _complete(value, _options_type(member), where)
        elif name in required and name not in given and member == "bool":
            given[name] = False
        elif name in required and name not in given and "None" not in alternatives(member):
            raise DeclarationError(
                f"LSP needs {where} ({member}) of this server: give its method options={{{name!r}: …}}"
            )


RESERVED_NUMBERS: Final = range(-32099, -31999)
"""LSP 3.18, "Error codes": JSON-RPC's reserved range, in which no new ones may be defined."""
OWN_METHODS: Final = frozenset({"initialize", "shutdown", "exit", "$/cancelRequest", "$/setTrace"})
"""Methods that the dialect answers itself."""
RUN_COMMAND: Final = "workspace/executeCommand"

SIMILAR: Final = 0.85
"""How similar a method must be to one of LSP's to be taken for a slip; the ratio of `difflib`."""

_SCALARS: Final = (bool, int, float, str)
_ANYTHING: Final = frozenset({"Any", "LSPAny", "LSPObject", "LSPArray"})
"""Aliases of whatever JSON can hold."""


def slips(methods: Iterable[str]) -> Iterator[str]:
    """Yield a line for each method that is not LSP's and nearly is."""
    known = REQUESTS.keys() | NOTIFICATIONS.keys()
    for method in methods:
        near = "" if method in known else closest_match(method, known, cutoff=SIMILAR)
        if near:
            yield f"{method} is no method of LSP; nearest: {near}; editors never call it"


def check_declaration(spec: OperationSpec) -> None:
    """Raises `DeclarationError` for an operation that LSP does not allow."""
    if spec.name in OWN_METHODS:
        raise _wrong(spec, "LSP's handshake answers it; see @service.initialize and lifespan")
    if spec.name == RUN_COMMAND:
        raise _wrong(spec, "LSP's session answers it; declare commands with @service.command")
    if spec.name in NOTIFICATIONS and spec.kind != "notification":
        raise _wrong(spec, "it is a notification in LSP; declare it with @service.notification")
    if spec.name in REQUESTS and spec.kind == "notification":
        raise _wrong(spec, "it is a request in LSP; declare it with @service.query")
    for error in spec.errors:
        number = error.definition.number
        if number in RESERVED_NUMBERS and number not in ERROR_CODES.values():
            raise _wrong(
                spec,
                f"{error.__name__} has the number {number}, and LSP allows no new ones"
                f" from {RESERVED_NUMBERS.start} to {RESERVED_NUMBERS.stop - 1}",
            )
    if isinstance(spec.offer, Command) and spec.input.whole and _is_lsp_struct(spec.input.type):
        raise _wrong(
            spec,
            f"a command takes its arguments, not lsp.{spec.input.type.__name__}: `def fix(ctx: Context, uri: str)`",
        )
    _check_types(spec, _row(spec.name))


def _needed_by(method: str) -> str | None:
    """The method without which editors never call this one: what it resolves, prepares or goes on with."""
    hierarchy, _, _ = method.partition("/")
    if hierarchy in ("callHierarchy", "typeHierarchy"):
        return f"textDocument/prepare{hierarchy[0].upper()}{hierarchy[1:]}"
    if method in _BEHIND:
        return _BEHIND[method]
    provider, _, part = _row(method).server_capability.rpartition(".")
    return _FIRST.get(provider) if part in _PARTS else None


_BEHIND: Final = {
    "textDocument/colorPresentation": "textDocument/documentColor",
    "textDocument/semanticTokens/full/delta": "textDocument/semanticTokens/full",
}
_PARTS: Final = frozenset({"resolveProvider", "prepareProvider", "workspaceDiagnostics", "rangesSupport"})
_FIRST: Final = {row.server_capability: method for method, row in REQUESTS.items() if row.server_capability}


def _check_types(spec: OperationSpec, row: Method) -> None:
    if row.direction == "serverToClient" and not row.server_capability:
        raise _wrong(spec, "in LSP the server sends it; handlers do, by lsp.Editor(ctx)")
    params, result = row.params, row.result
    if params in HOMES and not _takes(spec, params):
        raise _wrong(
            spec,
            f"its params are lsp.{params}, taken whole: write"
            f" `def {spec.name.rpartition('/')[2]}(params: lsp.{params}, /)`, behind ctx if there is one",
        )
    if spec.kind == "subscription" and spec.name in REQUESTS:
        if not row.partial_result:
            raise _wrong(spec, "LSP has no partial results of it; declare it with @service.query")
        if row.partial_result.startswith("list[") and spec.returns is not Any and get_origin(spec.returns) is not list:
            raise _wrong(spec, "its partial results are lists: yield `[item]`, annotated AsyncIterator[list[T]]")
    if result and (wrong := _not_in(spec.returns, f"{result} | {row.partial_result}")):
        raise _wrong(spec, f"its result in LSP is {result}, never {wrong}; annotate it so")


def _takes(spec: OperationSpec, params: str) -> bool:
    """Whether the handler can take params of this struct: as it, as one with fewer members, or as a type of one's own."""
    given = spec.input.type
    if spec.input.whole and (not _is_lsp_struct(given) or given.__name__ == params):
        return True
    members: tuple[str, ...] = getattr(_load(params), "__struct_encode_fields__", ())
    names = given.__struct_encode_fields__ if spec.input.whole else spec.input.names
    return not members or set(names) <= set(members)


def _is_lsp_struct(hint: Any) -> bool:  # Any: an annotation
    if not (isinstance(hint, type) and hasattr(hint, "__struct_fields__") and hint.__name__ in HOMES):
        return False
    return _load(hint.__name__) is hint


def _not_in(returns: Any, result: str) -> str:  # Any: an annotation
    """Name the part of this annotation that LSP's result never is: a struct of LSP or a scalar; empty if there is nothing."""
    given = [leaf for leaf in _leaves(returns) if leaf in _SCALARS or _is_lsp_struct(leaf)]
    unexplained = [leaf.__name__ for leaf in given if leaf.__name__ not in re.findall(r"\w+", result)]
    if not unexplained:
        return ""
    allowed = _resolved(result)
    return next((name for name in unexplained if name not in allowed and not allowed & _ANYTHING), "")


def _resolved(result: str) -> set[str]:
    found = set(re.findall(r"\w+", result))
    for name in found & HOMES.keys():
        loaded = _load(name)
        if isinstance(loaded, type):
            found |= {base.__name__ for base in loaded.__mro__ if base in _SCALARS}
        else:
            found |= {getattr(leaf, "__name__", "Any") for leaf in _leaves(loaded)}
    return found


def _leaves(hint: Any) -> Iterator[Any]:  # Any: an annotation
    """The types that an annotation is made of: the members of unions, the items of lists."""
    if hasattr(hint, "__metadata__"):
        yield from _leaves(get_args(hint)[0])
    elif get_origin(hint) is None or not get_args(hint):
        yield hint
    elif get_origin(hint) is not dict:
        for inner in get_args(hint):
            yield from _leaves(inner)


def _load(name: str) -> Any:  # Any: a class or an alias
    return getattr(import_module(f"{__package__}.generated.{HOMES[name]}"), name)
