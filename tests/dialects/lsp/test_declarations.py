"""What a method of LSP takes and returns is checked at the start, in one line that says what to write."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from discreet import Context, DeclarationError, Service, lsp
from discreet.dialects.lsp.declarations import OWN_METHODS, RUN_COMMAND, check_declaration
from discreet.dialects.lsp.generated.names import HOMES
from discreet.dialects.lsp.generated.tables import NOTIFICATIONS, REQUESTS

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


@pytest.mark.parametrize(
    "method",
    [
        name
        for name, row in {**REQUESTS, **NOTIFICATIONS}.items()
        if row["direction"] != "serverToClient" and name not in {*OWN_METHODS, RUN_COMMAND}
    ],
)
def test_the_types_of_the_meta_model_are_right_for_every_method(method: str) -> None:
    row = {**REQUESTS, **NOTIFICATIONS}[method]
    last = method.rpartition("/")[2]
    union = {"delta": "SemanticTokensDeltaResult", "symbol": "WorkspaceSymbolResult"}.get(
        last, f"{last[0].upper()}{last[1:]}Result"
    )
    result = f"{union} | None" if union in HOMES and hasattr(lsp, union) else row.get("result", "None")

    def handler(params: Any, /) -> Any: ...

    handler.__annotations__ = {
        "params": eval(row.get("params", "dict"), None, _Names()),
        "return": eval(result, None, _Names()),
    }
    declared(method, handler)
