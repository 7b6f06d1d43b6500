"""jedi-language-server 0.47.0 on discreet: what its server.py does on pygls, with the same helper modules (see lay_out.py).

From https://github.com/pappasam/jedi-language-server, MIT License, Copyright (c) 2019 Sam Roeca.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import cattrs
import msgspec
from jedi import Project, Script, __version__
from jedi.api.classes import Name
from jedi.api.refactoring import RefactoringError

from discreet import Context, Service, lsp, serve

from . import jedi_utils, notebook_utils, pygls_utils, text_edit_utils
from .constants import SEMANTIC_TO_TOKEN_ID, SUPPORTED_SEMANTIC_TYPES
from .initialization_options import InitializationOptions, initialization_options_converter

jls = Service("jedi-language-server", version=__version__, dialect="lsp")
options = InitializationOptions()
project: Project | None = None


@jls.initialize
def begin(ctx: Context, initializationOptions: Any = None) -> None:  # noqa: N803 - the name on the wire
    """Read the options, and declare what they turn on."""
    global options, project  # noqa: PLW0603 - as the original keeps them on its server
    try:
        options = initialization_options_converter.structure(initializationOptions or {}, InitializationOptions)
    except cattrs.BaseValidationError as error:
        message = f"Invalid InitializationOptions, using defaults: {cattrs.transform_error(error)}"
        lsp.Editor(ctx).show_message(message, lsp.MessageType.ERROR)
        lsp.Editor(ctx).log_message(message, lsp.MessageType.ERROR)
    jedi_utils.set_jedi_settings(options)
    wanted = options.diagnostics
    if wanted.enable:
        events = {"open": wanted.did_open, "change": wanted.did_change, "save": wanted.did_save}
        lsp.diagnostics(jls, delay=1, on=[event for event, on in events.items() if on])(problems)
    if options.hover.enable:
        jls.query("textDocument/hover")(hover)
    if options.semantic_tokens.enable:
        legend = lsp.SemanticTokensLegend(token_types=SUPPORTED_SEMANTIC_TYPES, token_modifiers=[])
        jls.query("textDocument/semanticTokens/full", options={"legend": legend})(semantic_tokens_full)
        jls.query("textDocument/semanticTokens/range", options={"legend": legend})(semantic_tokens_range)
    root = ctx.documents.root_path
    project = root and Project(
        path=root,
        environment_path=options.workspace.environment_path,
        added_sys_path=options.workspace.extra_paths,
        smart_sys_path=True,
        load_unsafe_extensions=False,
    )


# Places in documents, and in notebooks, which jedi sees as one source.


class Workspace:
    """The documents as the helper modules ask for them."""

    def __init__(self, ctx: Context) -> None:
        self.text_documents = ctx.documents

    def get_text_document(self, uri: str) -> lsp.TextDocument:
        return self.text_documents.read(uri)

    def get_notebook_document(self, *, notebook_uri: str | None = None, cell_uri: str | None = None) -> Any:
        for book in self.text_documents.notebooks.values():
            if book.uri == notebook_uri or any(cell.document == cell_uri for cell in book.cells):
                return book
        return None


class Place(NamedTuple):
    document: lsp.TextDocument
    position: lsp.Position
    mapper: Any

    @property
    def script(self) -> Script:
        return jedi_utils.script(project, self.document)

    @property
    def jedi(self) -> tuple[int, int]:
        return jedi_utils.line_column(self.position)


def place_of(ctx: Context, params: Any) -> Place:
    uri = params.text_document.uri
    mapper = notebook_utils.notebook_coordinate_mapper(Workspace(ctx), cell_uri=uri)
    if mapper is None:
        return Place(ctx.documents.read(uri), params.position, None)
    document = ctx.documents.of_text(mapper.notebook_source, mapper.notebook_uri)
    return Place(document, mapper.notebook_position(uri, params.position), mapper)


def locations(ctx: Context, names: list[Name]) -> list[lsp.Location] | None:
    found = [location for location in map(jedi_utils.lsp_location, names) if location is not None]
    return notebook_utils.text_document_or_cell_locations(Workspace(ctx), found) or None


def markup(ctx: Context) -> lsp.MarkupKind:
    """The preferred or first of supported markup kinds."""
    item = ctx.client.capabilities.get("textDocument", {}).get("completion", {}).get("completionItem", {})
    supported = item.get("documentationFormat") or ["plaintext"]
    preferred = options.markup_kind_preferred
    return lsp.MarkupKind(preferred if preferred in supported else supported[0])


# Requests.


@jls.query("textDocument/completion", options=lsp.CompletionOptions(trigger_characters=[".", "'", '"']))
def completion(ctx: Context, params: lsp.CompletionParams, /) -> lsp.CompletionList | None:
    place = place_of(ctx, params)
    script = place.script
    raw = script.complete(*place.jedi)
    ignored = options.completion.ignore_patterns
    snippets = (
        lsp.Editor(ctx).can("textDocument.completion.completionItem.snippetSupport")
        and not options.completion.disable_snippets
        and not jedi_utils.is_import(script_=script, line=place.jedi[0], column=place.jedi[1])
    )
    before = pygls_utils.char_before_cursor(document=place.document, position=place.position)
    after = pygls_utils.char_after_cursor(document=place.document, position=place.position)
    jedi_utils.clear_completions_cache()
    width = len(str(len(raw)))
    kept = (each for each in raw if not any(pattern.match(each.name) for pattern in ignored))
    items = [
        jedi_utils.lsp_completion_item(
            completion=each,
            char_before_cursor=before,
            char_after_cursor=after,
            enable_snippets=snippets,
            resolve_eagerly=options.completion.resolve_eagerly,
            markup_kind=markup(ctx),
            sort_append_text=str(count).zfill(width),
        )
        for count, each in enumerate(kept)
        if each.type != "path"
    ]
    return lsp.CompletionList(is_incomplete=False, items=items) if items else None


@jls.query("completionItem/resolve")
def completion_item_resolve(ctx: Context, item: lsp.CompletionItem, /) -> lsp.CompletionItem:
    return jedi_utils.lsp_completion_item_resolve(item, markup_kind=markup(ctx))


@jls.query("textDocument/signatureHelp", options=lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
def signature_help(ctx: Context, params: lsp.SignatureHelpParams, /) -> lsp.SignatureHelp | None:
    place, kind = place_of(ctx, params), markup(ctx)
    found = place.script.get_signatures(*place.jedi)
    signatures = [
        lsp.SignatureInformation(
            label=jedi_utils.signature_string(each),
            documentation=lsp.MarkupContent(
                kind=kind, value=jedi_utils.convert_docstring(each.docstring(raw=True), kind)
            ),
            parameters=[lsp.ParameterInformation(label=info.to_string()) for info in each.params],
            active_parameter=msgspec.UNSET if each.index is None else each.index,
        )
        for each in found
    ]
    if not signatures:
        return None
    active = msgspec.UNSET if found[0].index is None else found[0].index
    return lsp.SignatureHelp(signatures=signatures, active_signature=0, active_parameter=active)


@jls.query("textDocument/declaration")
def declaration(ctx: Context, params: lsp.DeclarationParams, /) -> list[lsp.Location] | None:
    place = place_of(ctx, params)
    return locations(ctx, place.script.goto(*place.jedi))


@jls.query("textDocument/definition")
def definition(ctx: Context, params: lsp.DefinitionParams, /) -> list[lsp.Location] | None:
    place = place_of(ctx, params)
    return locations(ctx, place.script.goto(*place.jedi, follow_imports=True, follow_builtin_imports=True))


@jls.query("textDocument/typeDefinition")
def type_definition(ctx: Context, params: lsp.TypeDefinitionParams, /) -> list[lsp.Location] | None:
    place = place_of(ctx, params)
    return locations(ctx, place.script.infer(*place.jedi))


@jls.query("textDocument/references")
def references(ctx: Context, params: lsp.ReferenceParams, /) -> list[lsp.Location] | None:
    place = place_of(ctx, params)
    return locations(ctx, place.script.get_references(*place.jedi))


@jls.query("textDocument/documentHighlight")
def highlight(ctx: Context, params: lsp.DocumentHighlightParams, /) -> list[lsp.DocumentHighlight] | None:
    script = jedi_utils.script(project, ctx.documents.read(params.text_document.uri))
    names = script.get_references(*jedi_utils.line_column(params.position), scope="file")
    return [lsp.DocumentHighlight(range=place) for place in map(jedi_utils.lsp_range, names) if place] or None


def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover | None:
    place, kind = place_of(ctx, params), markup(ctx)
    text = jedi_utils.hover_text(place.script.help(*place.jedi), kind, options)
    if not text:
        return None
    around = pygls_utils.current_word_range(place.document, place.position)
    if place.mapper is not None and around is not None:
        cell = place.mapper.cell_range(around)
        around = cell.range if cell is not None and cell.uri == params.text_document.uri else around
    return lsp.Hover(contents=lsp.MarkupContent(kind=kind, value=text), range=around)


@jls.query("textDocument/documentSymbol")
def document_symbol(ctx: Context, params: lsp.DocumentSymbolParams, /) -> lsp.DocumentSymbolResult | None:
    document = ctx.documents.read(params.text_document.uri)
    names = jedi_utils.script(project, document).get_names(all_scopes=True, definitions=True)
    if lsp.Editor(ctx).can("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
        return jedi_utils.lsp_document_symbols(names) or None
    found = (jedi_utils.lsp_symbol_information(name, document.uri) for name in names if name.type != "param")
    return [symbol for symbol in found if symbol is not None] or None


@jls.query("workspace/symbol")
def workspace_symbol(ctx: Context, params: lsp.WorkspaceSymbolParams, /) -> list[lsp.SymbolInformation] | None:
    if not project:
        return None
    root, symbols = str(ctx.documents.root_path), options.workspace.symbols
    found = (
        jedi_utils.lsp_symbol_information(name)
        for name in project.complete_search(params.query)
        if name.module_path is not None
        and str(name.module_path).startswith(root)
        and not any(f"/{folder}/" in str(name.module_path) for folder in symbols.ignore_folders)
    )
    shown = (symbol for symbol in found if symbol is not None)
    return list(itertools.islice(shown, symbols.max_symbols) if symbols.max_symbols > 0 else shown) or None


@jls.query("textDocument/rename")
def rename(ctx: Context, params: lsp.RenameParams, /) -> lsp.WorkspaceEdit | None:
    place = place_of(ctx, params)
    try:
        refactoring = place.script.rename(*place.jedi, new_name=params.new_name)
    except RefactoringError:
        return None
    changes = text_edit_utils.lsp_document_changes(Workspace(ctx), refactoring)
    return lsp.WorkspaceEdit(document_changes=changes) if changes else None


KINDS = [lsp.CodeActionKind.REFACTOR_INLINE, lsp.CodeActionKind.REFACTOR_EXTRACT]


@jls.query("textDocument/codeAction", options=lsp.CodeActionOptions(code_action_kinds=KINDS))
def code_action(ctx: Context, params: lsp.CodeActionParams, /) -> list[lsp.CodeAction] | None:
    if Workspace(ctx).get_notebook_document(cell_uri=params.text_document.uri) is not None:
        return None
    script = jedi_utils.script(project, ctx.documents.read(params.text_document.uri))
    start, span = jedi_utils.line_column(params.range.start), jedi_utils.line_column_range(params.range)
    one_line = params.range.start.line == params.range.end.line
    variable, function = options.code_action.name_extract_variable, options.code_action.name_extract_function
    found = []
    for title, kind, refactor in (
        ("Inline variable", KINDS[0], lambda: script.inline(*start) if one_line else None),
        (
            f"Extract expression into variable '{variable}'",
            KINDS[1],
            lambda: script.extract_variable(new_name=variable, **span),
        ),
        (
            f"Extract expression into function '{function}'",
            KINDS[1],
            lambda: script.extract_function(new_name=function, **span),
        ),
    ):
        try:
            refactoring = refactor()
        except (RefactoringError, AttributeError, IndexError):
            continue
        changes = refactoring and text_edit_utils.lsp_document_changes(Workspace(ctx), refactoring)
        if changes:
            found.append(lsp.CodeAction(title=title, kind=kind, edit=lsp.WorkspaceEdit(document_changes=changes)))
    return found or None


def semantic_tokens_full(ctx: Context, params: lsp.SemanticTokensParams, /) -> lsp.SemanticTokens:
    end = lsp.Position(2**31 - 1, 2**31 - 1)
    return tokens(ctx, params.text_document.uri, lsp.Range(lsp.Position(0, 0), end))


def semantic_tokens_range(ctx: Context, params: lsp.SemanticTokensRangeParams, /) -> lsp.SemanticTokens:
    return tokens(ctx, params.text_document.uri, params.range)


def tokens(ctx: Context, uri: str, around: lsp.Range) -> lsp.SemanticTokens:
    script = jedi_utils.script(project, ctx.documents.read(uri))
    line, column, data = around.start.line, around.start.character, list[int]()
    for name in script.get_names(all_scopes=True, definitions=True, references=True):
        if not around.start < lsp.Position(name.line - 1, name.column) < around.end:
            continue
        found = name.goto(follow_imports=True, follow_builtin_imports=True, only_stubs=False, prefer_stubs=False)
        kind = SEMANTIC_TO_TOKEN_ID.get(found[0].type) if found else None
        if kind is None:
            continue
        here = name.line - 1
        data += [here - line, name.column - column if here == line else name.column, len(name.name), kind, 0]
        line, column = here, name.column
    return lsp.SemanticTokens(data=data)


# Documents.


def problems(ctx: Context, document: lsp.TextDocument) -> list[lsp.Diagnostic]:
    workspace, filename = Workspace(ctx), document.uri
    if workspace.get_notebook_document(cell_uri=document.uri) is not None:
        filename = notebook_utils.cell_filename(workspace, document.uri)
    found = jedi_utils.lsp_python_diagnostic(filename, document.text)
    return [found] if found else []


SELECTOR = [{"cells": [{"language": "python"}]}]


@jls.notification("notebookDocument/didOpen", options={"notebookSelector": SELECTOR}, inline=True)
def opened(params: lsp.DidOpenNotebookDocumentParams, /) -> None:
    """Announce notebooks, whose cells are documents."""


def main() -> None:
    serve(jls, max_threads=1)  # jedi is not made for several threads at once


if __name__ == "__main__":
    main()
