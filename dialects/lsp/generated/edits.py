# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Changes of files and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from ...structs import StructUnion, WireStruct
from .base import Range, TextDocumentIdentifier, TextEdit

__all__ = [
    "AnnotatedTextEdit", "ChangeAnnotation", "ChangeAnnotationIdentifier", "CreateFile", "CreateFileOptions",
    "DeleteFile", "DeleteFileOptions", "OptionalVersionedTextDocumentIdentifier", "RenameFile", "RenameFileOptions",
    "ResourceOperation", "SnippetTextEdit", "StringValue", "TextDocumentEdit", "WorkspaceEdit",
]  # fmt: skip


class AnnotatedTextEdit(TextEdit, kw_only=True):
    annotation_id: ChangeAnnotationIdentifier


class ChangeAnnotation(WireStruct, kw_only=True):
    label: str
    needs_confirmation: bool | None = None
    description: str | None = None


class CreateFile(WireStruct, kw_only=True, tag_field="kind", tag="create"):
    kind: ClassVar[Literal["create"]] = "create"
    annotation_id: ChangeAnnotationIdentifier | None = None
    uri: str
    options: CreateFileOptions | None = None


class CreateFileOptions(WireStruct, kw_only=True):
    overwrite: bool | None = None
    ignore_if_exists: bool | None = None


class DeleteFile(WireStruct, kw_only=True, tag_field="kind", tag="delete"):
    kind: ClassVar[Literal["delete"]] = "delete"
    annotation_id: ChangeAnnotationIdentifier | None = None
    uri: str
    options: DeleteFileOptions | None = None


class DeleteFileOptions(WireStruct, kw_only=True):
    recursive: bool | None = None
    ignore_if_not_exists: bool | None = None


class OptionalVersionedTextDocumentIdentifier(TextDocumentIdentifier, kw_only=True):
    version: int | None


class RenameFile(WireStruct, kw_only=True, tag_field="kind", tag="rename"):
    kind: ClassVar[Literal["rename"]] = "rename"
    annotation_id: ChangeAnnotationIdentifier | None = None
    old_uri: str
    new_uri: str
    options: RenameFileOptions | None = None


class RenameFileOptions(WireStruct, kw_only=True):
    overwrite: bool | None = None
    ignore_if_exists: bool | None = None


class ResourceOperation(WireStruct, kw_only=True):
    kind: str
    annotation_id: ChangeAnnotationIdentifier | None = None


class SnippetTextEdit(WireStruct, kw_only=True):
    range: Range
    snippet: StringValue
    annotation_id: ChangeAnnotationIdentifier | None = None


class StringValue(WireStruct, kw_only=True, tag_field="kind", tag="snippet"):
    kind: ClassVar[Literal["snippet"]] = "snippet"
    value: str


class TextDocumentEdit(WireStruct, kw_only=True):
    text_document: OptionalVersionedTextDocumentIdentifier
    edits: list[TextDocumentEditEditsItem]

    def __post_init__(self) -> None:
        self.edits = [TEXT_DOCUMENT_EDIT_EDITS_ITEM_UNION.read(item) for item in self.edits]


class WorkspaceEdit(WireStruct, kw_only=True):
    changes: dict[str, list[TextEdit]] | None = None
    document_changes: list[WorkspaceEditDocumentChangesItem] | None = None
    change_annotations: dict[str, ChangeAnnotation] | None = None

    def __post_init__(self) -> None:
        self.document_changes = (
            None
            if self.document_changes is None
            else [WORKSPACE_EDIT_DOCUMENT_CHANGES_ITEM_UNION.read(item) for item in self.document_changes]
        )


ChangeAnnotationIdentifier: TypeAlias = str

TEXT_DOCUMENT_EDIT_EDITS_ITEM_UNION = StructUnion(
    (),
    (
        ("annotationId newText range", AnnotatedTextEdit),
        ("newText range", TextEdit),
        ("range snippet", SnippetTextEdit),
    ),
    lists=False,
)
if TYPE_CHECKING:
    TextDocumentEditEditsItem: TypeAlias = TextEdit | AnnotatedTextEdit | SnippetTextEdit
else:
    TextDocumentEditEditsItem = Annotated[Any, TEXT_DOCUMENT_EDIT_EDITS_ITEM_UNION]


WORKSPACE_EDIT_DOCUMENT_CHANGES_ITEM_UNION = StructUnion(
    (),
    (
        ("kind newUri oldUri", RenameFile),
        ("edits textDocument", TextDocumentEdit),
        ("kind uri", CreateFile),
        ("kind uri", DeleteFile),
    ),
    lists=False,
)
if TYPE_CHECKING:
    WorkspaceEditDocumentChangesItem: TypeAlias = TextDocumentEdit | CreateFile | RenameFile | DeleteFile
else:
    WorkspaceEditDocumentChangesItem = Annotated[Any, WORKSPACE_EDIT_DOCUMENT_CHANGES_ITEM_UNION]
