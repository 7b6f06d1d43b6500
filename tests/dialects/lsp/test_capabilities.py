"""What a server announces follows from the methods that it registers, by the tables of the meta model; what a method of LSP takes
and returns is checked at the start, in one line that says what to write.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from discreet import Context, DeclarationError, Service, lsp
from discreet.dialects.lsp.capabilities import (
    OWN_METHODS,
    RUN_COMMAND,
    Announcement,
    announcement,
    check_declaration,
    has_capability,
)
from discreet.dialects.lsp.generated.names import HOMES
from discreet.dialects.lsp.generated.tables import NOTIFICATIONS, REQUESTS

ROWS = {**REQUESTS, **NOTIFICATIONS}
ANNOUNCED = [name for name, row in ROWS.items() if row.server_capability and name != RUN_COMMAND]
REGISTERED = [name for name, row in ROWS.items() if row.dynamic_registration and not row.server_capability]

FULL_TOKENS = "textDocument/semanticTokens/full"
LEGEND = {"legend": {"tokenTypes": ["type"], "tokenModifiers": []}}
FILTERS = {"filters": [{"pattern": {"glob": "*"}}]}
OPTIONS: dict[str, dict[str, Any]] = {
    FULL_TOKENS: LEGEND,
    "textDocument/onTypeFormatting": {"firstTriggerCharacter": "."},
    "workspace/didChangeWatchedFiles": {"watchers": [{"globPattern": "*"}]},
    "workspace/textDocumentContent": {"schemes": ["x"]},
    **{
        f"workspace/{moment}{verb}Files": FILTERS
        for moment in ("did", "will")
        for verb in ("Create", "Delete", "Rename")
    },
}
"""What methods need."""

BEHIND = {
    "completionItem/resolve": "textDocument/completion",
    "codeAction/resolve": "textDocument/codeAction",
    "codeLens/resolve": "textDocument/codeLens",
    "documentLink/resolve": "textDocument/documentLink",
    "inlayHint/resolve": "textDocument/inlayHint",
    "workspaceSymbol/resolve": "workspace/symbol",
    "textDocument/prepareRename": "textDocument/rename",
    "textDocument/rangesFormatting": "textDocument/rangeFormatting",
    "textDocument/semanticTokens/full/delta": FULL_TOKENS,
    "textDocument/colorPresentation": "textDocument/documentColor",
    "workspace/diagnostic": "textDocument/diagnostic",
    "callHierarchy/incomingCalls": "textDocument/prepareCallHierarchy",
    "callHierarchy/outgoingCalls": "textDocument/prepareCallHierarchy",
    "typeHierarchy/subtypes": "textDocument/prepareTypeHierarchy",
    "typeHierarchy/supertypes": "textDocument/prepareTypeHierarchy",
}
"""Methods that editors never call without another one."""


def server(*methods: str, options: dict[str, Any] | None = None) -> Service:
    service = Service()
    for method in methods:

        async def handler(params: dict[str, Any], /) -> None: ...

        declare = service.notification if method in NOTIFICATIONS else service.query
        declare(method, options=options)(handler)
    return service


def announced(*methods: str, options: dict[str, Any] | None = None) -> Announcement:
    return announcement(server(*methods, options=options).operations)


@pytest.mark.parametrize("method", ANNOUNCED)
def test_every_method_that_has_a_capability_announces_it(method: str) -> None:
    service = server(method, options=OPTIONS.get(method))
    first = FULL_TOKENS if method == "textDocument/semanticTokens/range" else BEHIND.get(method)  # it takes its legend
    if first is not None:
        service.operations += server(first, options=OPTIONS.get(first)).operations
    capabilities = announcement(service.operations).capabilities
    assert has_capability(capabilities, ROWS[method].server_capability)
    assert capabilities["textDocumentSync"]["change"] == 2


@pytest.mark.parametrize(("method", "first"), BEHIND.items())
def test_a_method_that_editors_never_call_without_another_needs_that_one(method: str, first: str) -> None:
    with pytest.raises(DeclarationError, match=f"operation {method}: .*{first} alone"):
        announced(method)


@pytest.mark.parametrize("method", REGISTERED)
def test_what_has_no_capability_is_registered_where_the_client_can(method: str) -> None:
    found = announced(method, options=OPTIONS.get(method))
    assert [(one.method, one.client_capability) for one in found.registrations] == [
        (method, ROWS[method].dynamic_registration)
    ]


def test_methods_share_the_options_of_one_capability_whatever_their_order() -> None:
    for methods in (
        ("textDocument/rename", "textDocument/prepareRename"),
        ("textDocument/prepareRename", "textDocument/rename"),
    ):
        assert announced(*methods).capabilities["renameProvider"] == {"prepareProvider": True}
    service = server(FULL_TOKENS, options=LEGEND)
    service.operations += server(
        "textDocument/semanticTokens/full/delta", "textDocument/semanticTokens/range"
    ).operations
    assert announcement(service.operations).capabilities["semanticTokensProvider"] == {
        **LEGEND,
        "full": {"delta": True},
        "range": True,
    }


def test_a_method_without_options_is_announced_with_true() -> None:
    capabilities = announced("textDocument/hover", "textDocument/completion").capabilities
    assert (capabilities["hoverProvider"], capabilities["completionProvider"]) == (True, {})


def test_structs_are_options_too() -> None:
    service = Service()

    @service.query("textDocument/completion", options=lsp.CompletionOptions(trigger_characters=["."]))
    async def complete(params: lsp.CompletionParams, /) -> list[lsp.CompletionItem]:
        return []

    assert announcement(service.operations).capabilities["completionProvider"] == {"triggerCharacters": ["."]}


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("textDocument/semanticTokens/full", "semanticTokensProvider.legend"),
        ("textDocument/onTypeFormatting", "documentOnTypeFormattingProvider.firstTriggerCharacter"),
        ("workspace/willRenameFiles", "workspace.fileOperations.willRename.filters"),
        ("workspace/didChangeWatchedFiles", "watchers"),
    ],
)
def test_a_method_without_what_its_options_need_is_refused_at_the_start(method: str, named: str) -> None:
    with pytest.raises(DeclarationError, match=named):
        announced(method)


@pytest.mark.parametrize(
    ("declare", "method", "named"),
    [
        (Service.query, "textDocument/didSave", r"@service\.notification"),
        (Service.notification, "textDocument/hover", r"@service\.query"),
    ],
)
def test_requests_and_notifications_are_declared_as_what_they_are(declare: Any, method: str, named: str) -> None:
    service = Service()

    async def handler() -> None: ...

    declare(service, method)(handler)
    with pytest.raises(DeclarationError, match=named):
        announcement(service.operations)


HOVER = "textDocument/hover"


class Own(msgspec.Struct):
    position: lsp.Position


class _Names(dict[str, Any]):
    """The namespace of the tables' types."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, None) or getattr(lsp, name)


def declared(method: str, handler: Callable[..., Any]) -> None:
    service = Service("words")
    (service.notification if method in NOTIFICATIONS else service.query)(method)(handler)
    check_declaration(service.operations[0])


def without_slash(p: lsp.HoverParams) -> lsp.Hover | None: ...
def without_slash_behind_ctx(ctx: Context, p: lsp.HoverParams) -> lsp.Hover | None: ...
def by_names_of_python(text_document: lsp.TextDocumentIdentifier, position: lsp.Position) -> None: ...
def params_of_another(params: lsp.CompletionParams, /) -> lsp.Hover | None: ...
def result_of_another(params: lsp.HoverParams, /) -> lsp.CompletionList: ...
def a_list_of_another(params: lsp.HoverParams, /) -> list[lsp.CompletionItem]: ...
def a_text(params: lsp.HoverParams, /) -> str | None: ...


@pytest.mark.parametrize(
    ("handler", "named"),
    [
        (without_slash, "hover(params: lsp.HoverParams, /)"),
        (without_slash_behind_ctx, "hover(params: lsp.HoverParams, /)"),
        (by_names_of_python, "hover(params: lsp.HoverParams, /)"),
        (params_of_another, "lsp.HoverParams"),
        (result_of_another, "Hover | None, never CompletionList"),
        (a_list_of_another, "Hover | None, never CompletionItem"),
        (a_text, "Hover | None, never str"),
    ],
)
def test_types_that_the_method_does_not_have_fail_at_the_start(handler: Callable[..., Any], named: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(HOVER, handler)
    assert named in str(refused.value)


def test_what_only_servers_send_can_not_be_declared() -> None:
    def applied(params: lsp.ApplyWorkspaceEditParams, /) -> None: ...

    with pytest.raises(DeclarationError, match=r"lsp\.Editor"):
        declared("workspace/applyEdit", applied)


def test_a_command_takes_its_arguments_and_not_those_of_the_method() -> None:
    service = Service("words")

    @service.command
    def fix(params: lsp.ExecuteCommandParams, /) -> None: ...

    with pytest.raises(DeclarationError, match="its arguments"):
        check_declaration(service.operations[0])


def of_json(params: dict[str, Any], /) -> dict[str, Any]: ...
def of_a_struct(params: Own, /) -> Any: ...
def of_the_base(params: lsp.TextDocumentPositionParams, /) -> None: ...
def by_names_of_the_wire(position: lsp.Position, textDocument: Own) -> None: ...  # noqa: N803


@pytest.mark.parametrize("handler", [of_json, of_a_struct, of_the_base, by_names_of_the_wire])
def test_types_of_ones_own_are_the_authors_business(handler: Callable[..., Any]) -> None:
    declared(HOVER, handler)


DECLARABLE = [
    name for name, row in ROWS.items() if row.direction != "serverToClient" and name not in {*OWN_METHODS, RUN_COMMAND}
]


@pytest.mark.parametrize("method", DECLARABLE)
def test_the_types_of_the_meta_model_are_right_for_every_method(method: str) -> None:
    row = ROWS[method]
    last = method.rpartition("/")[2]
    known = {"delta": "SemanticTokensDeltaResult", "symbol": "WorkspaceSymbolResult"}
    union = known.get(last, f"{last[0].upper()}{last[1:]}Result")
    result = f"{union} | None" if union in HOMES and hasattr(lsp, union) else row.result or "None"

    def handler(params: Any, /) -> Any: ...

    names = {"params": row.params or "dict", "return": result}
    handler.__annotations__ = {name: eval(text, None, _Names()) for name, text in names.items()}
    declared(method, handler)


def test_only_methods_with_partial_results_are_subscriptions_and_lists_come_in_lists() -> None:
    service = Service("w", dialect="lsp")

    async def hover(params: lsp.HoverParams, /) -> AsyncIterator[lsp.Hover]:
        yield lsp.Hover(contents="")

    async def symbols(params: lsp.WorkspaceSymbolParams, /) -> AsyncIterator[lsp.WorkspaceSymbol]:
        yield lsp.WorkspaceSymbol(name="a", kind=lsp.SymbolKind.FILE, location=lsp.LocationUriOnly(uri="a"))

    for method, handler, named in (
        ("textDocument/hover", hover, "no partial results"),
        ("workspace/symbol", symbols, r"yield `\[item\]`"),
    ):
        service.operations.clear()
        service.subscription(method)(handler)
        with pytest.raises(DeclarationError, match=named):
            announcement(service.operations)
