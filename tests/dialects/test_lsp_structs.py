"""`discreet.lsp` as authors use it: what is absent, what is null, unions, enumerations, values, and what is loaded when."""

from __future__ import annotations

import subprocess
import sys
from typing import Any  # Any: JSON

import msgspec
import pytest

from discreet import Service, lsp
from discreet.errors.decoders import decoder_for

AT = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}}
RANGE = lsp.Range(lsp.Position(1, 2), lsp.Position(1, 5))


def read(of: Any, wire: object) -> Any:
    return decoder_for(of)(msgspec.json.encode(wire))


def written(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_an_optional_member_that_is_none_is_not_written() -> None:
    hover = lsp.Hover(contents="text")
    assert hover.range is None
    assert written(hover) == {"contents": "text"}


def test_a_member_that_must_be_there_is_written_as_null() -> None:
    edited = lsp.OptionalVersionedTextDocumentIdentifier(uri="file:///a", version=None)
    assert written(edited) == {"uri": "file:///a", "version": None}


def test_null_and_absent_differ_where_the_protocol_says_so() -> None:
    assert read(lsp.SignatureHelp, {"signatures": []}).active_parameter is msgspec.UNSET
    assert read(lsp.SignatureHelp, {"signatures": [], "activeParameter": None}).active_parameter is None
    assert written(lsp.SignatureHelp(signatures=[])) == {"signatures": []}
    assert written(lsp.SignatureHelp(signatures=[], active_parameter=None)) == {
        "signatures": [],
        "activeParameter": None,
    }


def test_null_is_taken_for_absent_elsewhere() -> None:
    assert read(lsp.CompletionItem, {"label": "a", "detail": None, "textEdit": None}) == lsp.CompletionItem(label="a")


def test_a_client_may_forget_what_it_could_have_sent_as_null() -> None:
    params = read(lsp.InitializeParams, {"capabilities": {}})
    assert params.process_id is None
    assert params.root_uri is None


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"newText": "a", "range": AT}, lsp.TextEdit(new_text="a", range=RANGE)),
        (
            {"newText": "a", "insert": AT, "replace": AT},
            lsp.InsertReplaceEdit(new_text="a", insert=RANGE, replace=RANGE),
        ),
    ],
)
def test_an_edit_is_told_by_its_members(wire: object, expected: object) -> None:
    item = read(lsp.CompletionItem, {"label": "a", "textEdit": wire})
    assert item.text_edit == expected
    assert written(item) == {"label": "a", "textEdit": wire}


def test_a_change_of_a_document_has_a_range_or_is_the_whole_text() -> None:
    wire = {
        "textDocument": {"uri": "file:///a", "version": 2},
        "contentChanges": [{"range": AT, "text": "a"}, {"text": "b"}],
    }
    assert read(lsp.DidChangeTextDocumentParams, wire).content_changes == [
        lsp.TextDocumentContentChangePartial(range=RANGE, text="a"),
        lsp.TextDocumentContentChangeWholeDocument(text="b"),
    ]


def test_changes_of_a_workspace_are_told_by_their_kind() -> None:
    kinds: dict[str, dict[str, Any]] = {
        "TextDocumentEdit": {
            "textDocument": {"uri": "file:///a", "version": 1},
            "edits": [{"range": AT, "newText": ""}, {"range": AT, "newText": "", "annotationId": "one"}],
        },
        "CreateFile": {"kind": "create", "uri": "file:///a"},
        "RenameFile": {"kind": "rename", "oldUri": "file:///a", "newUri": "file:///b"},
        "DeleteFile": {"kind": "delete", "uri": "file:///a"},
    }
    wire = {"documentChanges": list(kinds.values())}
    edit = read(lsp.WorkspaceEdit, wire)
    assert [type(change).__name__ for change in edit.document_changes] == list(kinds)
    assert [type(one) for one in edit.document_changes[0].edits] == [lsp.TextEdit, lsp.AnnotatedTextEdit]
    assert edit.document_changes[1].kind == "create"
    assert written(edit) == wire


@pytest.mark.parametrize(
    "contents", ["a", {"language": "c", "value": "a"}, {"kind": "markdown", "value": "a"}, ["a", "b"]]
)
def test_a_union_takes_its_plain_types_and_lists(contents: object) -> None:
    assert written(read(lsp.Hover, {"contents": contents})) == {"contents": contents}


@pytest.mark.parametrize(
    ("of", "wire"),
    [
        (lsp.CompletionItem, {"label": "a", "textEdit": {"newText": "a"}}),
        (lsp.CompletionItem, {"label": "a", "textEdit": {}}),
        (lsp.CompletionItem, {"label": "a", "textEdit": 5}),
        (lsp.CompletionItem, {"label": "a", "textEdit": [{"newText": "a", "range": AT}]}),
        (lsp.CompletionItem, {"label": "a", "textEdit": {"newText": "a", "range": {"start": 1, "end": 2}}}),
        (lsp.DidChangeTextDocumentParams, {"textDocument": {"uri": "a", "version": 1}, "contentChanges": [5]}),
        (lsp.DidChangeTextDocumentParams, {"textDocument": {"uri": "a", "version": 1}, "contentChanges": [None]}),
        (lsp.Hover, {"contents": None}),
        (lsp.Hover, {"contents": [["a"]]}),
        (lsp.WorkspaceEdit, {"documentChanges": [{"kind": "burn", "uri": "file:///a"}]}),
    ],
)
def test_what_no_type_of_a_union_fits_is_refused(of: Any, wire: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(of, wire)


@pytest.mark.parametrize(
    "of",
    [
        lsp.CodeActionResult | None,
        lsp.DeclarationResult | None,
        lsp.DefinitionResult | None,
        lsp.DocumentSymbolResult | None,
        lsp.PrepareRenameResult | None,
        lsp.SemanticTokensDeltaResult | None,
        lsp.WorkspaceSymbolResult | None,
        list[lsp.InlineValue] | None,
    ],
)
def test_a_handler_may_return_what_msgspec_can_not_tell_apart(of: Any) -> None:
    def handler() -> Any:
        return None

    handler.__annotations__["return"] = of
    assert Service("editor").query()(handler) is handler


def test_a_plain_object_becomes_a_struct_when_authors_pass_one() -> None:
    item = lsp.CompletionItem(label="a", text_edit={"newText": "a", "range": AT})  # type: ignore[arg-type]
    assert item.text_edit == lsp.TextEdit(new_text="a", range=RANGE)


@pytest.mark.parametrize(("enumeration", "value"), [(lsp.SymbolKind, 99), (lsp.CodeActionKind, "source.fixAll.mine")])
def test_a_value_that_an_enumeration_does_not_name_is_kept(enumeration: Any, value: object) -> None:
    found = read(enumeration, value)
    assert type(found) is enumeration
    assert found == value == enumeration(value)
    assert hash(found) == hash(value)
    assert written(found) == value


@pytest.mark.parametrize(("enumeration", "value"), [(lsp.SymbolKind, "99"), (lsp.CodeActionKind, 9)])
def test_an_enumeration_refuses_another_type(enumeration: Any, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(enumeration, value)


def test_a_member_with_one_value_is_written_unasked() -> None:
    report = lsp.RelatedFullDocumentDiagnosticReport(items=[])
    assert report.kind == "full"
    assert written(report) == {"kind": "full", "items": []}
    assert read(lsp.DocumentDiagnosticReport, written(report)) == report


def test_what_was_read_can_be_completed_and_returned() -> None:
    item = read(lsp.CompletionItem, {"label": "a"})
    item.documentation = lsp.MarkupContent(kind=lsp.MarkupKind.MARKDOWN, value="*b*")
    assert written(item) == {"label": "a", "documentation": {"kind": "markdown", "value": "*b*"}}


def test_positions_and_ranges_are_values() -> None:
    assert lsp.Position(1, 9) < lsp.Position(2, 0) < lsp.Position(2, 1)
    assert len({RANGE, lsp.Range(lsp.Position(1, 2), lsp.Position(1, 5))}) == 1
    with pytest.raises(AttributeError):
        RANGE.start = lsp.Position(0, 0)  # type: ignore[misc]


def test_params_at_a_position_have_one_base() -> None:
    assert issubclass(lsp.HoverParams, lsp.TextDocumentPositionParams)
    assert issubclass(lsp.CompletionParams, lsp.TextDocumentPositionParams)


def test_every_name_is_there_and_no_other() -> None:
    assert "Hover" in dir(lsp)
    assert all(getattr(lsp, name) is not None for name in dir(lsp))
    with pytest.raises(AttributeError, match="no attribute 'Hoover'"):
        _ = lsp.Hoover  # type: ignore[attr-defined]


def test_checkers_see_the_names_that_are_there() -> None:
    from discreet.dialects.lsp.generated import every_name

    ours = {"Editor", "Progress", "ContentModified", "ServerCancelled", "TextDocument"}
    assert {name for name in vars(every_name) if not name.startswith("_")} | ours == set(dir(lsp))


def test_importing_the_names_loads_no_struct_and_a_name_loads_few() -> None:
    program = (
        "import sys\nfrom discreet import lsp\n"
        "loaded = lambda: {name.rpartition('.')[2] for name in sys.modules if '.lsp.generated.' in name}\n"
        "print(*loaded(), 'msgspec' in sys.modules)\nlsp.Hover\nprint(*sorted(loaded()))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["names False", "base hover names"]
