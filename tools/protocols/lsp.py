"""The meta model of LSP: what becomes structs, in which modules, and the tables of methods and capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final  # Any: the meta model is JSON

from choices import is_ambiguous
from lsp_model import names_in_json, read_model, type_of
from lsp_tables import tables_module
from model import ListOf, Model, without_none
from python_text import Group, Style, group_modules, heading, name_ambiguous_unions, write_modules
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
        "server_capabilities",
        "What a server offers, and the options of registrations.",
        definitions="ServerCapabilities StaticRegistrationOptions",
    ),
    Family(
        "notebooks",
        "Notebooks.",
        methods="notebookDocument/",
    ),
    Family(
        "client_capabilities",
        "What a client can.",
        definitions="ClientCapabilities",
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
"""In this order a module imports from those before it only. `server_capabilities` claims the options of all registrations too."""


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    raw = load(schemas / "lsp" / "metaModel.json")
    source = f"the meta model of LSP {raw['metaData']['version']}"
    model = read_model(raw)
    tables = tables_module(raw, model)
    results = _name_results(raw, model)
    name_ambiguous_unions(model)
    groups = list(_groups(raw, model, results))
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


def _groups(raw: dict[str, Any], model: Model, results: dict[str, str]) -> Iterator[Group]:
    capabilities = model.reachable("ClientCapabilities") & model.enumerations.keys()
    others = {
        used
        for name in model.structures.keys() - model.reachable("ClientCapabilities")
        for used in model.mentioned(name) & model.enumerations.keys()
    }
    shared = capabilities & others - model.reachable(*BASE)  # most servers load `base` alone
    yield Group("enumerations", "Enumerations that messages and capabilities share.", sorted(shared))
    yield Group("base", "What most messages are made of: positions, ranges, documents, edits, diagnostics.", BASE)
    claimed = model.reachable(*BASE)
    for family in FAMILIES:
        seeds = sorted({*family.definitions.split(), *_seeds(raw, family, results)})
        claimed |= model.reachable(*seeds)
        yield Group(family.module, family.purpose, seeds)
    if others := model.public - claimed:
        yield Group("others", "What no message leads to.", sorted(others))


def _seeds(raw: dict[str, Any], family: Family, results: dict[str, str]) -> Iterator[str]:
    beginnings = tuple(family.methods.split())
    for row in raw["requests"] + raw["notifications"]:
        if family.module == "server_capabilities":
            yield from names_in_json(row.get("registrationOptions"))
        elif row["method"].startswith(beginnings):
            for key in ("params", "result", "partialResult", "errorData"):
                yield from names_in_json(row.get(key))
            if row["method"] in results:
                yield results[row["method"]]


def _names_module(source: str, held: dict[str, set[str]], public: set[str]) -> str:
    homes = sorted((name, module) for module, names in held.items() for name in names & public)
    rows = "".join(f'    "{name}": "{module}",\n' for name, module in homes)
    return (
        f'{heading(source)}"""The module of each name."""\n\nfrom __future__ import annotations\n\n'
        f"from typing import Final\n\nHOMES: Final = {{\n{rows}}}\n"
    )


def _every_name_module(source: str, modules: list[str]) -> str:
    imports = "".join(f"from .{module} import *  # noqa: F403\n" for module in sorted(modules))
    return (
        f'{heading(source)}"""Every name, for type checkers and editors. Importing it loads everything."""\n\n{imports}'
    )
