# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Definitions, references and ranges of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .base import Location, Position, ProgressToken, Range, TextDocumentIdentifier, TextDocumentPositionParams

__all__ = [
    "Declaration", "DeclarationLink", "DeclarationParams", "DeclarationResult", "Definition", "DefinitionLink",
    "DefinitionParams", "DefinitionResult", "DocumentHighlight", "DocumentHighlightKind", "DocumentHighlightParams",
    "FoldingRange", "FoldingRangeKind", "FoldingRangeParams", "ImplementationParams", "ImplementationResult",
    "LinkedEditingRangeParams", "LinkedEditingRanges", "LocationLink", "Moniker", "MonikerKind", "MonikerParams",
    "ReferenceContext", "ReferenceParams", "SelectionRange", "SelectionRangeParams", "TypeDefinitionParams",
    "TypeDefinitionResult", "UniquenessLevel",
]  # fmt: skip


class DocumentHighlightKind(OpenInt):
    TEXT = 1
    READ = 2
    WRITE = 3


class FoldingRangeKind(OpenStr):
    COMMENT = "comment"
    IMPORTS = "imports"
    REGION = "region"


class MonikerKind(OpenStr):
    IMPORT = "import"
    EXPORT = "export"
    LOCAL = "local"


class UniquenessLevel(OpenStr):
    DOCUMENT = "document"
    PROJECT = "project"
    GROUP = "group"
    SCHEME = "scheme"
    GLOBAL = "global"


class LocationLink(WireStruct, kw_only=True):
    origin_selection_range: Range | None = None
    target_uri: str
    target_range: Range
    target_selection_range: Range


class DeclarationParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


class DefinitionParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


class DocumentHighlight(WireStruct, kw_only=True):
    range: Range
    kind: DocumentHighlightKind | None = None


class DocumentHighlightParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


class FoldingRange(WireStruct, kw_only=True):
    start_line: int
    start_character: int | None = None
    end_line: int
    end_character: int | None = None
    kind: FoldingRangeKind | None = None
    collapsed_text: str | None = None


class FoldingRangeParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class ImplementationParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


class LinkedEditingRangeParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None


class LinkedEditingRanges(WireStruct, kw_only=True):
    ranges: list[Range]
    word_pattern: str | None = None


class Moniker(WireStruct, kw_only=True):
    scheme: str
    identifier: str
    unique: UniquenessLevel
    kind: MonikerKind | None = None


class MonikerParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


class ReferenceContext(WireStruct, kw_only=True):
    include_declaration: bool


class ReferenceParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    context: ReferenceContext


class SelectionRange(WireStruct, kw_only=True):
    range: Range
    parent: SelectionRange | None = None


class SelectionRangeParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    positions: list[Position]


class TypeDefinitionParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None


Declaration: TypeAlias = Location | list[Location]

DeclarationLink: TypeAlias = LocationLink

DECLARATION_RESULT_UNION = StructUnion(
    (),
    (
        ("targetRange targetSelectionRange targetUri", LocationLink),
        ("range uri", Location),
    ),
    lists=True,
)
if TYPE_CHECKING:
    DeclarationResult: TypeAlias = Declaration | list[DeclarationLink]
else:
    DeclarationResult = Annotated[Any, DECLARATION_RESULT_UNION]


Definition: TypeAlias = Location | list[Location]

DefinitionLink: TypeAlias = LocationLink

DEFINITION_RESULT_UNION = StructUnion(
    (),
    (
        ("targetRange targetSelectionRange targetUri", LocationLink),
        ("range uri", Location),
    ),
    lists=True,
)
if TYPE_CHECKING:
    DefinitionResult: TypeAlias = Definition | list[DefinitionLink]
else:
    DefinitionResult = Annotated[Any, DEFINITION_RESULT_UNION]


IMPLEMENTATION_RESULT_UNION = StructUnion(
    (),
    (
        ("targetRange targetSelectionRange targetUri", LocationLink),
        ("range uri", Location),
    ),
    lists=True,
)
if TYPE_CHECKING:
    ImplementationResult: TypeAlias = Definition | list[DefinitionLink]
else:
    ImplementationResult = Annotated[Any, IMPLEMENTATION_RESULT_UNION]


TYPE_DEFINITION_RESULT_UNION = StructUnion(
    (),
    (
        ("targetRange targetSelectionRange targetUri", LocationLink),
        ("range uri", Location),
    ),
    lists=True,
)
if TYPE_CHECKING:
    TypeDefinitionResult: TypeAlias = Definition | list[DefinitionLink]
else:
    TypeDefinitionResult = Annotated[Any, TYPE_DEFINITION_RESULT_UNION]
