"""What a server announces follows from the methods that it registers, by the tables of the meta model."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import DeclarationError, OperationError, Service, lsp
from discreet.dialects.lsp.capabilities import Announcement, announcement, has_capability
from discreet.dialects.lsp.declarations import RUN_COMMAND, needed_by
from discreet.dialects.lsp.generated.tables import NOTIFICATIONS, OPTIONS, REQUESTS

ROWS = {**REQUESTS, **NOTIFICATIONS}
ANNOUNCED = [name for name, row in ROWS.items() if "server_capability" in row and name != RUN_COMMAND]
REGISTERED = [name for name, row in ROWS.items() if "server_capability" not in row and "dynamic_registration" in row]

SAMPLES: dict[str, Any] = {
    "str": ".",
    "list[str]": ["x"],
    "SemanticTokensLegend": {"tokenTypes": [], "tokenModifiers": []},
    "list[FileOperationFilter]": [{"pattern": {"glob": "*"}}],
    "list[FileSystemWatcher]": [{"globPattern": "*"}],
}


def server(*methods: str, options: dict[str, Any] | None = None) -> Service:
    service = Service()
    for method in methods:

        async def handler(params: dict[str, Any], /) -> None: ...

        declare = service.notification if method in NOTIFICATIONS else service.query
        declare(method, options=options)(handler)
    return service


def announced(*methods: str, options: dict[str, Any] | None = None) -> Announcement:
    return announcement(server(*methods, options=options).operations)


def needed(method: str) -> dict[str, Any]:
    """Options that have all that any type of options of this method needs, beside switches."""
    found: dict[str, Any] = {}
    for options_type in ROWS[method].get("registration_options", ()):
        for name, member in OPTIONS[options_type].items():
            if member["required"] and member["types"][0] in SAMPLES:
                found[name] = SAMPLES[member["types"][0]]
    return found


@pytest.mark.parametrize("method", ANNOUNCED)
def test_every_method_that_has_a_capability_announces_it(method: str) -> None:
    service = server(method, options=needed(method))
    first = needed_by(method)
    if "semanticTokens/" in method and not method.endswith("full"):  # which take their legend from it
        first = "textDocument/semanticTokens/full"
    if first is not None:
        service.operations += server(first, options=needed(first)).operations
    capabilities = announcement(service.operations).capabilities
    assert has_capability(capabilities, ROWS[method]["server_capability"])
    assert capabilities["textDocumentSync"]["change"] == 2


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("completionItem/resolve", "textDocument/completion"),
        ("codeAction/resolve", "textDocument/codeAction"),
        ("codeLens/resolve", "textDocument/codeLens"),
        ("documentLink/resolve", "textDocument/documentLink"),
        ("inlayHint/resolve", "textDocument/inlayHint"),
        ("workspaceSymbol/resolve", "workspace/symbol"),
        ("textDocument/prepareRename", "textDocument/rename"),
        ("textDocument/rangesFormatting", "textDocument/rangeFormatting"),
        ("textDocument/semanticTokens/full/delta", "textDocument/semanticTokens/full"),
        ("workspace/diagnostic", "textDocument/diagnostic"),
        ("callHierarchy/incomingCalls", "textDocument/prepareCallHierarchy"),
        ("typeHierarchy/supertypes", "textDocument/prepareTypeHierarchy"),
    ],
)
def test_a_method_that_editors_never_call_without_another_needs_that_one(method: str, first: str) -> None:
    with pytest.raises(DeclarationError, match=f"operation {method}: .*{first} alone"):
        announced(method, options=needed(method))


@pytest.mark.parametrize("method", REGISTERED)
def test_what_has_no_capability_is_registered_where_the_client_can(method: str) -> None:
    found = announced(method, options=needed(method))
    assert [(one.method, one.client_capability) for one in found.registrations] == [
        (method, ROWS[method]["dynamic_registration"])
    ]


def test_methods_share_the_options_of_one_capability_whatever_their_order() -> None:
    for methods in (
        ("textDocument/rename", "textDocument/prepareRename"),
        ("textDocument/prepareRename", "textDocument/rename"),
    ):
        assert announced(*methods).capabilities["renameProvider"] == {"prepareProvider": True}
    legend = {"legend": {"tokenTypes": ["type"], "tokenModifiers": []}}
    service = server("textDocument/semanticTokens/full", options=legend)
    service.operations += server(
        "textDocument/semanticTokens/full/delta", "textDocument/semanticTokens/range"
    ).operations
    assert announcement(service.operations).capabilities["semanticTokensProvider"] == {
        **legend,
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


@pytest.mark.parametrize("method", ["initialize", "shutdown", "exit"])
def test_the_handshake_is_the_dialects(method: str) -> None:
    service = Service()

    @service.query(method)
    async def handler() -> None: ...

    with pytest.raises(DeclarationError, match="handshake"):
        announcement(service.operations)


def test_requests_and_notifications_are_declared_as_what_they_are() -> None:
    service = Service()

    @service.query("textDocument/didSave")
    async def saved() -> None: ...

    with pytest.raises(DeclarationError, match=r"@service\.notification"):
        announcement(service.operations)
    service = Service()

    @service.notification("textDocument/hover")
    async def hover() -> None: ...

    with pytest.raises(DeclarationError, match=r"@service\.query"):
        announcement(service.operations)


class Wrong(OperationError, code="WRONG", number=-32050):
    """Wrong"""


def test_numbers_that_lsp_reserves_are_refused() -> None:
    service = Service()

    @service.query("textDocument/hover", errors=[Wrong])
    async def hover() -> None: ...

    with pytest.raises(DeclarationError, match="-32050"):
        announcement(service.operations)
