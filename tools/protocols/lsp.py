"""The meta model of LSP: what becomes structs, in which modules, and the tables of methods and capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final  # Any: the meta model is JSON

from choices import is_ambiguous
from lsp_model import names_in_json, read_model, type_of
from lsp_tables import structures_at, tables_module
from model import ANY, ListOf, MapOf, Model, without_none
from python_text import Group, Style, group_modules, heading, name_ambiguous_unions, quoted_lines, write_modules
from schema_file import load

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
    ),
    Family(
        "notebooks",
        "Notebooks.",
        methods="notebookDocument/",
    ),
    Family(
        "session",
        "The begin of a session, registrations, progress, cancellation and traces.",
        definitions=(
            "ErrorCodes LSPErrorCodes WorkDoneProgressBegin WorkDoneProgressReport "
            "WorkDoneProgressEnd WorkspaceFoldersInitializeParams"
        ),
        methods="initialize client/ $/ window/workDone",
    ),
    Family(
        "workspace",
        "Files, folders and configuration of the workspace.",
        methods="workspace/",
    ),
    Family(
        "window",
        "Messages, and documents to show.",
        methods="window/ telemetry/",
    ),
)
"""In this order a module imports from those before it only. What none of them claims is not written."""


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    raw = load(schemas / "lsp" / "metaModel.json")
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
    yield Group("base", "What most messages are made of: positions, ranges, documents, edits, diagnostics.", BASE)
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
