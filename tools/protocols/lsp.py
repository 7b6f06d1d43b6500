"""The meta model of LSP: what becomes structs, in which modules, and the tables of methods and capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final  # Any: the meta model is JSON

from choices import is_ambiguous
from lsp_model import read_model, type_of
from lsp_tables import tables_module
from model import ListOf, Model, without_none
from python_text import Group, Style, group_modules, heading, name_ambiguous_unions, write_modules
from schema_file import load

BASE: Final = (
    "Command Diagnostic LSPAny LSPArray LSPObject Location MarkupContent PartialResultParams Position "
    "ProgressToken Range TextDocumentPositionParams TextEdit VersionedTextDocumentIdentifier WorkDoneProgressParams "
    "WorkspaceFolder"
).split()

FAMILIES: Final = (
    ("edits", "Changes of files and documents.", ("WorkspaceEdit", "ResourceOperation"), ()),
    ("documents", "Open documents: opened, changed, saved, closed.", (), ("textDocument/did", "textDocument/willSave")),
    (
        "completion",
        "Completion, inline completion too.",
        (),
        ("textDocument/completion", "textDocument/inlineCompletion", "completionItem/"),
    ),
    ("hover", "Hovers and signature help.", (), ("textDocument/hover", "textDocument/signatureHelp")),
    (
        "navigation",
        "Definitions, references and ranges of a document.",
        (),
        tuple(
            f"textDocument/{name}"
            for name in (
                "declaration definition documentHighlight foldingRange implementation linkedEditingRange moniker "
                "references selectionRange typeDefinition"
            ).split()
        ),
    ),
    (
        "symbols",
        "Symbols, and the hierarchies of calls and types.",
        (),
        (
            "textDocument/documentSymbol",
            "workspace/symbol",
            "workspaceSymbol/",
            "textDocument/prepareCallHierarchy",
            "textDocument/prepareTypeHierarchy",
            "callHierarchy/",
            "typeHierarchy/",
        ),
    ),
    (
        "actions",
        "Code actions, code lenses and commands.",
        (),
        ("textDocument/codeAction", "codeAction/", "textDocument/codeLens", "codeLens/", "workspace/executeCommand"),
    ),
    (
        "decorations",
        "Colors, links, inlay hints, inline values and semantic tokens.",
        ("SemanticTokenModifiers", "SemanticTokenTypes"),
        (
            "textDocument/documentColor",
            "textDocument/colorPresentation",
            "textDocument/documentLink",
            "documentLink/",
            "textDocument/inlayHint",
            "inlayHint/",
            "textDocument/inlineValue",
            "textDocument/semanticTokens",
        ),
    ),
    (
        "formatting",
        "Formatting and renaming.",
        (),
        (
            "textDocument/formatting",
            "textDocument/range",
            "textDocument/onType",
            "textDocument/rename",
            "textDocument/prepareRename",
        ),
    ),
    (
        "diagnostics",
        "Diagnostics, pushed and pulled.",
        ("DocumentDiagnosticReportKind",),
        ("textDocument/publish", "textDocument/diagnostic", "workspace/diagnostic"),
    ),
    (
        "server_capabilities",
        "What a server offers, and the options of registrations.",
        ("ServerCapabilities", "StaticRegistrationOptions"),
        ("options",),
    ),
    ("notebooks", "Notebooks.", (), ("notebookDocument/",)),
    ("client_capabilities", "What a client can.", ("ClientCapabilities",), ()),
    (
        "session",
        "The begin of a session, registrations, progress, cancellation and traces.",
        (
            "ErrorCodes",
            "LSPErrorCodes",
            "WorkDoneProgressBegin",
            "WorkDoneProgressReport",
            "WorkDoneProgressEnd",
            "WorkspaceFoldersInitializeParams",
        ),
        ("initialize", "client/", "$/", "window/workDone"),
    ),
    ("workspace", "Files, folders and configuration of the workspace.", (), ("workspace/",)),
    ("window", "Messages, and documents to show.", (), ("window/", "telemetry/")),
)
"""Each module with its purpose, the definitions that it claims, and the methods whose types it claims. In this order: a
module imports from those before it only."""


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
    yield Group("enumerations", "Enumerations that messages and capabilities share.", sorted(capabilities & others))
    yield Group("base", "What most messages are made of: positions, ranges, documents, edits, diagnostics.", BASE)
    claimed = model.reachable(*BASE)
    for module, purpose, names, prefixes in FAMILIES:
        named = {name for method, name in results.items() if method.startswith(prefixes)}
        seeds = sorted({*names, *named, *_seeds(raw, prefixes)})
        claimed |= model.reachable(*seeds)
        yield Group(module, purpose, seeds)
    if others := model.public - claimed:
        yield Group("others", "What no message leads to.", sorted(others))


def _seeds(raw: dict[str, Any], prefixes: tuple[str, ...]) -> Iterator[str]:
    """The types of these methods; for `options`, the registration options of all."""
    for row in raw["requests"] + raw["notifications"]:
        if prefixes == ("options",):
            yield from _names(row.get("registrationOptions"))
        elif row["method"].startswith(prefixes):
            for key in ("params", "result", "partialResult", "errorData"):
                yield from _names(row.get(key))


def _names(of: Any) -> Iterator[str]:
    if isinstance(of, dict):
        if of.get("kind") == "reference":
            yield of["name"]
        for value in of.values():
            yield from _names(value)
    elif isinstance(of, list):
        for value in of:
            yield from _names(value)


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
