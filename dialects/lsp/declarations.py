"""Whether operations are what LSP says of their methods: their kind, their params, their results, their errors.

Loads no module of structs but those that a wrong declaration needs for its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final, get_args, get_origin

from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.nearest import closest_match
from .generated.names import HOMES
from .generated.tables import ERROR_CODES, NOTIFICATIONS, REQUESTS, Method

RESERVED_NUMBERS: Final = range(-32099, -31999)
"""LSP 3.17, "Error codes": JSON-RPC's reserved range, in which no new ones may be defined."""
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
        raise DeclarationError(
            f"operation {spec.name}: LSP's handshake answers it; see @service.initialize and lifespan"
        )
    if spec.name == RUN_COMMAND:
        raise DeclarationError(
            f"operation {spec.name}: LSP's session answers it; declare commands with @service.command"
        )
    if spec.name in NOTIFICATIONS and spec.kind != "notification":
        raise DeclarationError(
            f"operation {spec.name}: it is a notification in LSP; declare it with @service.notification"
        )
    if spec.name in REQUESTS and spec.kind == "notification":
        raise DeclarationError(f"operation {spec.name}: it is a request in LSP; declare it with @service.query")
    for error in spec.errors:
        number = error.definition.number
        if number in RESERVED_NUMBERS and number not in ERROR_CODES.values():
            raise DeclarationError(
                f"operation {spec.name}: {error.__name__} has the number {number}, and LSP allows no new ones"
                f" from {RESERVED_NUMBERS.start} to {RESERVED_NUMBERS.stop - 1}"
            )
    if spec.command and spec.input.whole and _is_lsp_struct(spec.input.type):
        raise DeclarationError(
            f"operation {spec.name}: a command takes its arguments, not lsp.{spec.input.type.__name__}:"
            " `def fix(ctx: Context, uri: str)`"
        )
    row = REQUESTS.get(spec.name) or NOTIFICATIONS.get(spec.name)
    if row is not None:
        _check_types(spec, row)


def needed_by(method: str) -> str | None:
    """The method without which editors never call this one: what it resolves, prepares or goes on with."""
    hierarchy, _, _ = method.partition("/")
    if hierarchy in ("callHierarchy", "typeHierarchy"):
        return f"textDocument/prepare{hierarchy[0].upper()}{hierarchy[1:]}"
    if method == "textDocument/semanticTokens/full/delta":
        return "textDocument/semanticTokens/full"
    row = REQUESTS.get(method)
    provider, _, part = ("" if row is None else row.get("server_capability", "")).rpartition(".")
    return _FIRST.get(provider) if part in _PARTS else None


_PARTS: Final = frozenset({"resolveProvider", "prepareProvider", "workspaceDiagnostics", "rangesSupport"})
_FIRST: Final = {row["server_capability"]: method for method, row in REQUESTS.items() if "server_capability" in row}


def _check_types(spec: OperationSpec, row: Method) -> None:
    if row["direction"] == "serverToClient" and "server_capability" not in row:
        raise DeclarationError(f"operation {spec.name}: in LSP the server sends it; handlers do, by lsp.Editor(ctx)")
    params = row.get("params", "")
    if params in HOMES and not _takes(spec, params):
        raise DeclarationError(
            f"operation {spec.name}: its params are lsp.{params}, taken whole: write"
            f" `def {spec.name.rpartition('/')[2]}(params: lsp.{params}, /)`, behind ctx if there is one"
        )
    result = row.get("result")
    if result is not None and (wrong := _not_in(spec.returns, f"{result} | {row.get('partial_result', result)}")):
        raise DeclarationError(f"operation {spec.name}: its result in LSP is {result}, never {wrong}; annotate it so")


def _takes(spec: OperationSpec, params: str) -> bool:
    """Whether the handler can take params of this struct: as it, as one with fewer members, or as a type of one's own."""
    given = spec.input.type
    if spec.input.whole and (not _is_lsp_struct(given) or given.__name__ == params):
        return True
    members: tuple[str, ...] = getattr(_load(params), "__struct_encode_fields__", ())
    names = given.__struct_encode_fields__ if spec.input.whole else spec.input.names
    return not members or set(names) <= set(members)


def _is_lsp_struct(hint: Any) -> bool:  # Any: an annotation
    return isinstance(hint, type) and hasattr(hint, "__struct_fields__") and _home(hint) is hint


def _home(hint: type) -> Any:  # Any: a class or an alias
    """What LSP has under the name of this class."""
    return _load(hint.__name__) if hint.__name__ in HOMES else None


def _not_in(returns: Any, result: str) -> str:  # Any: an annotation
    """What of this annotation LSP's result never is: a struct of LSP or a scalar; empty if there is nothing."""
    given = [leaf for leaf in _leaves(returns) if leaf in _SCALARS or _is_lsp_struct(leaf)]
    unexplained = [leaf.__name__ for leaf in given if leaf.__name__ not in re.findall(r"\w+", result)]
    if not unexplained:
        return ""
    allowed = _resolved(result)
    return next((name for name in unexplained if name not in allowed and not allowed & _ANYTHING), "")


def _resolved(result: str) -> set[str]:
    """The names in a type, with those that its aliases lead to."""
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
