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


TEXT_EDIT = {"newText": "a", "range": AT}
INSERT_REPLACE = {"newText": "a", "insert": AT, "replace": AT}
DOCUMENT_EDIT = {
    "textDocument": {"uri": "file:///a", "version": 1},
    "edits": [{"range": AT, "newText": ""}, {"range": AT, "newText": "", "annotationId": "one"}],
}
FILES = [
    {"kind": "create", "uri": "file:///a"},
    {"kind": "rename", "oldUri": "file:///a", "newUri": "file:///b"},
    {"kind": "delete", "uri": "file:///a"},
]
CHANGE = {
    "textDocument": {"uri": "file:///a", "version": 2},
    "contentChanges": [{"range": AT, "text": "a"}, {"text": "b"}],
}


@pytest.mark.parametrize(
    ("of", "wire", "member", "types"),
    [
        (lsp.CompletionItem, {"label": "a", "textEdit": TEXT_EDIT}, "text_edit", [lsp.TextEdit]),
        (lsp.CompletionItem, {"label": "a", "textEdit": INSERT_REPLACE}, "text_edit", [lsp.InsertReplaceEdit]),
        (lsp.DidChangeTextDocumentParams, CHANGE, "content_changes",
         [lsp.TextDocumentContentChangePartial, lsp.TextDocumentContentChangeWholeDocument]),
        (lsp.WorkspaceEdit, {"documentChanges": [DOCUMENT_EDIT, *FILES]}, "document_changes",
         [lsp.TextDocumentEdit, lsp.CreateFile, lsp.RenameFile, lsp.DeleteFile]),
        (lsp.TextDocumentEdit, DOCUMENT_EDIT, "edits", [lsp.TextEdit, lsp.AnnotatedTextEdit]),
        (lsp.RelatedFullDocumentDiagnosticReport, {"kind": "full", "items": []}, "kind", [str]),
        *((lsp.Hover, {"contents": contents}, "range", [type(None)])
          for contents in ("a", {"language": "c", "value": "a"}, {"kind": "markdown", "value": "a"}, ["a", "b"])),
    ],
)  # fmt: skip
def test_what_was_read_has_the_type_that_its_members_tell_and_is_written_as_it_came(
    of: Any, wire: object, member: str, types: list[Any]
) -> None:
    found = read(of, wire)
    value = getattr(found, member)
    assert [type(each) for each in (value if isinstance(value, list) else [value])] == types
    assert written(found) == wire


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (lsp.Hover(contents="text"), {"contents": "text"}),
        (lsp.OptionalVersionedTextDocumentIdentifier(uri="a", version=None), {"uri": "a", "version": None}),
        (lsp.RelatedFullDocumentDiagnosticReport(items=[]), {"kind": "full", "items": []}),
    ],
)
def test_what_is_none_is_written_only_where_it_must_be_there_and_a_fixed_value_always(value: Any, wire: object) -> None:
    assert written(value) == wire


def test_null_is_taken_for_absent_and_what_could_be_null_may_be_forgotten() -> None:
    assert read(lsp.CompletionItem, {"label": "a", "detail": None, "textEdit": None}) == lsp.CompletionItem(label="a")
    assert read(lsp.InitializeParams, {"capabilities": {}}).process_id is None


def test_null_and_absent_differ_where_the_protocol_says_so() -> None:
    assert read(lsp.SignatureHelp, {"signatures": []}).active_parameter is msgspec.UNSET
    assert read(lsp.SignatureHelp, {"signatures": [], "activeParameter": None}).active_parameter is None
    assert written(lsp.SignatureHelp(signatures=[])) == {"signatures": []}
    assert written(lsp.SignatureHelp(signatures=[], active_parameter=None)) == {
        "signatures": [],
        "activeParameter": None,
    }


@pytest.mark.parametrize(
    ("of", "wire"),
    [
        (lsp.CompletionItem, {"label": "a", "textEdit": {"newText": "a"}}),
        (lsp.CompletionItem, {"label": "a", "textEdit": 5}),
        (lsp.CompletionItem, {"label": "a", "textEdit": {"newText": "a", "range": {"start": 1, "end": 2}}}),
        (lsp.DidChangeTextDocumentParams, {"textDocument": {"uri": "a", "version": 1}, "contentChanges": [5]}),
        (lsp.Hover, {"contents": None}),
        (lsp.SymbolKind, "99"),
        (lsp.CodeActionKind, 9),
        (lsp.Hover, {"contents": [["a"]]}),
        (lsp.WorkspaceEdit, {"documentChanges": [{"kind": "burn", "uri": "file:///a"}]}),
    ],
)
def test_what_no_type_of_a_union_nor_an_enumeration_fits_is_refused(of: Any, wire: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(of, wire)


@pytest.mark.parametrize("of", [lsp.CodeActionResult | None, lsp.DefinitionResult | None, list[lsp.InlineValue] | None])
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


def test_positions_and_ranges_are_values() -> None:
    assert lsp.Position(1, 9) < lsp.Position(2, 0) < lsp.Position(2, 1)
    assert len({RANGE, lsp.Range(lsp.Position(1, 2), lsp.Position(1, 5))}) == 1
    assert issubclass(lsp.HoverParams, lsp.TextDocumentPositionParams)
    with pytest.raises(AttributeError):
        RANGE.start = lsp.Position(0, 0)  # type: ignore[misc]


def test_every_name_is_there_and_no_other() -> None:
    assert "Hover" in dir(lsp)
    assert all(getattr(lsp, name) is not None for name in dir(lsp))
    with pytest.raises(AttributeError, match="no attribute 'Hoover'"):
        _ = lsp.Hoover  # type: ignore[attr-defined]


def test_checkers_see_the_names_that_are_there() -> None:
    from discreet.dialects.lsp.generated import every_name

    ours = {"Editor", "Progress", "ContentModified", "ServerCancelled", "TextDocument"}
    ours |= {"WorkspaceIndex", "after_edits", "cached_per_version", "diagnostics"}
    ours |= {"BlockingServer", "Handlers", "Server", "connect", "connect_blocking"}
    assert {name for name in vars(every_name) if not name.startswith("_")} | ours == set(dir(lsp))


def test_importing_the_names_loads_no_struct_and_a_name_loads_few() -> None:
    program = (
        "import sys\nfrom discreet import lsp\n"
        "loaded = lambda: {name.rpartition('.')[2] for name in sys.modules if '.lsp.generated.' in name}\n"
        "print(*loaded(), 'msgspec' in sys.modules)\nlsp.Hover\nprint(*sorted(loaded()))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["names False", "base hover names"]
