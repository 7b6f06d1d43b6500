"""The meta model of LSP: what becomes structs, in which modules, and the tables of methods and capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final  # Any: the meta model is JSON

import lsp_source
from lsp_model import names_in_json, read_model, type_of
from model import ANY, ListOf, MapOf, Model, OneOf, Type, names_in, without_none
from python_text import (
    Group,
    Style,
    group_modules,
    heading,
    is_ambiguous,
    name_ambiguous_unions,
    quoted_lines,
    type_text,
    write_modules,
)

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
            f"RESULTS_WITH: Final[dict[str, tuple[str, ...]]] = {_results_with(raw, model)!r}",
            '"""The requests whose results may hold this struct, of those that not every client reads whole."""\n',
            f"CLIENT_CAPABILITIES_3_18: Final[tuple[str, ...]] = {tuple(_new_capabilities(raw, 'ClientCapabilities'))!r}",
            '"""The capabilities that clients may have since 3.18."""\n',
        ]
    )


GUARDED: Final = ("CodeAction", "CompletionList", "Diagnostic", "SignatureHelp", "SnippetTextEdit")
"""Structs with something that a server may send only to clients with a capability, since 3.18."""


def _results_with(raw: dict[str, Any], model: Model) -> dict[str, tuple[str, ...]]:
    held = {
        row["method"]: model.reachable(*names_in_json(row["result"]))
        for row in raw["requests"]
        if row["messageDirection"] == "clientToServer"
    }
    return {name: tuple(sorted(method for method, names in held.items() if name in names)) for name in GUARDED}


def _new_capabilities(raw: dict[str, Any], name: str) -> Iterator[str]:
    """The paths of members since 3.18, from this structure on."""
    structures = {each["name"]: each for each in raw["structures"]}
    if name in structures:
        for other in (*structures[name].get("extends", ()), *structures[name].get("mixins", ())):
            yield from _new_capabilities(raw, other["name"])
        for member in structures[name]["properties"]:
            if member.get("since", "").startswith("3.18"):
                yield member["name"]
            else:
                for inner in names_in_json(member["type"]):
                    yield from (f"{member['name']}.{path}" for path in _new_capabilities(raw, inner))


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


BASE: Final = (
    "Command Diagnostic LSPAny LSPArray LSPObject Location MarkupContent PartialResultParams Position "
    "ProgressToken Range TextDocumentPositionParams TextEdit VersionedTextDocumentIdentifier WorkDoneProgressParams "
    "WorkspaceFolder"
).split()


@dataclass(frozen=True)
class Family:
    module: str
    purpose: str
    definitions: str = ""
    """Names that it claims."""
    methods: str = ""
    """Beginnings of the methods whose params and results it claims."""


FAMILIES: Final = (
    Family(
        "edits",
        "Changes of files and documents.",
        definitions="WorkspaceEdit ResourceOperation",
    ),
    Family(
        "documents",
        "Open documents: opened, changed, saved, closed.",
        methods="textDocument/did textDocument/willSave",
    ),
    Family(
        "completion",
        "Completion, inline completion too.",
        methods="textDocument/completion textDocument/inlineCompletion completionItem/",
    ),
    Family(
        "hover",
        "Hovers and signature help.",
        methods="textDocument/hover textDocument/signatureHelp",
    ),
    Family(
        "navigation",
        "Definitions, references and ranges of a document.",
        methods=(
            "textDocument/declaration textDocument/definition textDocument/documentHighlight "
            "textDocument/foldingRange textDocument/implementation textDocument/linkedEditingRange "
            "textDocument/moniker textDocument/references textDocument/selectionRange "
            "textDocument/typeDefinition"
        ),
    ),
    Family(
        "symbols",
        "Symbols, and the hierarchies of calls and types.",
        methods=(
            "textDocument/documentSymbol workspace/symbol workspaceSymbol/ "
            "textDocument/prepareCallHierarchy textDocument/prepareTypeHierarchy callHierarchy/ "
            "typeHierarchy/"
        ),
    ),
    Family(
        "actions",
        "Code actions, code lenses and commands.",
        methods=("textDocument/codeAction codeAction/ textDocument/codeLens codeLens/ workspace/executeCommand"),
    ),
    Family(
        "decorations",
        "Colors, links, inlay hints, inline values and semantic tokens.",
        definitions="SemanticTokenModifiers SemanticTokenTypes",
        methods=(
            "textDocument/documentColor textDocument/colorPresentation textDocument/documentLink "
            "documentLink/ textDocument/inlayHint inlayHint/ textDocument/inlineValue "
            "textDocument/semanticTokens"
        ),
    ),
    Family(
        "formatting",
        "Formatting and renaming.",
        methods=(
            "textDocument/formatting textDocument/range textDocument/onType textDocument/rename "
            "textDocument/prepareRename"
        ),
    ),
    Family(
        "diagnostics",
        "Diagnostics, pushed and pulled.",
        definitions="DocumentDiagnosticReportKind",
        methods="textDocument/publish textDocument/diagnostic workspace/diagnostic",
    ),
    Family(
        "options",
        "The options of methods, as declarations have them.",
        definitions="TextDocumentRegistrationOptions WorkDoneProgressOptions",
    ),
    Family(
        "notebooks",
        "Notebooks.",
        methods="notebookDocument/",
    ),
    Family(
        "workspace",
        "The session: its begin, registrations, progress, messages, and the files, folders and configuration of the workspace.",
        definitions=(
            "ErrorCodes LSPErrorCodes WorkDoneProgressBegin WorkDoneProgressReport "
            "WorkDoneProgressEnd WorkspaceFoldersInitializeParams"
        ),
        methods="initialize client/ $/ workspace/ window/ telemetry/",
    ),
)
"""In this order a module imports from those before it only. What none of them claims is not written."""


def generate() -> dict[str, str]:
    """The text of each module by its name, from the meta model that stands beside this file."""
    raw = lsp_source.read()
    source = f"the meta model of LSP {raw['metaData']['version']}"
    model = read_model(raw)
    tables = tables_module(raw, model)
    options = set(_options(raw, model))
    _leave_out_capabilities(model)
    results = _name_results(raw, model)
    name_ambiguous_unions(model)
    groups = list(_groups(raw, options, results))
    modules = write_modules(model, groups, Style(source, frozen=False))
    modules["names"] = _names_module(source, group_modules(model, groups), model.public)
    modules["every_name"] = _every_name_module(source, [group.module for group in groups])
    modules["__init__"] = f'{heading(source)}"""LSP as structs and tables."""\n'
    modules["tables"] = heading(source) + tables
    return modules


def _name_results(raw: dict[str, Any], model: Model) -> dict[str, str]:
    """Names for the results that msgspec can't tell apart, so that handlers can be annotated with them. By methods."""
    names = {}
    for row in raw["requests"]:
        of = without_none(type_of(row["result"]))
        name = row["typeName"].removesuffix("Request") + "Result"
        if is_ambiguous(of.item if isinstance(of, ListOf) else of, model):
            model.aliases[name] = of
            names[row["method"]] = name
    return names


def _leave_out_capabilities(model: Model) -> None:
    """Capabilities are JSON: the dialect writes those of the server, and handlers ask for those of the client by their paths."""
    params = model.structures["InitializeParams"]
    members = (replace(one, type=MapOf(ANY)) if one.name == "capabilities" else one for one in params.members)
    model.structures["InitializeParams"] = replace(params, members=tuple(members))


def _groups(raw: dict[str, Any], options: set[str], results: dict[str, str]) -> Iterator[Group]:
    yield Group("base", "The parts of most messages: positions, ranges, documents, edits, diagnostics.", BASE)
    for family in FAMILIES:
        seeds = options if family.module == "options" else _seeds(raw, family, results)
        yield Group(family.module, family.purpose, sorted({*family.definitions.split(), *seeds}))


def _options(raw: dict[str, Any], model: Model) -> Iterator[str]:
    """What `options=` of a method may be: options of its server capability, or those with which it is registered."""
    for row in raw["requests"] + raw["notifications"]:
        if path := row.get("serverCapability"):
            found = structures_at(path, "ServerCapabilities", model)[-1]
            yield from {name for name in found if not name.endswith("RegistrationOptions")} or found
        else:
            yield from names_in_json(row.get("registrationOptions"))


def _seeds(raw: dict[str, Any], family: Family, results: dict[str, str]) -> Iterator[str]:
    beginnings = tuple(family.methods.split())
    for row in raw["requests"] + raw["notifications"]:
        if row["method"].startswith(beginnings):
            for key in ("params",) if row["method"] == "initialize" else ("params", "result", "partialResult"):
                yield from names_in_json(row.get(key))
            if row["method"] in results:
                yield results[row["method"]]


def _names_module(source: str, held: dict[str, set[str]], public: set[str]) -> str:
    rows = "".join(
        f"    {module!r}: (\n{quoted_lines(sorted(names & public), ' ')}\n),\n" for module, names in held.items()
    )
    return (
        f'{heading(source)}"""The module of each name."""\n\nfrom __future__ import annotations\n\n'
        f"from typing import Final\n\n_NAMES: Final = {{\n{rows}}}\n"
        "HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}\n"
    )


def _every_name_module(source: str, modules: list[str]) -> str:
    imports = "".join(f"from .{module} import *  # noqa: F403\n" for module in sorted(modules))
    return (
        f'{heading(source)}"""Every name, for type checkers and editors. Importing it loads everything."""\n\n{imports}'
    )
